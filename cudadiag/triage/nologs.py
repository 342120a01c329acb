"""What below a folder is clearly no log: sources, executables, other binary files. What the user names is read."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from cudadiag.report.style import count_words
from cudadiag.triage.blocks import is_packed

HEAD_BYTES = 4096
ELF_MARK = b"\x7fELF"
SOURCE, BINARY, EXECUTABLE, UNREADABLE = "source file", "binary file", "executable", "file that cannot be read"
MAX_CONTROL = 0.05
"""Part of control characters, zeros not counted (UTF-16, a log cut by its rotation); random bytes have a tenth."""
_SOURCES = re.compile(r"(?i)\.(?:py[ix]?|cuh?|[ch]|cc|cpp|cxx|hpp|hh|hxx|inl|rs|go|java|[jt]sx?|sh|ptx|sass|ll|cmake)$")
_BINARIES = re.compile(
    r"(?i)\.(?:py[co]|so|o|a|bin|pt|pth|safetensors|gguf|npz|npy|png|jpe?g|gif|pdf|zip|whl|db|sqlite|cubin|fatbin)$"
)
_CONTROL = bytes(set(range(1, 32)) - set(b"\t\n\v\f\r\b\x1b"))


@dataclass
class Left:
    """What was left out below folders, counted by reason. `total` counts every file that was looked at."""

    counts: Counter[str] = field(default_factory=Counter)
    total: int = 0

    def add(self, reason: str | None) -> None:
        """One more file; None where it is read."""
        self.total += 1
        if reason is not None:
            self.counts[reason] += 1

    def words(self) -> str:
        """`left out as no logs: 12 source files, 3 executables`."""
        parts = [count_words(count, reason, _several(reason)) for reason, count in self.counts.most_common()]
        return "left out as no logs: " + ", ".join(parts)


def _several(reason: str) -> str:
    noun, blank, rest = reason.partition(" that ") if " that " in reason else reason.partition(" beyond ")
    return f"{noun}s{blank}{rest}"


def why_no_log(path: Path) -> str | None:
    """Why a file found below a folder is not read; None where it may be a log."""
    if _SOURCES.search(path.name):
        return SOURCE
    if _BINARIES.search(path.name):
        return BINARY
    try:
        with open(path, "rb") as file:
            return _by_head(file.read(HEAD_BYTES))
    except OSError:
        return UNREADABLE


def _by_head(head: bytes) -> str | None:
    if head.startswith(ELF_MARK):
        return None if head[16:18] in (b"\4\0", b"\0\4") else EXECUTABLE  # e_type: ET_CORE
    text = head.replace(b"\0", b"")
    control = len(text) - len(text.translate(None, _CONTROL))
    return BINARY if control > MAX_CONTROL * len(text) and not is_packed(head) else None
