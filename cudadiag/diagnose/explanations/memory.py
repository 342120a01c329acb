"""Explanation by memory that runs out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.explanations.asked import absurd, asked_bytes, next_buffer
from cudadiag.diagnose.explanations.words import (
    BAD_ACCESS,
    left_open,
    numbers_words,
    only_printed,
    only_text,
    printed_words,
)
from cudadiag.diagnose.interface import Explanation, Finding, refuted, supported, untested
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.allocations import is_null
from cudadiag.model import FaultKind
from cudadiag.report.style import bytes_words

OVERFLOWED = "a size that overflowed, or was computed from what nobody set, looks so"


class MemoryExhausted(Explanation):
    """The device has no memory left: this shape's own demand, or what earlier shapes did not free."""

    name = "memory-exhausted"
    title = "The device's memory is exhausted"
    predicts = (
        "an allocation returns 2 (out of memory), the peak is near what was free, free memory falls over the sweep"
    )
    advice = "ask for less, or free what is no longer needed"

    def weigh(self, evidence: Evidence) -> Finding:
        found = _ran_out(evidence)
        if found:
            absurdly = f"; {large}: {OVERFLOWED}" if (large := absurd(evidence)) else ""
            why = f"{_asked(found[0])}{_growth(found[0])}{absurdly}"
            return supported(why, found, suggested=only_text(evidence, found))
        if not evidence.failing:
            return untested("nothing failed")
        if all(w.kind is FaultKind.OUT_OF_MEMORY for w in evidence.failing):
            return untested("out of memory only under a tool, which needs memory of its own", evidence.failing)
        null = [w for w in evidence.recorded(*BAD_ACCESS) if _is_null(w)]
        if null:
            why = "a null pointer in a kernel: malloc there gives one when the device's heap is full"
            return untested(f"{why} (cudaLimitMallocHeapSize)", null)
        if unseen := left_open(evidence, 2):
            return untested(unseen, evidence.failing)
        return refuted(f"{numbers_words(evidence)}, and no allocation failed{_room(evidence)}", evidence.failing)

    def advise(self, evidence: Evidence) -> str:
        if any(map(_growth, _ran_out(evidence))):
            return "find the allocation that every shape leaves behind: free it before the next one"
        if absurd(evidence):
            return "look at how that size is computed (in 64 bits?), and whether all it is computed from was set"
        return self.advice


def _is_null(witness: Witness) -> bool:
    caused = witness.caused
    return caused is not None and caused.space in (None, "global") and is_null(caused.address)


def _ran_out(evidence: Evidence) -> tuple[Witness, ...]:
    """Tools take memory of their own: what runs out under one says nothing of the shape."""
    return tuple(w for w in evidence.with_kind(FaultKind.OUT_OF_MEMORY) if w.tool is None)


def _asked(witness: Witness) -> str:
    call = witness.fault.noticed.call if witness.fault and witness.fault.noticed else None
    buffer = next_buffer(witness)
    size = asked_bytes(witness)
    what = f" for {_size(size)}" if size else ""
    if buffer:
        what = f" for `{buffer.name}`{f' ({_size(size)})' if size else ''}"
    memory = witness.result.get("memory")
    free = f", {_size(memory.get('free_before'))} were free" if isinstance(memory, Mapping) else ""
    if only_printed(witness):
        return f"{printed_words([witness])}{f' of {call}' if call else ''}{what}{free}"
    return f"{call or 'an allocation'} returned out of memory{what}{free}"


def _growth(witness: Witness) -> str:
    """How free memory fell from shape to shape of one process; "" where it did not."""
    free = free_by_step(witness.result)
    if len(free) < 3 or free[-1] >= free[0]:
        return ""
    each = (free[0] - free[-1]) / (len(free) - 1)
    span = f"from {_size(free[0])} to {_size(free[-1])} in {len(free)} shapes"
    return f"; free memory falls by {_size(each)} a shape, {span}"


def free_by_step(result: Mapping[str, Any]) -> Sequence[int]:
    """Free bytes before each shape of a process that ran several."""
    memories = [step.get("memory") for step in result.get("steps", ()) if isinstance(step, Mapping)]
    found = [memory.get("free_before") for memory in memories if isinstance(memory, Mapping)]
    return [value for value in found if isinstance(value, int)]


def _room(evidence: Evidence) -> str:
    asked = sum(buffer.size for buffer in evidence.buffers)
    for witness in evidence.failing:
        memory = witness.result.get("memory")
        if isinstance(memory, Mapping) and isinstance(memory.get("free_before"), int):
            return f"; its buffers take {_size(asked)} of {_size(memory['free_before'])} free"
    peaks = [w.judged.line.facts.peak_device_bytes for w in evidence.failing]
    known = [peak for peak in peaks if peak is not None]
    return f"; its peak on the device was {_size(max(known))}" if known else ""


def _size(count: Any) -> str:
    return bytes_words(int(count)) if isinstance(count, int | float) else "an unknown part"
