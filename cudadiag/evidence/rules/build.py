"""How rules build their verdicts: faults out of failures and records, and the words around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadiag.evidence.allocations import NEAR_BYTES, buffers_of, named, words
from cudadiag.evidence.codes import cuda_codes, kind_of
from cudadiag.evidence.core.reading import CoreException
from cudadiag.evidence.error_lines import ErrorLine
from cudadiag.evidence.rules.view import CudaFailure, Evidence
from cudadiag.evidence.sanitizer.records import SanitizerRecord
from cudadiag.model import Allocation, Caused, Fault, FaultKind, Noticed, Outcome, Verdict


def unresolved(reason: str) -> Verdict:
    return Verdict(Outcome.UNRESOLVED, reason)


def fault(evidence: Evidence, reason: str, **fields: Any) -> Verdict:
    """A fault found by the probe's observer."""
    return Verdict(Outcome.FAULT, reason, fault=Fault(found_by=evidence.expected.observer, **fields))


def failure_fault(evidence: Evidence, failure: CudaFailure, reason: str, *, kind: FaultKind | None = None) -> Verdict:
    """A fault out of a failed CUDA call; the driver's plain words become its detail."""
    return fault(
        evidence,
        reason,
        kind=kind or kind_of(failure.number),
        name=failure.name,
        number=failure.number,
        noticed=failure.noticed,
        detail=evidence.driver_words() or evidence.xid_words(),
    )


def told(failure: CudaFailure) -> str:
    """A failure in words: `cudaErrorIllegalAddress (700), an illegal memory access was encountered, told by
    cudaMemcpy`."""
    code = cuda_codes().get(failure.number or 0)
    name = failure.name or (code.name if code else "a CUDA error")
    number = f" ({failure.number})" if failure.number is not None else ""
    text = f", {code.text}" if code and code.text else ""
    call = f", noticed at {failure.noticed.call}" if failure.noticed.call else ""
    return f"{name}{number}{text}{call}"


def noticed_of(evidence: Evidence) -> tuple[Noticed | None, str | None, int | None]:
    """Where and as what the program itself noticed a fault that another witness explains."""
    failure = evidence.told_failure
    return (failure.noticed, failure.name, failure.number) if failure else (None, None, None)


def caused_by_record(evidence: Evidence, record: SanitizerRecord) -> Caused:
    """Where a record says the fault was caused; the allocation gets the case's name for it."""
    buffers = buffers_of(evidence.facts.result)
    return Caused(
        kernel=record.kernel,
        file=record.file,
        line=record.line,
        pc=record.pc,
        block=record.block,
        thread=record.thread,
        access=record.access,
        space=record.space,
        size=record.size,
        address=record.address,
        allocation=named(record.allocation, record.address, buffers) if record.space in (None, "global") else None,
        log_line=record.log_line,
    )


def caused_by_checker(record: Mapping[str, Any]) -> Caused:
    """A memory-checker record of the emulated device; its field names are Caused's."""
    allocation = record.get("allocation")
    return Caused(
        **{key: record.get(key) for key in ("kernel", "file", "line", "pc", "access", "space", "size", "address")},
        block=_triple(record.get("block")),
        thread=_triple(record.get("thread")),
        instruction=record.get("instruction"),
        allocation=_allocation(allocation) if isinstance(allocation, Mapping) else None,
    )


def with_place(evidence: Evidence, message: str, caused: Caused) -> str:
    """A checker's message with the nearest allocation in words."""
    if caused.allocation is None or caused.allocation.distance > NEAR_BYTES:
        return message
    table = buffers_of(evidence.facts.result)
    return f"{message}: {words(caused.allocation, buffers=table, address=caused.address)}"


def caused_by_assert(line: ErrorLine) -> Caused:
    return Caused(line.kernel, line.file, line.line, block=line.block, thread=line.thread, log_line=line.log_line)


def caused_by_core(found: CoreException) -> Caused:
    return Caused(
        kernel=found.kernel,
        file=found.file,
        line=found.line,
        pc=found.offset if found.offset is not None else found.pc,
        block=found.block,
        thread=found.thread,
        instruction=found.instruction,
    )


def _allocation(data: Mapping[str, Any]) -> Allocation:
    return Allocation(
        address=int(data.get("address", 0)),
        size=int(data.get("size", 0)),
        distance=int(data.get("distance", 0)),
        side=str(data.get("side", "inside")),
        name=data.get("name"),
        state=str(data.get("state", "live")),
    )


def _triple(value: Any) -> tuple[int, int, int] | None:
    if not isinstance(value, list | tuple) or len(value) != 3:
        return None
    x, y, z = (int(part) for part in value)
    return x, y, z
