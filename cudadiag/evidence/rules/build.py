"""How rules build their verdicts: faults out of failures and records, and the words around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cudadiag.evidence.allocations import NEAR_BYTES, buffers_of, named, words
from cudadiag.evidence.caused import caused_by_record
from cudadiag.evidence.codes import cuda_codes, kind_of
from cudadiag.evidence.rules.view import CudaFailure, Evidence
from cudadiag.evidence.sanitizer.records import SanitizerRecord
from cudadiag.model import Caused, Fault, FaultKind, Noticed, Outcome, Verdict


def unresolved(reason: str) -> Verdict:
    return Verdict(Outcome.UNRESOLVED, reason)


def fault(evidence: Evidence, reason: str, **fields: Any) -> Verdict:
    """A fault found by the probe's observer."""
    return Verdict(Outcome.FAULT, reason, fault=Fault(found_by=evidence.expected.observer, **fields))


def witnessed_fault(evidence: Evidence, reason: str, **fields: Any) -> Verdict:
    """A fault that a witness other than the program explains, under the name and at the place that the program itself
    noticed it."""
    noticed, name, number = noticed_of(evidence)
    return fault(evidence, reason, name=name, number=number, noticed=noticed, **fields)


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


def caused_in_buffer(evidence: Evidence, record: SanitizerRecord) -> Caused:
    """Where a record says the fault was caused; the allocation gets the case's name for it."""
    caused = caused_by_record(record)
    if record.space not in (None, "global"):
        return replace(caused, allocation=None)
    return replace(caused, allocation=named(record.allocation, record.address, buffers_of(evidence.facts.result)))


def with_place(evidence: Evidence, message: str, caused: Caused) -> str:
    """A checker's message with the nearest allocation in words."""
    if caused.allocation is None or caused.allocation.distance > NEAR_BYTES:
        return message
    table = buffers_of(evidence.facts.result)
    return f"{message}: {words(caused.allocation, buffers=table, address=caused.address)}"
