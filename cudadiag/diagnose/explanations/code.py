"""Explanations by the machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import REBUILT, Experiment
from cudadiag.diagnose.explanations.instructions import bare
from cudadiag.diagnose.explanations.words import as_told, best, numbers_words, only_text, place, printed_words
from cudadiag.diagnose.interface import (
    Expects,
    Explanation,
    Finding,
    before_the_kernel,
    not_asked,
    refused_words,
    refuted,
    supported,
    untested,
)
from cudadiag.diagnose.witness import HOST_KINDS, Witness
from cudadiag.evidence.codes import is_sticky
from cudadiag.model import FaultKind

MISSING_CODE = (200, 209, 218, 222)
WAYS = {
    Experiment.UNOPTIMISED: "without optimisation",
    Experiment.BY_DRIVER: "compiled by the driver from PTX",
}
BARRIERS = ("WARPSYNC", "BAR.", "SYNCS", "B2B")
"""Instructions of a barrier: an argument they do not take is an illegal instruction, too."""


class Miscompile(Explanation):
    """The machine code is wrong, or for another architecture."""

    name = "miscompile"
    title = "Miscompiled, or compiled for another architecture"
    predicts = "715 (an instruction that is none) or 209 (no code for this device); or it is right when built otherwise"
    expects: ClassVar[Expects] = {
        Experiment.UNOPTIMISED: "passes",
        Experiment.BY_DRIVER: "passes",
        Experiment.COREDUMP: "no instruction at the pc",
    }
    advice = (
        "compile with another compiler version and without optimisation, look at the instruction at the pc (nvdisasm)"
    )

    def weigh(self, evidence: Evidence) -> Finding:
        missing = [w for w in evidence.failing if w.kind is FaultKind.NO_KERNEL_IMAGE or w.error_number in MISSING_CODE]
        if missing:
            if only_text(evidence, missing):
                return supported(printed_words(missing), missing, suggested=True)
            why = f"the binary has no machine code for this device{_device(missing[0], evidence)}"
            return supported(as_told(why, missing), missing)
        if evidence.with_kind(FaultKind.ILLEGAL_INSTRUCTION):
            return _by_715(evidence)
        if evidence.failing and (found := _by_other_builds(evidence)):
            return found
        return _no_fault_of_the_device(evidence) or untested(_left_open(evidence))

    def advise(self, evidence: Evidence) -> str:
        if any(w.emulated for w in evidence.with_kind(FaultKind.ILLEGAL_INSTRUCTION)):
            return "look at that line for inline PTX, a trap, a path that must not be reached; then ask a GPU"
        return self.advice


def _by_715(evidence: Evidence) -> Finding:
    """An illegal instruction: wrong machine code, or a sound instruction with an argument it does not take."""
    illegal = evidence.with_kind(FaultKind.ILLEGAL_INSTRUCTION)
    barrier = evidence.recorded(FaultKind.BARRIER)
    if barrier:
        return refuted("synccheck recorded a barrier error: a barrier with a wrong mask gives 715 too", barrier)
    at_barrier = [w for w in illegal if bare(w.instruction or "").startswith(BARRIERS)]
    if at_barrier:
        return refuted(f"the instruction at the pc is a barrier, `{at_barrier[0].instruction}`", at_barrier)
    left = not_asked(evidence, Experiment.SYNCCHECK, Experiment.MEMCHECK, Experiment.COREDUMP)
    if left:
        return untested(f"715, which a barrier with a wrong mask gives too; {left}", illegal)
    if only_text(evidence, illegal):
        return supported(printed_words(illegal), illegal, suggested=True)
    code = next((f", `{w.instruction}`" for w in illegal if w.instruction), "")
    why = as_told(f"an illegal instruction in {_where(best(illegal))}{code}", illegal)
    if all(w.emulated for w in illegal):
        why += "; the emulated device has a compiler of its own: the source, or a plant, is likelier than a GPU's"
        return supported(why, illegal, suggested=True)
    built = _built_otherwise(evidence)
    return supported(f"{why}; {_otherwise(built)}" if built else why, [*illegal, *_witnesses(built)])


def _no_fault_of_the_device(evidence: Evidence) -> Finding | None:
    """Refuted where the device itself did nothing wrong; None where wrong machine code could be behind the failure."""
    failing = evidence.failing
    early = before_the_kernel(evidence)
    if early:
        return early
    if failing and all(w.kind in HOST_KINDS and w.kind is not FaultKind.HOST_EXIT for w in failing):
        return refuted("the program died by itself, on the host", failing)  # an exit status may tell a wrong result
    told = [w for w in failing if w.tool is None]
    passing = all(w.error_number is not None and not is_sticky(w.error_number) for w in told)
    if told and passing and not refused_words(evidence):
        return refuted(f"{numbers_words(evidence)}: a call was refused, no kernel failed", told)
    right = [w for w in evidence.without_tool if w.compared]
    if right and not evidence.fails_without_tool and not evidence.hangs:
        return refuted("without a tool it runs and is right", right)
    return None


def _left_open(evidence: Evidence) -> str:
    """Why it is open: any fault of an address, a wrong result or a hang can come from wrong machine code."""
    if not evidence.failing:
        return "nothing failed"
    refused = refused_words(evidence)
    if refused:
        return f"{refused}; {_no_other_build(evidence)}"
    return f"{numbers_words(evidence)}, which wrong machine code can give too; {_no_other_build(evidence)}"


def _where(witness: Witness) -> str:
    caused = witness.caused
    pc = f", pc {caused.pc:#x}" if caused and caused.pc is not None else ""
    return f"{place(caused)}{pc}"


Built = Mapping[Experiment, Sequence[Witness]]


def _built_otherwise(evidence: Evidence) -> Built:
    """Evidence of the same source built in other ways; a driver that refuses the PTX says nothing about the code."""
    seen = {way: [w for w in evidence.rebuilt(way) if w.outcome.is_evidence and not _refused(w)] for way in REBUILT}
    return {way: told for way, told in seen.items() if told}


def _refused(witness: Witness) -> bool:
    return witness.kind is FaultKind.NO_KERNEL_IMAGE or witness.error_number in MISSING_CODE


def _by_other_builds(evidence: Evidence) -> Finding | None:
    """How it stands by them, None where they tell nothing. That the driver's compiler gives the same does not refute:
    it may be the same compiler."""
    built = _built_otherwise(evidence)
    witnesses, why = _witnesses(built), _otherwise(built)
    if any(not _fails(told) for told in built.values()):
        recorded = evidence.recorded(*FaultKind)
        if recorded:
            return untested(f"{why}; but a checker recorded a fault, which need not show in every build", witnesses)
        return supported(why, [*evidence.failing, *witnesses], suggested=True)
    return refuted(why, witnesses) if Experiment.UNOPTIMISED in built else None


def _witnesses(built: Built) -> list[Witness]:
    return [witness for told in built.values() for witness in told]


def _fails(told: Sequence[Witness]) -> bool:
    return any(w.outcome.is_failure for w in told)


def _otherwise(built: Built) -> str:
    """`without optimisation it is right, compiled by the driver from PTX it fails too`; "" where nothing was built."""
    return ", ".join(f"{WAYS[way]} it {'fails too' if _fails(told) else 'is right'}" for way, told in built.items())


def _no_other_build(evidence: Evidence) -> str:
    """Why no other build decided."""
    setting = evidence.setting
    problems = [problem for way in REBUILT if (problem := setting.problem(way)) is not None]
    if len(problems) == len(REBUILT):
        return "; ".join(dict.fromkeys(problems))
    built = _otherwise(_built_otherwise(evidence))
    if built:
        return f"{built}, which may be the same compiler"
    if any(map(_refused, evidence.rebuilt(Experiment.BY_DRIVER))):
        return "the driver refuses the PTX (it is older than the compiler of it)"
    return "not built in another way"


def _device(witness: Witness, evidence: Evidence) -> str:
    told = witness.judged.line.facts.device_facts.get("compute_capability")
    number = evidence.setting.capability
    if isinstance(told, list | tuple) and len(told) == 2:
        number = 10 * int(told[0]) + int(told[1])
    device = f" (sm_{number})" if number is not None else ""
    built = evidence.setting.built_for
    return f"{device}; it was built for {', '.join(built)}" if built else device
