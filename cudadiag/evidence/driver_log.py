"""The driver's own log (CUDA_LOG_FILE, driver 575 and newer): which call returned which error, and plain words about
limits.

Written even when the program ignores the error, so it catches programs that do not check. Pure and total.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudadiag.evidence.codes import is_sticky

MAX_ENTRIES = 500
_LINE = re.compile(
    rb"\[(?P<time>\d\d:\d\d:\d\d\.\d+)\]\[(?P<thread>\d{1,20})\]\[(?P<source>\w+)\]\[(?P<level>[A-Z])\]\s?"
    rb"(?P<text>[^\r\n]*)"
)
_RETURNING = re.compile(
    r"(?i)\breturn(?:ing|ed)\s+(?P<number>\d{1,9})\s*\((?P<name>\w+)\)\s+from\s+(?P<call>\w+)"
    r"|(?P<call2>\bcu\w+)(?:\(.*\))?\s+return(?:ed|ing)\s+(?P<number2>\d{1,9})\s*\(?(?P<name2>CUDA_ERROR_\w+)?"
)
_BARE = re.compile(rb"(?m)^(?P<text>[^\r\n]*\bReturning \d+ \(\w+\) from \w+)")
_NOT_FAULTS = frozenset({0, 600})
_NOISE = re.compile(rb"cudaVersion argument \(\d+\) exceeds the driver version|\bfrom cuGetProcAddress")
"""A library newer than the driver asks for functions by version and tries an older one when refused: dozens of lines in
every log of a program that uses it, about nothing the program did."""


@dataclass(frozen=True)
class DriverLogEntry:
    """One line of the driver log. `number` and `call` are set where a call returned an error; `text` is the plain
    words."""

    log_line: int
    text: str
    level: str | None = None
    time: str | None = None  # HH:MM:SS.mmm of the machine
    thread: int | None = None
    number: int | None = None
    name: str | None = None
    call: str | None = None

    @property
    def is_error(self) -> bool:
        return self.number is not None and self.number not in _NOT_FAULTS

    @property
    def is_sticky(self) -> bool:
        return is_sticky(self.number)

    @property
    def is_noise(self) -> bool:
        """Of a library's look-up of functions: left in readings that older versions kept."""
        return _NOISE.search(self.text.encode()) is not None

    @property
    def is_launch(self) -> bool:
        """True where the call that failed was a launch."""
        return self.call is not None and "Launch" in self.call


def driver_log(data: bytes, *, limit: int = MAX_ENTRIES) -> tuple[DriverLogEntry, ...]:
    """Every entry of a driver log (or of any stream it was mixed into), in order, the first `limit` of them; without
    what a library's look-up of functions leaves there."""
    entries: list[DriverLogEntry] = []
    matches = list(_LINE.finditer(data)) or list(_BARE.finditer(data))
    matches = [match for match in matches if not _NOISE.search(match["text"])]
    line, counted = 1, 0
    for match in matches[:limit]:
        line += data.count(b"\n", counted, match.start())
        counted = match.start()
        entries.append(_entry(match, line))
    return tuple(entries)


def _entry(match: re.Match[bytes], line: int) -> DriverLogEntry:
    groups = {name: value.decode("utf-8", "replace") for name, value in match.groupdict().items() if value is not None}
    text = groups["text"].strip()[:400]
    said = _RETURNING.search(text)
    number = (said["number"] or said["number2"]) if said else None
    return DriverLogEntry(
        log_line=line,
        text=text,
        level=groups.get("level"),
        time=groups.get("time"),
        thread=int(groups["thread"]) if "thread" in groups else None,
        number=int(number) if number else None,
        name=(said["name"] or said["name2"]) if said else None,
        call=(said["call"] or said["call2"]) if said else None,
    )
