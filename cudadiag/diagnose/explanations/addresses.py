"""Explanations by a bad address."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.words import access, best, numbers_words, place
from cudadiag.diagnose.interface import (
    Expects,
    Explanation,
    Finding,
    Status,
    clean_tool,
    not_asked,
    refuted,
    supported,
    untested,
)
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.allocations import Buffer, buffers_of
from cudadiag.model import Caused, FaultKind

BAD_ACCESS = (FaultKind.OUT_OF_BOUNDS, FaultKind.USE_AFTER_FREE, FaultKind.ILLEGAL_ADDRESS)
BAD_ADDRESS_NUMBERS = (700, 717)
WRAPS = (1 << 31, 1 << 32)
NULL_PAGE = 1 << 20
NEAR_BYTES = 16 << 20
"""An address this near to a buffer was reached by an index that is a little off, not by one that wrapped."""


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
            why = f"the device reported {reported[0].error_number}, an address it cannot map; no checker named it"
            return supported(f"{why} ({finding.why})", reported, suggested=True)
        return finding


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
            return supported(f"the stack overflows in {place(best(recorded).caused)}", recorded)
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
        found = evidence.with_kind(FaultKind.MISALIGNED_ADDRESS)
        left = not_asked(evidence, Experiment.MEMCHECK)
        if found and left:
            return untested(f"716; {left}, which tells whether an access or a jump", found)
        if found and without_access(found):
            why = f"716 in {place(best(found).caused)}, but no checker knows an access: a copy engine, or a jump"
            return supported(why, found, suggested=True)
        if found:
            return supported(f"a misaligned access in {place(best(found).caused)}", found)
        modulus = [rule.expression for rule in evidence.subject.rules if re.search(r"%|\bmod\b", rule.expression)]
        if evidence.hangs and modulus:
            why = "an asynchronous copy of a size that is no multiple of 16 bytes never completes"
            return supported(f"it hangs where {modulus[0]}; {why}", evidence.hangs, suggested=True)
        if not evidence.failing:
            return untested("nothing failed")
        if evidence.hangs and not evidence.subject.rules:
            return untested("a hang whose rule is not known: `cudadiag bisect` finds out whether it has a modulus")
        rule = f"; the modulus in the rule ({modulus[0]}) must come from something else" if modulus else ""
        return refuted(f"{numbers_words(evidence)}; a misaligned access gives 716{rule}", evidence.failing)


def without_access(found: Sequence[Witness]) -> bool:
    """memcheck saw the exception, and no load or store behind it."""
    records = [r for w in found for r in w.findings if r.kind is FaultKind.MISALIGNED_ADDRESS]
    return bool(records) and all(record.access is None for record in records)


class IntegerOverflow(Explanation):
    """An index that does not fit into 32 bits."""

    name = "integer-overflow"
    title = "An index that overflows 32 bits"
    predicts = "the bad address lies 2^31 or 2^32 elements away from the buffer it was meant for"
    expects: ClassVar[Expects] = {Experiment.MEMCHECK: "an address 2^31 or 2^32 elements away"}
    advice = "compute the index in 64 bits: static_cast<size_t>(row) * columns"

    def weigh(self, evidence: Evidence) -> Finding:
        recorded = [w for w in evidence.recorded(*BAD_ACCESS) if w.caused and w.caused.address is not None]
        for witness in recorded:
            wrapped = next(_wraps(witness.caused or Caused(), buffers_of(witness.result)), None)
            if wrapped:
                return supported(f"{place(witness.caused)}: {wrapped}", [witness])
        if recorded and all(_is_near(w.caused) for w in recorded):
            return refuted("the bad address is next to a buffer, not 2^31 or 2^32 elements away", recorded)
        spaces = {w.caused.space for w in recorded if w.caused}
        if recorded and not spaces & {None, "global"}:
            return refuted(f"the bad address is in {' and '.join(map(str, spaces))} memory", recorded)
        if recorded and all(w.caused and (w.caused.address or 0) < NULL_PAGE for w in recorded):
            return refuted("the bad address is next to zero: a null pointer", recorded)
        if recorded:
            return untested("the bad address is far from every buffer; which one was meant is not known", recorded)
        largest = max((buffer.size for buffer in evidence.buffers), default=None)
        if largest is not None and largest < WRAPS[0] // 2:
            return refuted(f"the largest buffer has {largest} bytes, far from 2^31 elements", evidence.own[:1])
        crossing = _crossing(evidence)
        if crossing and evidence.failing:
            return supported(crossing, evidence.failing, suggested=True)
        if not evidence.with_number(*BAD_ADDRESS_NUMBERS) and evidence.failing:
            return refuted(f"{numbers_words(evidence)}, not a bad address", evidence.failing)
        return clean_tool(evidence, Experiment.MEMCHECK, "bad address")


def _wraps(caused: Caused, buffers: Sequence[Buffer]) -> Iterator[str]:
    """The buffers that the address would be in, had the index not wrapped: the case's, else the nearest allocation."""
    if caused.address is None or _is_near(caused):
        return
    near = caused.allocation
    known = buffers or ([Buffer(near.name or "the allocation", near.address, near.size)] if near else [])
    for buffer in known:
        for item in sorted({buffer.item_bytes or caused.size or 1, caused.size or 1}):
            for power in WRAPS:
                for meant in (caused.address + power * item, caused.address - power * item):
                    if buffer.address <= meant < buffer.address + buffer.size:
                        bits = power.bit_length() - 1
                        yield f"2^{bits} elements of {item} bytes from byte {meant - buffer.address} of `{buffer.name}`"


def _is_near(caused: Caused | None) -> bool:
    near = caused.allocation if caused else None
    return near is not None and near.distance < NEAR_BYTES


def _crossing(evidence: Evidence) -> str | None:
    """A named quantity that this shape takes beyond 31 or 32 bits, where the rule names it."""
    text = " ".join(rule.expression for rule in evidence.subject.rules)
    for name, value in evidence.derived.items():
        if isinstance(value, int) and value >= WRAPS[0] and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text):
            return f"{name} is {value} here, more than 31 bits hold, and the rule is about it"
    return None
