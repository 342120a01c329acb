"""What was never freed, in words. No line of a kernel causes a leak: it is told by how much, whose, allocated where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cudadiag.evidence.allocations import Buffer, buffers_of
from cudadiag.evidence.rules.build import fault
from cudadiag.evidence.rules.view import Evidence
from cudadiag.evidence.sanitizer.records import Frame, SanitizerRecord
from cudadiag.model import FaultKind, Verdict

_RUNTIME = ("cu", "libcudart", "_", "Py", "py")
"""Beginnings of functions that allocate for somebody else: CUDA's, C's and Python's own."""
MOST = 4


def recorded_leak(evidence: Evidence, records: Sequence[Mapping[str, Any]]) -> Verdict:
    """The fault of memory that the emulated device still held at its end."""
    return _leak(evidence, [int((r.get("allocation") or {}).get("size", 0)) for r in records], _messages(records))


def reported_leak(evidence: Evidence, records: Sequence[SanitizerRecord]) -> Verdict:
    """The fault of memory that compute-sanitizer reports as leaked."""
    buffers = buffers_of(evidence.facts.result)
    return _leak(evidence, [r.size or 0 for r in records], [_record_words(r, buffers) for r in records])


def _leak(evidence: Evidence, sizes: Sequence[int], told: Sequence[str]) -> Verdict:
    allocations = f"{len(sizes)} allocation{'s' if len(sizes) != 1 else ''}"
    summary = f"{allocations} of {sum(sizes)} bytes in all never freed"
    shown = [*told[:MOST], *(["..."] if len(told) > MOST else [])]
    return fault(evidence, summary, kind=FaultKind.LEAK, detail="; ".join(shown))


def _messages(records: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(record.get("message") or "an allocation") for record in records]


def _record_words(record: SanitizerRecord, buffers: Sequence[Buffer]) -> str:
    name = next((buffer.name for buffer in buffers if buffer.address == record.address), None)
    owner = f" (`{name}`)" if name else ""
    caller = _caller(record.host_frames)
    return f"{record.message}{owner}{f', allocated in {caller}' if caller else ''}"


def _caller(frames: Sequence[Frame]) -> str | None:
    """The innermost function that is not the runtime's own."""
    names = (frame.function for frame in frames if frame.function)
    return next((name for name in names if not name.startswith(_RUNTIME)), None)
