"""Explanation by the host program."""

from __future__ import annotations

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.explanations.words import HOST_KINDS, numbers_words
from cudadiag.diagnose.interface import Explanation, Finding, refuted, supported, untested
from cudadiag.diagnose.witness import Witness
from cudadiag.model import Outcome


class HostProgram(Explanation):
    """The program fails by itself, on the CPU."""

    name = "host-program"
    title = "A fault in the host program"
    predicts = (
        "it dies of a signal, an exception or an exit status of its own, and no CUDA call and no tool reports anything"
    )
    needs_cuda = False
    advice = "debug it as any program: the traceback above, gdb, or an address sanitizer"

    def weigh(self, evidence: Evidence) -> Finding:
        found = [w for w in evidence.failing if w.kind in HOST_KINDS]
        device = [w for w in evidence.failing if w.kind not in HOST_KINDS and w.outcome is Outcome.FAULT]
        if found and not device:
            return supported(_how(found[0]), found)
        if found:
            return refuted(
                f"with the device's own fault beside it, its end is a consequence ({numbers_words(evidence)})", device
            )
        if not evidence.failing:
            return untested("nothing failed yet")
        if evidence.hangs and not evidence.uses_cuda:
            return supported("it hangs by itself: no CUDA device is in use", evidence.hangs)
        return refuted(f"the program did not die by itself: {numbers_words(evidence)}", evidence.failing)


def _how(witness: Witness) -> str:
    fault = witness.fault
    place = fault.noticed if fault else None
    where = f" at {place.file}:{place.line}" if place and place.file and place.line else ""
    return f"{witness.judged.verdict.reason}{where}"
