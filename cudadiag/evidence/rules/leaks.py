"""What was never freed, in words. No line of a kernel causes a leak: it is told by how much, whose, allocated where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cudadiag.evidence.allocations import Buffer, buffers_of
from cudadiag.evidence.names import base_name
from cudadiag.evidence.rules.build import fault
from cudadiag.evidence.rules.view import Evidence
from cudadiag.evidence.sanitizer.records import Frame, SanitizerRecord
from cudadiag.evidence.sanitizer.report import MAX_FOLDED
from cudadiag.model import FaultKind, Verdict

_RUNTIME = re.compile(r"cu(?:da)?[A-Z]|libcudart|__libc_|_start$|_?Py|ffi_call")
"""Beginnings of functions that allocate for somebody else: CUDA's, C's and Python's own."""
MOST = 4


def recorded_leak(evidence: Evidence, records: Sequence[Mapping[str, Any]]) -> Verdict:
    """The fault of memory that the emulated device still held at its end."""
    sizes = [int((r.get("allocation") or {}).get("size", 0)) for r in records]
    return _leak(evidence, len(sizes), sum(sizes), _messages(records))


def reported_leak(evidence: Evidence, records: Sequence[SanitizerRecord]) -> Verdict:
    """The fault of memory that compute-sanitizer reports as leaked."""
    buffers = buffers_of(evidence.facts.result)
    count, total = sum(r.count for r in records), sum((r.size or 0) * r.count for r in records)
    report = evidence.reading.sanitizer
    cut = report is not None and (report.not_printed or len(report.records) >= MAX_FOLDED)
    return _leak(evidence, count, total, [_record_words(r, buffers) for r in records], "at least " if cut else "")


def _leak(evidence: Evidence, count: int, total: int, told: Sequence[str], least: str = "") -> Verdict:
    allocations = f"{least}{count} allocation{'s' if count != 1 else ''}"
    summary = f"{allocations} of {total} bytes in all never freed"
    shown = [*told[:MOST], *(["..."] if len(told) > MOST else [])]
    return fault(evidence, summary, kind=FaultKind.LEAK, detail="; ".join(shown))


def _messages(records: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(record.get("message") or "an allocation") for record in records]


def _record_words(record: SanitizerRecord, buffers: Sequence[Buffer]) -> str:
    name = next((buffer.name for buffer in buffers if buffer.address == record.address), None)
    again = f", {record.count} times" if record.count > 1 else ""
    if name:
        return f"{record.message}{again} (`{name}`)"
    caller = _caller(record.host_frames)
    return f"{record.message}{again}{f', allocated in {caller}' if caller else ''}"


def _caller(frames: Sequence[Frame]) -> str | None:
    """The innermost function that is not the runtime's own."""
    names = (frame.function for frame in frames if frame.function)
    return next((base_name(name) for name in names if not _RUNTIME.match(name)), None)
