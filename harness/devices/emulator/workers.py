"""Threads that help with a launch."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Run = TypeVar("Run")
_STACK = 256 << 20


class Helper(Generic[Run]):
    """A thread that works on one run after another, with a stack of 256 MiB of address space."""

    def __init__(self, work: Callable[[Run], None]) -> None:
        self._runs: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[bool] = queue.SimpleQueue()
        previous = threading.stack_size(_STACK)
        try:
            self._thread = threading.Thread(target=self._loop, args=(work,), daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(previous)

    def _loop(self, work: Callable[[Run], None]) -> None:
        for run in iter(self._runs.get, None):
            work(run)
            self._done.put(True)

    def start(self, run: Run) -> None:
        self._runs.put(run)

    def finish(self) -> None:
        """Wait for the run that was started."""
        self._done.get()

    def end(self) -> None:
        self._runs.put(None)
