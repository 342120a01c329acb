"""What a tool looked at: racecheck and, before 2025.4, initcheck see one kind of memory only."""

from __future__ import annotations

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.interface import sound
from cudadiag.diagnose.witness import Witness

EVERY_SPACE = "--initcheck-address-space"
"""The option by which initcheck looks at shared memory too; left out where the tool has no such option."""


def initcheck_missed(evidence: Evidence) -> str:
    """`shared memory`, where initcheck did not look at it and the kernels use it; `shared memory, if it uses any` where
    that is not known; "" where nothing was missed."""
    looked = [w for w in sound(evidence, Experiment.INITCHECK) if _looked_everywhere(w)]
    uses = uses_shared(evidence)
    if looked or uses is False:
        return ""
    return "shared memory" if uses else "shared memory, if it uses any"


def _looked_everywhere(witness: Witness) -> bool:
    return EVERY_SPACE in (witness.judged.line.facts.launch.get("argv") or ())


def uses_shared(evidence: Evidence) -> bool | None:
    """Whether the kernels of the case use shared memory; None for a program whose kernels nobody listed."""
    kernels = next((found for w in evidence.own if (found := w.result.get("kernels"))), None)
    launches = evidence.crumbs
    if not kernels or not launches or not all(isinstance(k.get("shared_static"), int) for k in kernels):
        return None
    return any(k["shared_static"] for k in kernels) or any(launch.get("shared") for launch in launches)
