"""Explanation by a jump to where no code is."""

from __future__ import annotations

from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.instructions import (
    names_an_access,
    names_no_access,
    sort_of_jump,
    standing,
)
from cudadiag.diagnose.explanations.words import (
    as_told,
    best,
    left_open,
    numbers_words,
    only_text,
    place,
    printed_words,
)
from cudadiag.diagnose.interface import Expects, Explanation, Finding, not_asked, refuted, supported, untested
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.core.reader import MAX_RUNNING
from cudadiag.model import FaultKind


class WildJump(Explanation):
    """A call through a pointer that points to no function."""

    name = "wild-jump"
    title = "A jump to where no code is (function pointer, smashed stack)"
    predicts = "718, or 716 without an access, or a hang whose core file shows an indirect call or jump at the pc"
    expects: ClassVar[Expects] = {Experiment.COREDUMP: "an indirect jump", Experiment.MEMCHECK: "no access"}
    advice = "check the index into the table of functions; look for an overrun of a local array"

    def weigh(self, evidence: Evidence) -> Finding:
        found = evidence.with_kind(FaultKind.INVALID_PC)
        left = not_asked(evidence, Experiment.MEMCHECK)
        if found and left:
            return untested(f"718; {left}, which may name a bad read of the pointer", found)
        if found and only_text(evidence, found):
            return supported(printed_words(found), found, suggested=True)
        if found:
            return supported(as_told(f"an invalid program counter in {place(best(found).caused)}", found), found)
        odd = evidence.with_kind(FaultKind.MISALIGNED_ADDRESS)
        if odd:
            return _by_716(odd, left)
        if evidence.hangs:
            return _by_hang(evidence)
        if not evidence.failing:
            return untested("nothing failed")
        if unseen := left_open(evidence, 716, 718):
            return untested(unseen, evidence.failing)
        return refuted(f"{numbers_words(evidence)}; a jump to no code gives 718, 716 or a hang", evidence.failing)


def _by_716(found: tuple[Witness, ...], left: str) -> Finding:
    """A jump to an address that is no instruction's is 716, as a misaligned access is."""
    jumps = [w for w in found if sort_of_jump(w.instruction)]
    if jumps:
        caused = best(jumps).caused
        target = f" to {caused.address:#x}" if caused and caused.address else ""
        return supported(f"a jump{target} in {place(caused)}: 716 at `{jumps[0].instruction}`", jumps)
    accesses = [w for w in found if names_an_access(w)]
    if accesses:
        return refuted(f"the misaligned access in {place(best(accesses).caused)} is known", accesses)
    if any(map(names_no_access, found)):
        where = place(best(found).caused)
        why = f"716 in {where}, and a checker that names every load and store names none: a jump to an odd address"
        return supported(why, found, suggested=True)
    return untested(f"716, which a jump to an odd address gives too; {left or 'no checker could be asked'}", found)


def _by_hang(evidence: Evidence) -> Finding:
    """A jump into data, or to a low address, hangs at the line of the call: what tells is the instruction there."""
    if all(w.emulated for w in evidence.hangs):
        return refuted("the emulated device looks at the target of every call", evidence.hangs)
    stood = standing(evidence.hangs)
    jumps = [text for text in stood if sort_of_jump(text)]
    seen = [w for w in evidence.hangs if w.reading.core]
    if jumps:
        why = f"its threads stand in {place(best(seen).caused)} at `{jumps[0]}`, a jump through a register"
        return supported(why, seen, suggested=True)
    cut = any(w.reading.core and len(w.reading.core.running) >= MAX_RUNNING for w in seen)
    if cut:
        why = f"no jump through a register at the first {MAX_RUNNING} places; its threads stand at more of them"
        return untested(why, seen)
    if stood and None not in stood:
        told = ", ".join(f"`{text}`" for text in stood)
        return refuted(f"its threads stand at {told}: no jump through a register", seen)
    problem = evidence.setting.problem(Experiment.COREDUMP)
    why = "a jump into data or to a low address hangs at the line of the call; the instruction there is not known"
    return untested(f"{why} ({problem})" if problem else why, evidence.hangs)
