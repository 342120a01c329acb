"""compute-sanitizer and cuda-memcheck in a log: evidence's reader over the lines that carry the tool's mark."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence

from cudadiag.evidence.caused import caused_by_record
from cudadiag.evidence.codes import kind_of
from cudadiag.evidence.sanitizer import SanitizerRecord, SanitizerReport, sanitizer_report
from cudadiag.model import FaultKind, Noticed
from cudadiag.triage.sign import Role, Sign

MARK = "========="
_OLD_PLACE = re.compile(
    r"\bat (?P<pc>0x[0-9a-fA-F]+) in (?P<file>.+?):(?P<line>\d{1,9}):(?P<function>.+)$"
    r"|\bat (?P<pc2>0x[0-9a-fA-F]+) in (?P<function2>[^/\s].*)$"
)
"""cuda-memcheck wrote the place the other way round: `at 0x148 in file.cu:9:scatter(int*)`."""


class Sanitizer:
    """The reader of the text report."""

    name = "sanitizer"

    def takes(self, text: str) -> bool:
        return text.lstrip().startswith(MARK) and text.strip().strip("=") != ""

    def read(self, lines: Sequence[tuple[int, str]], process: str | None) -> Iterator[Sign]:
        numbers = [number for number, _ in lines]
        data = "\n".join(_new_place(text.lstrip()) for _, text in lines).encode("utf-8", "replace")
        yield from report_signs(sanitizer_report(None, data), numbers)


def _new_place(text: str) -> str:
    match = _OLD_PLACE.search(text)
    if match is None:
        return text
    if match["file"]:
        return f"{text[: match.start()]}at {match['function']}+{match['pc']} in {match['file']}:{match['line']}"
    return f"{text[: match.start()]}at {match['function2']}+{match['pc2']}"


def report_signs(report: SanitizerReport, numbers: Sequence[int] = ()) -> Iterator[Sign]:
    """The records of a report as signs. `numbers[i]` is the log's number of the report's line i + 1."""
    for record in report.records:
        at = record.log_line or 1
        line = numbers[at - 1] if 0 < at <= len(numbers) else at
        if record.is_api:
            yield _api_sign(record, line)
        elif record.is_leak or record.is_advice:
            yield _record_sign(record, line, weak=True)
        else:
            yield _record_sign(record, line)
    yield from _health(report.health_detail, numbers)


def _record_sign(record: SanitizerRecord, line: int, *, weak: bool = False) -> Sign:
    innermost = record.frames[0] if record.frames else None
    caused = dataclasses.replace(
        caused_by_record(record),
        file=record.file or (innermost.file if innermost else None),
        line=record.line if record.line is not None else (innermost.line if innermost else None),
        log_line=line,
    )
    return Sign(
        Role.CONTEXT if record.is_advice else Role.DEVICE,
        line,
        record.message[:400],
        kind=record.kind,
        caused=None if record.is_leak else caused,  # no line of a kernel causes a leak
        cause="sanitizer-advice" if record.is_advice else None,
        words=record.message[:300],
        count=record.count,
        weak=weak,
    )


def _api_sign(record: SanitizerRecord, line: int) -> Sign:
    launch = record.number == 1 and ("Launch" in (record.api or "") or "SetAttribute" in (record.api or ""))
    return Sign(
        Role.CUDA,
        line,
        record.message[:400],
        kind=FaultKind.LAUNCH_LIMIT if launch else kind_of(record.number),
        name=record.name,
        number=record.number,
        noticed=Noticed(record.api, None, None, line, record.message[:200]),
        words="seen by the sanitizer",
        count=record.count,
    )


def _health(details: Iterable[str], numbers: Sequence[int]) -> Iterator[Sign]:
    for detail in details:
        yield Sign(
            Role.CONTEXT, numbers[-1] if numbers else 1, detail[:400], cause="tool-unhealthy",
            words="the sanitizer did not check everything: its silence proves nothing",
        )  # fmt: skip
