"""What a test did to its process, in cudadiag's words: fault kind, signature, and the story in a few lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cudadiag.evidence import Expectations, judge, read
from cudadiag.model import Fault, FaultKind, Outcome, Verdict
from cudadiag.report.fault import caused_words, fault_title, in_kernel, is_host, noticed_words
from cudadiag.signature import signature
from harness.isolation.incident import How, Incident, Named

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOST = frozenset({FaultKind.HOST_EXCEPTION, FaultKind.HOST_EXIT})


def name(incident: Incident) -> Named:
    """The verdict on an incident. A process that is no longer usable is a failure even where nothing says why."""
    verdict = judge(incident.facts, read(incident.files), Expectations(observer=incident.observer))
    if incident.how is How.POISONED:
        verdict = _poisoned(incident, verdict)
    elif incident.how is How.DIED and verdict.outcome in (Outcome.UNRESOLVED, Outcome.PASS):
        verdict = _vanished(incident)
    found = signature(verdict)
    return Named(
        failed=verdict.outcome.is_failure,
        kind=verdict.fault.kind.value if verdict.fault else verdict.outcome.value,
        signature=found.fine if found else None,
        lines=tuple(_story(verdict, found.fine if found else None)),
        undecided=verdict.outcome is Outcome.UNRESOLVED,
    )


def _poisoned(incident: Incident, verdict: Verdict) -> Verdict:
    """The health check's word counts: what the test printed only says more where it names a device's fault."""
    fault = verdict.fault
    if verdict.outcome is Outcome.FAULT and fault is not None and fault.kind not in _HOST:
        return verdict
    reason = incident.health or verdict.reason
    return Verdict(Outcome.FAULT, reason, Fault(FaultKind.POISONED_CONTEXT, detail=reason, found_by=incident.observer))


def _vanished(incident: Incident) -> Verdict:
    """A process that ended in the middle of a test is a fault, with whatever status it went."""
    facts = incident.facts
    reason = f"it left with exit status {facts.exit_code} in the middle of a test"
    fault = Fault(FaultKind.HOST_EXIT, number=facts.exit_code, found_by=incident.observer)
    return Verdict(Outcome.FAULT, reason, fault)


def _story(verdict: Verdict, key: str | None) -> Iterator[str]:
    fault = verdict.fault
    if fault is None:
        yield f"outcome    {verdict.outcome.value}, {verdict.reason}"
    else:
        yield f"fault      {fault_title(replace(fault, detail=None))}"
        if verdict.reason:
            yield f"reason     {verdict.reason}"
        if not is_host(fault) and fault.noticed is not None:
            yield f"noticed    {noticed_words(fault.noticed)}"
        if fault.caused is not None or (in_kernel(fault) and fault.number is not None):
            yield f"caused     {caused_words(fault.caused)}"
        if fault.detail and fault.detail not in verdict.reason:
            yield f"detail     {fault.detail}"
    if key is not None:
        yield f"signature  {key}"
