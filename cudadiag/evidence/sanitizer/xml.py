"""The XML report of compute-sanitizer: pure, total, and tolerant, since no schema of it is published.

A cut-off file gives every record up to the cut, the last one as far as it got. Unknown kinds are kept and counted,
unknown tags kept in `detail`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from cudadiag.evidence.names import base_name
from cudadiag.evidence.sanitizer.frames import kernel_name, user_place
from cudadiag.evidence.sanitizer.kinds import KNOWN_KINDS, fault_kind
from cudadiag.evidence.sanitizer.records import Frame, SanitizerRecord

if TYPE_CHECKING:
    Parser = XMLPullParser[Element]

ROOT = "ComputeSanitizerOutput"
MAX_RECORDS = 100_000
CHUNK = 1 << 20
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SPACE = re.compile(r"__(\w+?)__")
_UNDERSTOOD = frozenset(
    {
        "text", "space", "size", "direction", "error", "address", "exception", "pc", "type", "api", "message", "result",
        "source", "destination", "accessSize", "accessAddress", "errorAddress", "saveLocation",
    }
)  # fmt: skip


@dataclass
class XmlReport:
    """What the XML says. `complete` is False for a file that is cut off or no such XML."""

    records: list[SanitizerRecord] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    complete: bool = False
    problem: str | None = None


def xml_report(data: bytes) -> XmlReport:
    """Everything an XML report holds; per-thread repeats are not folded here."""
    report = XmlReport()
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        report.problem = "not a report of compute-sanitizer: it declares entities"
        return report
    parser: Parser = XMLPullParser(events=("start", "end"))
    clean = _FORBIDDEN.sub(b"?", data)
    open_record: Element | None = None
    root: Element | None = None
    try:
        for start in range(0, max(len(clean), 1), CHUNK):
            parser.feed(clean[start : start + CHUNK])
            root, open_record = _drain(parser, report, root, open_record)
        parser.close()
        _drain(parser, report, root, open_record)
        report.complete = root is not None and root.tag == ROOT
        report.problem = None if report.complete else "not a report of compute-sanitizer"
    except (ParseError, ValueError, LookupError) as problem:
        root, open_record = _drain_rest(parser, report, root, open_record)
        report.problem = f"cut off or damaged: {problem}"
        if open_record is not None and (open_record.find("what") is not None or open_record.find("where") is not None):
            _take(report, open_record)
    return report


def _drain(
    parser: Parser, report: XmlReport, root: Element | None, record: Element | None
) -> tuple[Element | None, Element | None]:
    for event in parser.read_events():
        kind, element = cast("tuple[str, Element]", event)
        if kind == "start":
            root = element if root is None else root
            record = element if element.tag == "record" and record is None else record
        elif element is record:
            _take(report, element)
            element.clear()
            record = None
    return root, record


def _drain_rest(
    parser: Parser, report: XmlReport, root: Element | None, record: Element | None
) -> tuple[Element | None, Element | None]:
    """What was read before the damage and not yet taken; the parser raises once more when it comes to the damage."""
    try:
        return _drain(parser, report, root, record)
    except (ParseError, ValueError, LookupError):
        return root, record


def _take(report: XmlReport, element: Element) -> None:
    if len(report.records) >= MAX_RECORDS:
        return
    tool_kind = _text(element, "kind") or "unknown"
    if tool_kind not in KNOWN_KINDS:
        report.unknown[tool_kind] += 1
    report.records.append(_record(element, tool_kind))


def _record(element: Element, tool_kind: str) -> SanitizerRecord:
    what = element.find("what")
    what = what if what is not None else Element("what")
    message = _message(what, tool_kind)
    source, destination = what.find("source"), what.find("destination")
    where = _where(element.find("where")) or (_where(source.find("where")) if source is not None else None)
    other = _where(destination.find("where")) if destination is not None else None
    if tool_kind == "Hazard":
        return _hazard(element, what, message)
    frames, host_frames = _frames(element.find("deviceStack")), _frames(element.find("hostStack"))
    place = user_place(where, frames)
    is_api = tool_kind == "Api"
    return SanitizerRecord(
        kind=fault_kind(tool_kind, f"{message} {_text(what, 'error') or ''}"),
        tool_kind=tool_kind,
        message=message,
        level=_text(element, "level"),
        kernel=kernel_name(where, frames, host_frames),
        function=base_name(where.function) if where else None,
        file=place.file if place else None,
        line=place.line if place else None,
        pc=where.pc if where else _number(_text(what, "pc")),
        block=_triple(element, "blockIdx"),
        thread=_triple(element, "threadIdx"),
        access=_direction(what, source, message),
        space=_space(_text(what, "space") or message),
        size=_number(_text(what, "size") or _text(what, "accessSize")),
        address=_address(what),
        frames=frames,
        host_frames=host_frames,
        other=other,
        other_access=_lower(_text(destination, "direction")) if destination is not None else None,
        api=_text(what, "api"),
        name=_text(what, "error") if is_api else None,
        number=_number(_text(what, "result")) if is_api else None,
        count=(_number(_text(destination, "count")) if destination is not None else None) or 1,
        detail={c.tag: c.text.strip() for c in what if c.tag not in _UNDERSTOOD and c.text and c.text.strip()},
    )


def _hazard(element: Element, what: Element, message: str) -> SanitizerRecord:
    """A hazard of racecheck's hazard mode: what is common, and the two threads."""
    none = Element("none")
    common, first, second = (_child(what, tag, none) for tag in ("common", "thread0", "thread1"))
    where = _where(first.find("where"))
    host_frames = _frames(element.find("hostStack"))
    return SanitizerRecord(
        kind=fault_kind("Hazard", message),
        tool_kind="Hazard",
        message=message,
        level=_text(element, "level"),
        kernel=kernel_name(where, (), host_frames),
        function=base_name(where.function) if where else None,
        file=where.file if where else None,
        line=where.line if where else None,
        pc=where.pc if where else None,
        block=_xyz(common, "blockIdx"),
        thread=_xyz(first, "threadIdx"),
        access=_lower(_text(first, "access")),
        space="shared",
        address=_number(_text(common, "address")),
        host_frames=host_frames,
        other=_where(second.find("where")),
        other_access=_lower(_text(second, "access")),
    )


