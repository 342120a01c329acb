"""One log, streamed: the quick scan finds lines, the readers read them, what they say is kept and counted.

Memory is bounded: a window of the stream, at most MAX_SIGNS signs, at most MAX_BLOCK_LINES lines of reports, and the
first and last part of the log for its tables. A line said a thousand times is read a few times and then only counted.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cudadiag.triage.clean import Clean, clean
from cudadiag.triage.prefilter import searcher
from cudadiag.triage.readers import BLOCK_READERS, LINE_READERS
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot

CONTEXT_BYTES = 32 << 10
MAX_LINE = 8 << 10
LEAD_BYTES = 2 << 10
MAX_SIGNS = 20_000
MAX_BLOCK_LINES = 20_000
READ_REPEATS = 12
KEPT_BYTES = 256 << 10
_NUMBERS = re.compile(rb"[0-9]+|0x[0-9a-fA-F]+")
_OLD = re.compile(
    rb"THCudaCheck|TH[CP]\w+\.c[pu]?|Cuda compilation tools, release [5-9]\.|CUDA (?:Version|version)[: ]+[5-9]\.\d"
)
_END = re.compile(rb"[\n\r]")
_DATED = frozenset({Role.DEVICE, Role.CUDA, Role.RESOURCE, Role.HANG, Role.HOST})
DATE_LINES = 80
_LOUD = frozenset({Role.ENVIRONMENT, Role.NOT_A_CRASH, Role.WRONG, Role.HOST})
"""What a logger calls a warning or less is no reason for a crash, in these families."""


@dataclass
class LogReading:
    """What one log says. `head` and `tail` are its first and last bytes (for tables), `tail_line` the tail's first line
    number; `lines` counts all lines."""

    name: str
    signs: list[Sign] = field(default_factory=list)
    head: bytes = b""
    tail: bytes = b""
    tail_line: int = 1
    lines: int = 0
    size: int = 0
    dropped: int = 0
    processes: dict[str, int] = field(default_factory=dict)
    is_xml: bool = False  # a sanitizer's XML report, read whole


def scan(chunks: Iterable[bytes], name: str = "log", source: int = 0) -> LogReading:
    """Reads one log from blocks of bytes. Never raises, whatever the bytes."""
    return _Scan(name, source).run(chunks)


@dataclass
class _Seen:
    count: int = 0
    at: list[int] = field(default_factory=list)  # indices into signs


class _Scan:
    def __init__(self, name: str, source: int) -> None:
        self.found = LogReading(name)
        self.source = source
        self.next_hit = searcher()
        self.templates: dict[bytes, _Seen] = defaultdict(_Seen)
        self.keys: dict[tuple[object, ...], int] = {}
        self.reports: dict[tuple[str, str | None], list[tuple[int, str]]] = defaultdict(list)
        self.counts: list[int] = []  # of each sign, kept apart: signs do not change
        self.old_era = False

    def run(self, chunks: Iterable[bytes]) -> LogReading:
        window, start, line = b"", 0, 1
        for chunk in chunks:
            self.found.size += len(chunk)
            self._keep(chunk)
            window += chunk
            ready = max(start, len(window) - CONTEXT_BYTES)
            start, line = self._scan_window(window, start, ready, line, last=False)
            cut = max(0, start - CONTEXT_BYTES)
            window, start = window[cut:], start - cut
        _, line = self._scan_window(window, start, len(window), line, last=True)
        self.found.lines = line if window and not window.endswith(b"\n") else line - 1
        self._finish_reports()
        counted = zip(self.found.signs, self.counts, strict=True)
        self.found.signs = [dataclasses.replace(sign, count=count) for sign, count in counted]
        return self.found

    def _keep(self, chunk: bytes) -> None:
        if len(self.found.head) < KEPT_BYTES:
            self.found.head += chunk[: KEPT_BYTES - len(self.found.head)]
            self.old_era = _OLD.search(self.found.head) is not None
        self.found.tail = chunk[-KEPT_BYTES:] if len(chunk) >= KEPT_BYTES else (self.found.tail + chunk)[-KEPT_BYTES:]

    def _scan_window(self, window: bytes, start: int, ready: int, line: int, *, last: bool) -> tuple[int, int]:
        """Reads the hits between `start` and `ready`; gives where the next window goes on, and that place's line."""
        position, counted = start, start
        while position < ready:
            hit = self.next_hit(window, position)
            if hit < 0 or hit >= ready:
                break
            begin, end = _bounds(window, hit, position)
            line += window.count(b"\n", counted, begin)
            counted = begin
            self._take(window, begin, end, line)
            position = max(end, hit + 1)
        position = max(position, ready if last else _line_start(window, position, ready))
        line += window.count(b"\n", counted, position)
        return position, line

    def _take(self, window: bytes, begin: int, end: int, line: int) -> None:
        raw = window[begin:end]
        self.old_era = self.old_era or b"THCudaCheck" in raw
        template = _NUMBERS.sub(b"#", raw[:400])
        seen = self.templates[template] if len(self.templates) < 200_000 else _Seen()
        seen.count += 1
        if seen.count > READ_REPEATS and not raw.lstrip().startswith(b"====="):
            for at in seen.at:
                self.counts[at] += 1
            return
        cleaned = clean(raw.decode("utf-8", "replace"))
        if cleaned.process:
            self.found.processes[cleaned.process] = self.found.processes.get(cleaned.process, 0) + 1
        if self._is_report(cleaned, window, begin, end, line):
            return
        spot = Spot(line, cleaned, _Window(window, begin, end).around, self.old_era)
        said = [(reader.name, sign) for reader in LINE_READERS for sign in reader.read(spot)]
        if said and cleaned.moment is None and any(sign.role in _DATED for _, sign in said):
            cleaned = _dated(spot)
        seen.at = [self._add(sign, cleaned, name) for name, sign in said][:4]

    def _is_report(self, cleaned: Clean, window: bytes, begin: int, end: int, line: int) -> bool:
        for reader in BLOCK_READERS:
            if reader.takes(cleaned.text):
                lines = self.reports[reader.name, cleaned.process]
                if len(lines) < MAX_BLOCK_LINES:
                    lines.append((line, cleaned.text))
                return True
        return False

    def _finish_reports(self) -> None:
        for reader in BLOCK_READERS:
            for (name, process), lines in self.reports.items():
                if name == reader.name:
                    for sign in reader.read(lines, process):
                        self._add(sign, Clean("", process, None), reader.name)

    def _add(self, sign: Sign, cleaned: Clean, reader: str) -> int:
        """Keeps a sign, or counts it where the same was said before; gives its index."""
        whole = dataclasses.replace(
            sign,
            reader=reader,
            process=sign.process or cleaned.process,
            moment=cleaned.moment,
            source=self.source,
            order=sign.log_line,
            weak=sign.weak or (cleaned.quiet and sign.role in _LOUD),
        )
        key = _key(whole)
        at = self.keys.get(key)
        if at is not None:
            self.counts[at] += whole.count
            return at
        if len(self.found.signs) >= MAX_SIGNS:
            self.found.dropped += 1
            return len(self.found.signs) - 1
        self.keys[key] = len(self.found.signs)
        self.found.signs.append(whole)
        self.counts.append(whole.count)
        return len(self.found.signs) - 1


