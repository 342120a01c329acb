"""What a reader of one family of wordings is. One small file each in `readers/`; the table of all is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from cudadiag.triage.sign import Sign
from cudadiag.triage.spot import Spot


class LineReader(Protocol):
    """Reads one line with its surroundings. Pure and total; the words that lead to it are in
    data/triage_patterns.txt."""

    @property
    def name(self) -> str: ...

    def read(self, spot: Spot) -> Iterable[Sign]:
        """What this line says, in this family's wordings; usually nothing."""
        ...


class BlockReader(Protocol):
    """Reads all lines of a log that carry a mark of its own, once the log has ended."""

    @property
    def name(self) -> str: ...

    def takes(self, text: str) -> bool:
        """Whether a line belongs to this reader; then no line reader sees it."""
        ...

    def read(self, lines: Sequence[tuple[int, str]], process: str | None) -> Iterable[Sign]:
        """What the lines (number, text) of one process say."""
        ...
