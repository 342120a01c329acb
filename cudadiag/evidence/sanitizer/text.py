"""The text report of compute-sanitizer (and of the older cuda-memcheck): pure, total, mixed with program output or not.

A record is a line with a head the table of `kinds` knows, and the more indented lines under it. Heads nobody knows are
kept as records where a place on the device follows, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from cudadiag.evidence.names import base_name
from cudadiag.evidence.sanitizer.frames import kernel_name, user_place
from cudadiag.evidence.sanitizer.kinds import fault_kind, head_of
from cudadiag.evidence.sanitizer.records import Frame, SanitizerRecord
from cudadiag.model import Allocation

MAX_RECORDS = 100_000
_LINE = re.compile(rb"={3,} ?([^\r\n]*)")
_TRIPLE = r"\((\d{1,9}), ?(\d{1,9}), ?(\d{1,9})\)"
_BY = re.compile(rf"by thread {_TRIPLE} in block {_TRIPLE}")
_ADDRESS = re.compile(r"(?:Address|Access (?:to|at)) 0x(?P<address>[0-9a-fA-F]+)(?P<error>.*)")
_NEAREST = re.compile(
    r"and is (?:(?P<distance>[\d,]+) bytes? )?(?P<side>before|after|inside) the nearest allocation "
    r"at 0x(?P<at>[0-9a-fA-F]+) of size (?P<size>[\d,]+) bytes?"
)
_PLACE = re.compile(
    r"(?:(?P<function>\S.*?)[+:])?(?P<pc>0x[0-9a-fA-F]+)(?: in (?P<file>.+?)(?::(?P<line>\d{1,9}))?)?"
    r"\s*(?:\[(?P<count>[\d,]+) hazards?\])?$"
)
_DEVICE_FRAME = re.compile(r"Device Frame:\s*(.*)")
_HOST_FRAME = re.compile(r"Host Frame:\s*(?P<function>.*?)\s*\[0x(?P<pc>[0-9a-fA-F]+)\](?: in (?P<module>.*))?$")
_PLAIN_HOST_FRAME = re.compile(r"Host Frame:\s*(?P<function>.*?)(?: in (?P<file>.+?):(?P<line>\d{1,9}))?$")
_OTHER_ACCESS = re.compile(r"and (?P<access>\w+(?: \w+)?) access at (?P<where>.*)")
_HAZARD_THREAD = re.compile(rf"(?P<access>\w+) Thread {_TRIPLE} at (?P<where>.*)")
_SUMMARY = re.compile(
    r"(?P<which>ERROR|RACECHECK) SUMMARY: (?P<count>[\d,]+) (?:errors?$|hazards? displayed "
    r"\((?P<errors>[\d,]+) errors?, (?P<warnings>[\d,]+) warnings?\))"
)
_NOT_PRINTED = re.compile(r"ERROR SUMMARY: (?P<count>[\d,]+) errors? were not printed")
_FAILED = re.compile(r"Target application returned an error|process didn't terminate successfully")


@dataclass
class TextReport:
    """What the text says. `notes` are its lines that are neither records nor summaries: the health reading needs
    them."""

    records: list[SanitizerRecord] = field(default_factory=list)
    errors: int | None = None
    not_printed: int = 0
    notes: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    program_failed: bool = False
    is_report: bool = False
    tool: str | None = None


@dataclass
class _Block:
    """A first line and what is indented under it."""

    log_line: int
    head: str
    rest: list[str] = field(default_factory=list)


def text_report(data: bytes) -> TextReport:
    """Everything a text report (or a stream it was mixed into) holds; per-thread repeats are not folded here."""
    report = TextReport()
    for block in _blocks(data):
        report.is_report = True
        if _is_summary(report, block.head) or _is_failure(report, block.head):
            continue
        known = head_of(block.head)
        if known is not None and len(report.records) < MAX_RECORDS:
            report.records.append(_record(known[0], known[1], block))
        elif known is None and any(line.startswith(("at ", "by thread")) for line in block.rest):
            report.unknown[_generic(block.head)] += 1
            report.records.append(_record("unknown", None, block))
        elif known is None and block.head not in ("", "COMPUTE-SANITIZER"):
            report.notes.append(block.head)
    return report


def _blocks(data: bytes) -> Iterator[_Block]:
    block: _Block | None = None
    line, counted = 1, 0
    for match in _LINE.finditer(data):
        start = match.start()
        if start and data[start - 1 : start] not in (b"\n", b"\r", b" ", b"\t"):
            continue
        line += data.count(b"\n", counted, start)
        counted = start
        content = match[1].decode("utf-8", "replace").rstrip()
        indented = content.startswith("   ")
        if indented and block is not None:
            if content.strip() and len(block.rest) < 400:
                block.rest.append(content.strip())
            continue
        if block is not None:
            yield block
        block = _Block(line, content.strip())
    if block is not None:
        yield block


def _is_summary(report: TextReport, head: str) -> bool:
    left = _NOT_PRINTED.search(head)
    if left:
        report.not_printed += number(left["count"])
        return True
    summary = _SUMMARY.search(head)
    if summary is None:
        return head.startswith("LEAK SUMMARY")
    report.errors = (report.errors or 0) + number(summary["errors"] or summary["count"])
    report.tool = "racecheck" if summary["which"] == "RACECHECK" else report.tool
    return True


def _is_failure(report: TextReport, head: str) -> bool:
    if not _FAILED.search(head):
        return False
    report.program_failed = True
    return True


def _record(tool_kind: str, match: re.Match[str] | None, block: _Block) -> SanitizerRecord:
    """A record out of a block. Fields the head does not give come from the lines under it."""
    groups: Mapping[str, str | None] = match.groupdict() if match else {}
    words = " ".join((block.head, *(line for line in block.rest if line.startswith(("Address", "Access")))))
    body = _Body()
    for line in block.rest:
        _read_line(body, line)
    where = _place(groups["where"]) if groups.get("where") else (body.places[0] if body.places else None)
    place = user_place(where, body.frames)
    other = body.other or (body.places[1] if tool_kind == "Hazard" and len(body.places) > 1 else None)
    return SanitizerRecord(
        kind=fault_kind(tool_kind, words),
        tool_kind=tool_kind,
        message=_message(block.head, body),
        level=(groups.get("level") or "").capitalize() or None,
        kernel=kernel_name(where, body.frames, body.host_frames),
        function=base_name(where.function) if where else None,
        file=place.file if place else None,
        line=place.line if place else None,
        pc=where.pc if where else None,
        block=body.block,
        thread=body.thread,
        access=_access(groups.get("access") or body.access),
        space=groups.get("space"),
        size=number(groups["size"]) if groups.get("size") else None,
        address=int(groups["address"] or "0", 16) if groups.get("address") else body.address,
        allocation=body.allocation,
        frames=tuple(body.frames),
        host_frames=tuple(body.host_frames),
        other=other,
        other_access=_access(body.other_access),
        api=groups.get("api"),
        name=groups.get("name"),
        number=int(groups["number"] or "0") if groups.get("number") else None,
        count=body.hazards or 1,
        log_line=block.log_line,
    )


@dataclass
class _Body:
    """What the lines under a head say."""

    places: list[Frame] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    host_frames: list[Frame] = field(default_factory=list)
    thread: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    address: int | None = None
    error: str = ""
    allocation: Allocation | None = None
    access: str | None = None
    other: Frame | None = None
    other_access: str | None = None
    hazards: int | None = None


def _read_line(body: _Body, line: str) -> None:
    if line.startswith("at "):
        body.places.append(_place(line[3:]))
    elif line.startswith("by thread"):
        by = _BY.search(line)
        if by:
            body.thread, body.block = _triple(by.groups()[:3]), _triple(by.groups()[3:])
    elif line.startswith(("Address", "Access")):
        at = _ADDRESS.match(line)
        if at:
            body.address, body.error = int(at["address"], 16), at["error"].strip()
    elif line.startswith("and is"):
        body.allocation = _nearest(line) or body.allocation
    elif line.startswith("Device Frame:"):
        frame = _DEVICE_FRAME.match(line)
        body.frames.append(_place(frame[1] if frame else ""))
    elif line.startswith("Host Frame:"):
        body.host_frames.append(_host_frame(line))
    elif line.startswith("in ") and body.host_frames:  # a long frame goes on in the next line
        body.host_frames[-1] = _host_frame_continued(body.host_frames[-1], line[3:])
    else:
        _read_race_line(body, line)


def _read_race_line(body: _Body, line: str) -> None:
    second = _OTHER_ACCESS.match(line)
    if second and body.other is None:
        body.other, body.other_access = _place(second["where"]), second["access"]
        count = re.search(r"\[([\d,]+) hazards?\]", line)
        body.hazards = number(count[1]) if count else None
    thread = _HAZARD_THREAD.match(line)
    if thread:
        body.places.append(_place(thread["where"]))
        if body.thread is None:
            body.access, body.thread = thread["access"], _triple(thread.groups()[1:4])
        else:
            body.other_access = thread["access"]


def _nearest(line: str) -> Allocation | None:
    match = _NEAREST.match(line)
    if match is None:
        return None
    distance = number(match["distance"]) if match["distance"] else 0
    return Allocation(int(match["at"], 16), number(match["size"]), distance, match["side"])


def _place(text: str | None) -> Frame:
    """`func(int *)+0xc0 in a.cu:16`, `func():0xc0 in a.cu:6`, a bare `0x79d8`, or only a name."""
    match = _PLACE.match((text or "").strip())
    if match is None:
        return Frame(function=(text or "").strip() or None)
    function = match["function"]
    return Frame(
        function=function.strip() if function else None,
        file=match["file"],
        line=int(match["line"]) if match["line"] else None,
        pc=int(match["pc"], 16),
    )


def _host_frame(line: str) -> Frame:
    match = _HOST_FRAME.match(line)
    if match:
        return Frame(match["function"] or None, None, None, int(match["pc"], 16), match["module"])
    plain = _PLAIN_HOST_FRAME.match(line)
    if plain is None:
        return Frame()
    return Frame(plain["function"] or None, plain["file"], int(plain["line"]) if plain["line"] else None)


def _host_frame_continued(frame: Frame, place: str) -> Frame:
    source = re.fullmatch(r"(?P<file>.+?):(?P<line>\d{1,9})", place)
    if source:
        return replace(frame, file=source["file"], line=int(source["line"]))
    return replace(frame, module=place)


def _message(head: str, body: _Body) -> str:
    return f"{head}, {body.error.removeprefix('is ')}" if body.error.startswith("is ") else head


def _access(word: str | None) -> str | None:
    return word.lower() if word else None


def _generic(head: str) -> str:
    """A head without its numbers, so that repeats of an unknown kind count as one."""
    return re.sub(r"0x[0-9a-fA-F]+|\d[\d,]*", "N", head)[:120]


def _triple(parts: tuple[str | None, ...]) -> tuple[int, int, int]:
    x, y, z = (int(part or 0) for part in parts)
    return x, y, z


def number(text: str | None) -> int:
    """A count with or without thousands separators; 0 for none."""
    digits = re.sub(r"\D", "", text or "")
    return int(digits[:30]) if digits else 0