def _child(element: Element, tag: str, default: Element) -> Element:
    found = element.find(tag)
    return default if found is None else found


def _message(what: Element, tool_kind: str) -> str:
    text = _text(what, "text") or _text(what, "exception") or tool_kind
    error = _text(what, "error")
    if error and tool_kind == "Precise":
        text = text.replace(f" is {error}", f", {error}")
    kind = _text(what, "type")
    return f"{text}: {kind}" if kind and tool_kind == "Synccheck" else text


def _direction(what: Element, source: Element | None, message: str) -> str | None:
    told = _text(what, "direction") or (_text(source, "direction") if source is not None else None)
    if told is None:
        match = re.search(r"\b(read|write|atomic)\b of size", message)
        told = match[1] if match else None
    return _lower(told)


def _address(what: Element) -> int | None:
    told = next((t for tag in ("address", "accessAddress", "errorAddress") if (t := _text(what, tag))), None)
    return _number(told)


def _space(text: str) -> str | None:
    match = _SPACE.search(text)
    return match[1] if match else None


def _where(element: Element | None) -> Frame | None:
    if element is None:
        return None
    return Frame(
        function=_text(element, "func"),
        file=_text(element, "path"),
        line=_number(_text(element, "line")),
        pc=_number(_text(element, "pc")),
        module=_text(element, "module"),
    )


def _frames(stack: Element | None) -> tuple[Frame, ...]:
    if stack is None:
        return ()
    return tuple(frame for element in stack.findall("frame")[:200] if (frame := _where(element)) is not None)


def _triple(record: Element, tag: str) -> tuple[int, int, int] | None:
    """`who/threadIdx/x` ..., or one dotted tag for each part as older versions write them."""
    who = record.find("who")
    return _xyz(who, tag) if who is not None else None


def _xyz(who: Element, tag: str) -> tuple[int, int, int] | None:
    nested = who.find(tag)
    parts = [_number(_text(nested, a) if nested is not None else _dotted(who, f"{tag}.{a}")) for a in "xyz"]
    x, y, z = parts
    return None if x is None or y is None or z is None else (x, y, z)


def _dotted(element: Element, tag: str) -> str | None:
    return next((child.text for child in element if child.tag == tag), None)


def _text(element: Element, tag: str) -> str | None:
    text = element.findtext(tag)
    return text.strip()[:2000] or None if text else None


def _lower(text: str | None) -> str | None:
    return text.lower() if text else None


def _number(text: str | None) -> int | None:
    """A decimal or 0x number, thousands separators allowed; None for anything else."""
    digits = (text or "").strip().replace(",", "")[:40]
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", digits):
        return int(digits, 16)
    return int(digits) if re.fullmatch(r"-?[0-9]+", digits) else None
