"""Explanations by what threads do to each other, and by memory that was never written: each has a tool of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.asked import absurd
from cudadiag.diagnose.explanations.looked import initcheck_missed, uses_shared
from cudadiag.diagnose.explanations.words import best, differing, place
from cudadiag.diagnose.interface import (
    Expects,
    Explanation,
    Finding,
    Status,
    before_the_kernel,
    clean_tool,
    refused_words,
    supported,
    untested,
)
from cudadiag.diagnose.witness import Witness
from cudadiag.model import FaultKind, Outcome


class _ByTool(Explanation):
    """What one tool of compute-sanitizer is there to find."""

    tool: ClassVar[Experiment]
    kind: ClassVar[FaultKind]
    finds: ClassVar[str]

    def more(self, witness: Witness) -> str:
        """What else the tool's record says, to be added to the place."""
        return ""

    def weigh(self, evidence: Evidence) -> Finding:
        recorded = evidence.recorded(self.kind)
        if recorded:
            return supported(f"{self.finds} in {place(best(recorded).caused)}{self.more(best(recorded))}", recorded)
        return clean_tool(evidence, self.tool, self.finds)


class Race(_ByTool):
    """Two threads use one place without order between them."""

    name = "race"
    title = "A race between threads"
    predicts = "racecheck records a hazard (in shared memory); results differ from run to run, or only without blocking"
    expects: ClassVar[Expects] = {Experiment.RACECHECK: "a hazard"}
    advice = "put a barrier (__syncthreads, __syncwarp, a stream or event wait) between the write and the read"
    tool, kind, finds = Experiment.RACECHECK, FaultKind.RACE, "hazard"

    def more(self, witness: Witness) -> str:
        record = next((r for r in witness.findings if r.kind is FaultKind.RACE and r.other), None)
        if record is None or record.other is None or record.other.line is None:
            return ""
        return f", with the {record.other_access or 'access'} at line {record.other.line}"

    def weigh(self, evidence: Evidence) -> Finding:
        finding = _of_shared_memory(super().weigh(evidence), evidence)
        plain = [w for w in evidence.under("plain") if w.outcome.is_failure]
        ordered = [w for w in evidence.under("blocking") if w.outcome.is_evidence]
        hidden = plain and ordered and not any(w.outcome.is_failure for w in ordered)
        if finding.status is Status.SUPPORTED:
            return finding
        if not hidden:
            return _by_results(finding, evidence, "as after a race")
        why = "it fails only with CUDA_LAUNCH_BLOCKING off: the order of launches or copies matters"
        return supported(why, [*plain, *ordered], suggested=True)


def _of_shared_memory(finding: Finding, evidence: Evidence) -> Finding:
    """Untested where racecheck found nothing: it looks at shared memory only. That runs alike end alike refutes
    nothing: a race can have the same winner every time."""
    if finding.status is not Status.REFUTED or before_the_kernel(evidence):
        return finding
    return replace(finding, status=Status.UNTESTED, why=f"{finding.why} in shared memory; global memory is not checked")


def _by_results(finding: Finding, evidence: Evidence, fits: str) -> Finding:
    """Wrong results that differ in runs alike come from an order that nobody made, or from memory nobody wrote."""
    differs = differing(evidence.failing)
    if not differs or finding.status is Status.SUPPORTED:
        return finding
    wrong = [w for w in evidence.failing if w.outcome is Outcome.WRONG]
    return untested(f"results differ in runs alike ({differs}), {fits}; {finding.why}", wrong)


class Uninitialised(_ByTool):
    """Memory is read that nobody wrote."""

    name = "uninitialised"
    title = "A read of memory that was never written"
    predicts = "initcheck records the read; the result depends on what the memory held before"
    expects: ClassVar[Expects] = {Experiment.INITCHECK: "an uninitialised read"}
    advice = "write the buffer before it is read (cudaMemset), or read less of it"
    tool, kind, finds = Experiment.INITCHECK, FaultKind.UNINITIALISED_READ, "uninitialised read"

    def weigh(self, evidence: Evidence) -> Finding:
        finding = super().weigh(evidence)
        if finding.status is Status.REFUTED and not before_the_kernel(evidence):
            return _of_global_memory(finding, evidence)
        refused, large = refused_words(evidence), absurd(evidence)
        if refused and large and finding.status is Status.UNTESTED:
            return replace(finding, why=f"{finding.why}; {large}, as where a size was never set")
        return _by_results(finding, evidence, "as with memory that nobody wrote")


def _of_global_memory(finding: Finding, evidence: Evidence) -> Finding:
    """With what initcheck looked at; untested where the kernels may use shared memory that it did not look at."""
    missed = initcheck_missed(evidence)
    if missed:
        why = f"{finding.why} in global memory; it did not look at {missed}"
        return replace(finding, status=Status.UNTESTED, why=why)
    unused = uses_shared(evidence) is False
    seen = "global memory; the kernel uses no shared memory" if unused else "global and shared memory"
    return replace(finding, why=f"{finding.why} ({seen})")


class BarrierMisuse(_ByTool):
    """A barrier that not all its threads reach, or reach in one form."""

    name = "barrier-misuse"
    title = "A barrier that not all its threads reach"
    predicts = "synccheck records a barrier error; without it the kernel hangs, or goes on as if nothing were wrong"
    expects: ClassVar[Expects] = {Experiment.SYNCCHECK: "a barrier error"}
    advice = "move the barrier out of divergent code; give __syncwarp the mask of the threads that are there"
    tool, kind, finds = Experiment.SYNCCHECK, FaultKind.BARRIER, "barrier error"
