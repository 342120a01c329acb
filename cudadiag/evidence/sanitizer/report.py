"""One report out of the XML and the text of a run: repeats folded, the two cross-checked, the health read."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

from cudadiag.evidence.names import without_template
from cudadiag.evidence.sanitizer.health import health_of
from cudadiag.evidence.sanitizer.records import SanitizerRecord, SanitizerReport
from cudadiag.evidence.sanitizer.text import TextReport, text_report
from cudadiag.evidence.sanitizer.xml import XmlReport, xml_report

MAX_FOLDED = 500
Key = tuple[object, ...]


def sanitizer_report(xml: bytes | None, text: bytes | None, *, tool: str | None = None) -> SanitizerReport:
    """All that a run of compute-sanitizer left. Either part may be None (not there); any bytes are accepted.

    The text knows the nearest allocation and where it says so, the XML whole paths and whole stacks: a record found in
    both has the best of both.
    """
    told = text_report(text) if text is not None else None
    marked = xml_report(xml) if xml is not None else None
    from_text, from_xml = folded(told.records if told else ()), folded(marked.records if marked else ())
    health, lines = health_of(told, marked)
    return SanitizerReport(
        tool=tool or (told.tool if told else None),
        records=_joined(from_xml, from_text)[:MAX_FOLDED],
        health=health,
        health_detail=lines,
        errors=told.errors if told else None,
        not_printed=told.not_printed if told else 0,
        unknown=_unknown(told, marked),
        disagreements=_disagreements(from_xml, from_text) if told and told.is_report and marked else (),
        program_failed=told.program_failed if told else False,
    )


def folded(records: Iterable[SanitizerRecord]) -> list[SanitizerRecord]:
    """Records of one fault at one place in many threads become one, with their count; the first thread stays its
    face."""
    found: dict[Key, SanitizerRecord] = {}
    for record in records:
        key = _key(record)
        known = found.get(key)
        found[key] = record if known is None else dataclasses.replace(known, count=known.count + record.count)
    return list(found.values())


def _key(record: SanitizerRecord) -> Key:
    """What makes two records one: kind, place and access; for leaks and API errors the call. No address, no thread."""
    other = (record.other.line, record.other.pc) if record.other else None
    place = (without_template(record.function or ""), record.line, record.pc)
    access = (record.access, record.space, record.size)
    leak = (record.size, _caller(record)) if record.is_leak else None
    name = record.message if record.tool_kind == "unknown" else record.tool_kind
    return (name, record.kind, place, None if record.is_leak else access, other, record.api, record.number, leak)


def _caller(record: SanitizerRecord) -> object:
    """Where the program itself allocated: the last frame of its `main` program, told apart by offset."""
    frames = [frame.pc for frame in record.host_frames if frame.function == "main"]
    return frames[0] if frames else None


def _joined(xml: Sequence[SanitizerRecord], text: Sequence[SanitizerRecord]) -> tuple[SanitizerRecord, ...]:
    by_key = {_key(record): record for record in text}
    joined = [_best_of(record, by_key.pop(_key(record), None)) for record in xml]
    return (*joined, *by_key.values())


def _best_of(xml: SanitizerRecord, text: SanitizerRecord | None) -> SanitizerRecord:
    if text is None:
        return xml
    return dataclasses.replace(
        xml,
        message=text.message if len(text.message) > len(xml.message) else xml.message,
        address=xml.address if xml.address is not None else text.address,
        kernel=_longer(xml.kernel, text.kernel),
        function=_longer(xml.function, text.function),
        allocation=text.allocation if text.address == xml.address else None,
        thread=xml.thread or text.thread,
        block=xml.block or text.block,
        frames=xml.frames or text.frames,
        level=xml.level or text.level,
        count=max(xml.count, text.count),
        log_line=text.log_line,
    )


def _longer(xml: str | None, text: str | None) -> str | None:
    """The text knows template arguments, the XML only the name."""
    return max(xml or "", text or "", key=len) or None


def _disagreements(xml: Sequence[SanitizerRecord], text: Sequence[SanitizerRecord]) -> tuple[str, ...]:
    in_xml, in_text = {_key(r): r for r in xml}, {_key(r): r for r in text}
    lost = [f"only in the text: {_brief(r)}" for key, r in in_text.items() if key not in in_xml]
    extra = [f"only in the XML: {_brief(r)}" for key, r in in_xml.items() if key not in in_text]
    counts = [
        f"{_brief(r)}: {r.count} in the XML, {in_text[key].count} in the text"
        for key, r in in_xml.items()
        if key in in_text and in_text[key].count != r.count
    ]
    return tuple((lost + extra + counts)[:20])


def _brief(record: SanitizerRecord) -> str:
    where = f" in {record.function}" if record.function else ""
    line = f":{record.line}" if record.line else ""
    return f"{record.message[:80]}{where}{line}"


def _unknown(text: TextReport | None, xml: XmlReport | None) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for part in (text, xml):
        for kind, count in part.unknown.items() if part else ():
            counts[kind] = max(counts[kind], count)
    return dict(counts)
