"""What a run tells those who watch it. Watchers must not slow it down or end it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cudadiag.session.judged import Judged
from cudadiag.session.task import Task


class Progress(Protocol):
    """Called from the controller's thread only."""

    def note(self, text: str) -> None:
        """Something the user should know, once."""

    def asking(self, doing: str, best: Sequence[str], wanted: int) -> None:
        """The plan asked for `wanted` more processes; `doing` says what for, `best` the best rules so far."""

    def started(self, task: Task, slot: str) -> None: ...

    def finished(self, judged: Judged) -> None: ...

    def closed(self) -> None:
        """Nothing more will come."""


class PassedOn:
    """Passes everything on to another who watches; a subclass adds what it wants done besides."""

    def __init__(self, inner: Progress) -> None:
        self.inner = inner

    def note(self, text: str) -> None:
        self.inner.note(text)

    def asking(self, doing: str, best: Sequence[str], wanted: int) -> None:
        self.inner.asking(doing, best, wanted)

    def started(self, task: Task, slot: str) -> None:
        self.inner.started(task, slot)

    def finished(self, judged: Judged) -> None:
        self.inner.finished(judged)

    def closed(self) -> None:
        self.inner.closed()