def _dated(spot: Spot) -> Clean:
    """The line with the time, and where it has none the process, of the stamped line that it continues."""
    stamped = next((line for line in spot.before(DATE_LINES) if line.moment is not None), None)
    if stamped is None:
        return spot.line
    return Clean(spot.line.text, spot.line.process or stamped.process, stamped.moment, spot.line.quiet)


def _key(sign: Sign) -> tuple[object, ...]:
    place = (sign.noticed.call, sign.noticed.file, sign.noticed.line) if sign.noticed else None
    cause = (sign.caused.kernel, sign.caused.file, sign.caused.line) if sign.caused else None
    told = sign.text[:60] if sign.kind is None or sign.number is None else None
    return (sign.role, sign.kind, sign.name, sign.number, place, cause, sign.cause, sign.process, sign.settled, told)


def _line_start(window: bytes, floor: int, ready: int) -> int:
    """Where the line that `ready` lies in begins: it is read whole, with the next window, unless it has no end."""
    begin = max(window.rfind(b"\n", floor, ready), window.rfind(b"\r", floor, ready)) + 1
    return begin if begin > 0 and ready - begin < MAX_LINE else ready


def _bounds(window: bytes, hit: int, floor: int) -> tuple[int, int]:
    """Where the line of a hit begins and ends; a line longer than MAX_LINE is cut around the hit."""
    begin = max(window.rfind(b"\n", floor, hit), window.rfind(b"\r", floor, hit)) + 1
    begin = max(begin, floor if begin == 0 else begin, hit - LEAD_BYTES)
    match = _END.search(window, hit, min(len(window), begin + MAX_LINE))
    return begin, match.start() if match else min(len(window), begin + MAX_LINE)


@dataclass(frozen=True)
class _Window:
    """The lines around a place of the window."""

    data: bytes
    begin: int
    end: int

    def around(self, count: int) -> Sequence[Clean]:
        return list(self._before(-count) if count < 0 else self._after(count))

    def _before(self, count: int) -> Iterator[Clean]:
        end = self.begin
        floor = max(0, self.begin - CONTEXT_BYTES)
        while count > 0 and end > floor:
            end -= 1
            if self.data[end - 1 : end + 1] == b"\r\n":
                end -= 1
            begin = max(self.data.rfind(b"\n", floor, end), self.data.rfind(b"\r", floor, end), floor - 1) + 1
            if begin < end:
                yield clean(self.data[max(begin, end - MAX_LINE) : end].decode("utf-8", "replace"))
                count -= 1
            end = begin

    def _after(self, count: int) -> Iterator[Clean]:
        begin, roof = self.end, min(len(self.data), self.end + CONTEXT_BYTES)
        while count > 0 and begin < roof:
            begin += 1
            match = _END.search(self.data, begin, roof)
            end = match.start() if match else roof
            if end > begin:
                yield clean(self.data[begin : min(end, begin + MAX_LINE)].decode("utf-8", "replace"))
                count -= 1
            begin = end
