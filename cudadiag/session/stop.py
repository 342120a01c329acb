"""SIGINT and SIGTERM: the first stops the asking and ends the probes under way, the second ends everything at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Use as a context manager, in the main thread. `wake` is called from the handler: it must be safe there."""

    def __init__(self, wake: Callable[[], object] = lambda: None) -> None:
        self.event = threading.Event()
        self.signal: int | None = None
        self._wake = wake
        self._before: dict[int, object] = {}

    def on_stop(self, wake: Callable[[], object]) -> None:
        self._wake = wake

    @property
    def requested(self) -> bool:
        return self.event.is_set()

    @property
    def exit_code(self) -> int:
        """130 for Ctrl-C, 143 for a request to end: what a shell shows for the signal."""
        return 128 + (self.signal or signal.SIGINT)

    def __enter__(self) -> Stop:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself gave

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.event.is_set():
            os._exit(self.exit_code)  # the guardian ends the processes that are left
        self.signal = number
        self.event.set()
        self._wake()
