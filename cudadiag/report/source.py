"""The offending source line with its neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cudadiag.report.style import printable, strong

MAX_SOURCE_BYTES = 4 << 20


def source_lines(file: str | None, line: int | None, sources: Iterable[str] = (), around: int = 2) -> list[str]:
    """`line` of `file` marked with `>` between `around` neighbours; [] when the file cannot be read.

    A tool may know only the file's name; it is then looked for among the case's `sources` by that name, and taken only
    if exactly one fits.
    """
    path = _find(file, sources)
    if path is None or line is None or line < 1:
        return []
    try:
        if path.stat().st_size > MAX_SOURCE_BYTES:
            return []
        text = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []
    if line > len(text):
        return []
    first, last = max(1, line - around), min(len(text), line + around)
    width = len(str(last))
    return [_row(n, text[n - 1], n == line, width) for n in range(first, last + 1)]


def _row(number: int, text: str, marked: bool, width: int) -> str:
    row = f"{'>' if marked else ' '} {number:>{width}} | {printable(text.rstrip())}"
    return strong(row) if marked else row


def _find(file: str | None, sources: Iterable[str]) -> Path | None:
    if not file:
        return None
    if Path(file).is_file():
        return Path(file)
    name = Path(file).name
    fitting = {source for source in sources if Path(source).name == name}
    return Path(fitting.pop()) if len(fitting) == 1 else None
