"""Explanations about the report, not the cause: noticed late, carried over."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence, outcomes_words
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.interface import Expects, Explanation, Finding, refuted, supported, untested
from cudadiag.diagnose.witness import Witness
from cudadiag.model import FaultKind


class NoticedLate(Explanation):
    """The call that reports the error is not the one that caused it."""

    name = "noticed-late"
    title = "The error is noticed late: the call and line it names are innocent"
    predicts = "with CUDA_LAUNCH_BLOCKING=1 another call (the launch) reports it than without"
    competes = False
    expects: ClassVar[Expects] = {Experiment.PLAIN: "a later call", Experiment.BLOCKING: "the launch"}
    advice = "do not debug the line of the message; the cause is above"

    def weigh(self, evidence: Evidence) -> Finding:
        plain, blocking = evidence.under("plain"), evidence.under("blocking")
        if not plain or not blocking:
            return untested("needs a run with and one without CUDA_LAUNCH_BLOCKING")
        late, early = _calls(plain), _calls(blocking)
        if not late and not early:
            return refuted("no call reports an error without a tool", [*plain, *blocking])
        if not late or not early:
            which = "with" if early else "without"
            return untested(f"only {which} blocking a call reports it", [*plain, *blocking])
        if set(late) & set(early):
            return refuted(f"{late[0]} reports the error, with CUDA_LAUNCH_BLOCKING=1 and without", [*plain, *blocking])
        return supported(
            f"without CUDA_LAUNCH_BLOCKING=1 {late[0]} reports the error, with it {early[0]} does", [*plain, *blocking]
        )


def _calls(witnesses: Sequence[Witness]) -> list[str]:
    """Which calls (and lines of the program) told the error; the driver's log where there is one, since a program need
    not check every call."""
    return [_logged(w) or _told(w) for w in witnesses if w.error_number is not None and (_logged(w) or _told(w))]


def _logged(witness: Witness) -> str:
    log = witness.reading.driver_log or ()
    call = next((entry.call for entry in log if entry.is_error and entry.is_sticky and entry.call), "")
    return _unversioned(call)


def _unversioned(call: str) -> str:
    """Without the version of the entry point, which the driver's log names as well."""
    return re.sub(r"_v\d+$", "", call)


def _told(witness: Witness) -> str:
    noticed = witness.fault.noticed if witness.fault else None
    if noticed is None or not (noticed.call or noticed.line):
        return ""
    return f"{_unversioned(noticed.call or 'a call')}{f' at line {noticed.line}' if noticed.line else ''}"


class CarriedOver(Explanation):
    """An error, or a state, that an earlier shape left behind."""

    name = "carried-over"
    title = "Carried over from an earlier shape (a stale error, a state left behind)"
    predicts = "alone in a fresh process the shape passes; after its predecessors it fails"
    competes = False
    expects: ClassVar[Expects] = {Experiment.ALONE: "passes"}
    needs_cuda = False
    advice = "run every shape in a process of its own; look at what the others leave: errors not checked, buffers kept"

    def weigh(self, evidence: Evidence) -> Finding:
        alone = [w for w in evidence.alone if w.outcome.is_evidence]
        if not alone:
            return untested("not run alone yet")
        fails_under = {w.observer for w in alone if w.outcome.is_failure}
        same = [w for w in alone if w.observer in fails_under]
        if same:
            return refuted(f"it fails alone, in a fresh process ({outcomes_words(same)})", same)
        before = len(evidence.subject.sequence) - 1
        if not evidence.failing and before < 1:
            return untested("it passes alone; it was not run after other shapes", alone)
        if not evidence.failing:
            return refuted(f"it passes alone, and after {before} other{'s' if before != 1 else ''}", alone)
        left = LEFT.get(evidence.failing[0].kind, "what they left")
        why = f"it passes alone and fails after {before} other{'s' if before != 1 else ''}: {left}"
        steady = all(w.outcome.is_failure for w in evidence.same_again)
        rate = "" if steady else f" ({outcomes_words(evidence.same_again)}: it may be chance)"
        return supported(f"{why}{rate}", [*alone, *evidence.failing], suggested=not steady)


LEFT: Mapping[FaultKind | None, str] = {
    FaultKind.POISONED_CONTEXT: "their error",
    FaultKind.OUT_OF_MEMORY: "memory that they did not free",
}
"""What earlier shapes left behind, by how this one fails."""
