"""A place in a log: one line and, on demand, what stands around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cudadiag.triage.clean import Clean

MAX_QUOTE = 400


@dataclass(frozen=True)
class Spot:
    """A line that may say something. `around(n)` gives the cleaned lines before (n < 0, nearest first) or after it."""

    log_line: int
    line: Clean
    around: Callable[[int], Sequence[Clean]] = field(repr=False)
    old_era: bool = False  # the log is of a CUDA before 10.1, which had other numbers

    @property
    def text(self) -> str:
        return self.line.text

    @property
    def quote(self) -> str:
        """The line as a sign keeps it: its first 400 characters."""
        return self.text.strip()[:MAX_QUOTE]

    def before(self, count: int) -> list[Clean]:
        """Earlier lines, nearest first, of the same process as far as the log tells them apart."""
        return [line for line in self.around(-count) if self.is_same_process(line)]

    def after(self, count: int) -> list[Clean]:
        """Later lines, nearest first, of the same process."""
        return [line for line in self.around(count) if self.is_same_process(line)]

    def is_same_process(self, other: Clean) -> bool:
        mine, theirs = self.line.process, other.process
        return mine == theirs or mine is None or theirs is None
