"""Explanations by a bad address."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.instructions import names_an_access, names_no_access, sort_of_jump
from cudadiag.diagnose.explanations.overflow import wrapped_words
from cudadiag.diagnose.explanations.words import (
    BAD_ACCESS,
    access,
    as_told,
    best,
    left_open,
    number_words,
    numbers_words,
    only_text,
    place,
    printed_words,
)
from cudadiag.diagnose.interface import (
    Expects,
    Explanation,
    Finding,
    Status,
    before_the_kernel,
    clean_tool,
    not_asked,
    refuted,
    supported,
    untested,
)
from cudadiag.evidence.allocations import is_far, is_null
from cudadiag.model import Caused, FaultKind

BAD_ADDRESS_NUMBERS = (700, 717)
HANGING_COPY = "an asynchronous copy of a size that is no multiple of 16 bytes never completes"


class OutOfBounds(Explanation):
    """An access outside its buffer, or to memory already freed."""

    name = "out-of-bounds"
    title = "An access outside its buffer, or to freed memory"
    predicts = (
        "memcheck records the access with its line; without it the shape faults only where the address is unmapped"
    )
    expects: ClassVar[Expects] = {Experiment.MEMCHECK: "a bad access", Experiment.COREDUMP: "an illegal address"}
    advice = "look at the index at that line for the first and the last element; compare the buffer's size with it"

    def weigh(self, evidence: Evidence) -> Finding:
        recorded = evidence.recorded(*BAD_ACCESS)
        if recorded:
            return supported(access(best(recorded)), recorded)
        finding = clean_tool(evidence, Experiment.MEMCHECK, "bad access")
        reported = evidence.with_number(*BAD_ADDRESS_NUMBERS)
        if finding.status is Status.UNTESTED and reported and not not_asked(evidence, Experiment.MEMCHECK):
            why = f"{number_words(reported[:1])}: an address the device cannot map, and no checker named it"
            return supported(f"{why} ({finding.why})", reported, suggested=True)
        by_tool = finding.status is Status.REFUTED and not before_the_kernel(evidence)
        if by_tool and any(w.tool for w in evidence.under(Experiment.MEMCHECK.value)):
            # An overrun in local memory can go unseen.
            return replace(finding, why=f"{finding.why} (global and shared memory)")
        return finding

    def advise(self, evidence: Evidence) -> str:
        recorded = evidence.recorded(*BAD_ACCESS)
        caused = (best(recorded).caused if recorded else None) or Caused()
        near = caused.allocation
        if recorded and (best(recorded).kind is FaultKind.USE_AFTER_FREE or (near and near.state == "freed")):
            name = f"`{near.name}`" if near and near.name else "the buffer"
            return f"find who frees {name} before this access: keep it until its last use, also on other streams"
        if caused.space in (None, "global") and is_null(caused.address):
            return "find where that pointer comes from: an allocation that failed (malloc in a kernel too), or none"
        wrapped = wrapped_words(evidence)
        if wrapped:
            return f"look whether that line computes its index in 32 bits: the address is {wrapped}"
        if near is not None and is_far(near):
            return "look at how that line makes its address: an index that is far too large or wrapped, a stale pointer"
        return self.advice


class StackOverflow(Explanation):
    """The stack of a thread is too small."""

    name = "stack-overflow"
    title = "A thread's stack overflows"
    predicts = "memcheck says stack overflow; other observers see 700 or 714"
    expects: ClassVar[Expects] = {Experiment.MEMCHECK: "a stack overflow"}
    advice = "less recursion, smaller local arrays, or cudaDeviceSetLimit(cudaLimitStackSize, ...)"

    def weigh(self, evidence: Evidence) -> Finding:
        recorded = (*evidence.recorded(FaultKind.HARDWARE_STACK), *evidence.with_number(714))
        if recorded:
            suggested = only_text(evidence, recorded)
            why = as_told(f"the stack overflows in {place(best(recorded).caused)}", recorded)
            return supported(printed_words(recorded) if suggested else why, recorded, suggested=suggested)
        if unseen := left_open(evidence, *BAD_ADDRESS_NUMBERS, 714):
            return untested(unseen, evidence.failing)
        if not evidence.with_number(*BAD_ADDRESS_NUMBERS) and evidence.failing:
            return refuted(f"{numbers_words(evidence)}; a stack overflow gives 700 or 714", evidence.failing)
        return clean_tool(evidence, Experiment.MEMCHECK, "stack overflow")


class Misalignment(Explanation):
    """An address or a size is no multiple of what the hardware asks for."""

    name = "misalignment"
    title = "An address or a size that is no multiple of what the hardware asks for"
    predicts = "716, or a hang of an asynchronous copy; the rule of the failing shapes has a modulus"
    expects: ClassVar[Expects] = {Experiment.MEMCHECK: "a misaligned access"}
    advice = "round the size or the row length up to the multiple (16 bytes for vector loads and bulk copies)"

    def weigh(self, evidence: Evidence) -> Finding:
        if evidence.with_kind(FaultKind.MISALIGNED_ADDRESS):
            return _by_716(evidence)
        modulus = [rule.expression for rule in evidence.subject.rules if re.search(r"%|\bmod\b", rule.expression)]
        if evidence.hangs and modulus:
            return supported(f"it hangs where {modulus[0]}; {HANGING_COPY}", evidence.hangs, suggested=True)
        if not evidence.failing:
            return untested("nothing failed")
        if evidence.hangs and not evidence.subject.rules:
            return untested("a hang whose rule is not known: `cudadiag bisect` finds out whether it has a modulus")
        if evidence.hangs:
            told = " and ".join(f"`{rule.expression}`" for rule in evidence.subject.rules)
            why = f"{HANGING_COPY}; the rule ({told}) has no modulus, which does not exclude it"
            return untested(why, evidence.hangs)
        if unseen := left_open(evidence, 716):
            return untested(unseen, evidence.failing)
        rule = f"; the modulus in the rule ({modulus[0]}) must come from something else" if modulus else ""
        return refuted(f"{numbers_words(evidence)}; a misaligned access gives 716{rule}", evidence.failing)


def _by_716(evidence: Evidence) -> Finding:
    """A misaligned access, or a jump to an address that is no instruction's: both are 716."""
    found = evidence.with_kind(FaultKind.MISALIGNED_ADDRESS)
    accesses = [w for w in found if names_an_access(w)]
    if accesses:
        return supported(f"a misaligned access in {place(best(accesses).caused)}", accesses)
    jumps = [w for w in found if sort_of_jump(w.instruction)]
    if jumps:
        return refuted(f"716 at `{jumps[0].instruction}`: the target of a jump is misaligned, no access", jumps)
    left = not_asked(evidence, Experiment.MEMCHECK)
    if left:
        return untested(f"716; {left}, which tells whether an access or a jump", found)
    where = place(best(found).caused)
    if any(map(names_no_access, found)):
        why = f"716 in {where}, and a checker that names every load and store names none: a jump, or a copy engine"
        return untested(why, found)
    why = f"{number_words(found[:1])}; no checker could say whether an access or a jump was misaligned"
    return supported(why, found, suggested=True)
