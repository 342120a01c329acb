"""Explanation by memory that runs out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.explanations.words import BAD_ACCESS, numbers_words
from cudadiag.diagnose.interface import Explanation, Finding, refuted, supported, untested
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.allocations import Buffer, announced, is_null
from cudadiag.model import FaultKind
from cudadiag.report.style import bytes_words


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
            return supported(f"{_asked(found[0])}{_growth(found[0])}", found)
        if not evidence.failing:
            return untested("nothing failed")
        if all(w.kind is FaultKind.OUT_OF_MEMORY for w in evidence.failing):
            return untested("out of memory only under a tool, which needs memory of its own", evidence.failing)
        null = [w for w in evidence.recorded(*BAD_ACCESS) if _is_null(w)]
        if null:
            why = "a null pointer in a kernel: malloc there gives one when the device's heap is full"
            return untested(f"{why} (cudaLimitMallocHeapSize)", null)
        return refuted(f"{numbers_words(evidence)}, and no allocation failed{_room(evidence)}", evidence.failing)

    def advise(self, evidence: Evidence) -> str:
        left = next((_growth(w) for w in _ran_out(evidence) if _growth(w)), "")
        return (
            "find the allocation that every shape leaves behind: free it before the next one" if left else self.advice
        )


def _is_null(witness: Witness) -> bool:
    caused = witness.caused
    return caused is not None and caused.space in (None, "global") and is_null(caused.address)


def _ran_out(evidence: Evidence) -> tuple[Witness, ...]:
    """Tools take memory of their own: what runs out under one says nothing of the shape."""
    return tuple(w for w in evidence.with_kind(FaultKind.OUT_OF_MEMORY) if w.tool is None)


def _asked(witness: Witness) -> str:
    call = witness.fault.noticed.call if witness.fault and witness.fault.noticed else None
    buffer = _next_buffer(witness)
    size = f" ({_size(buffer.size)})" if buffer and buffer.size else ""
    what = f" for `{buffer.name}`{size}" if buffer else ""
    memory = witness.result.get("memory")
    free = f", {_size(memory.get('free_before'))} were free" if isinstance(memory, Mapping) else ""
    return f"{call or 'an allocation'} returned out of memory{what}{free}"


def _next_buffer(witness: Witness) -> Buffer | None:
    """The buffer whose allocation failed: the first one announced and not made. Its size is 0 where it is not known."""
    made = witness.result.get("buffers") or ()
    crumbs = [c for c in witness.judged.line.facts.breadcrumbs if c.step == "allocate"]
    asked = crumbs[-1].detail.get("buffers", ()) if crumbs else ()
    if len(asked) <= len(made):
        return None
    return announced(asked[len(made)]) or Buffer(str(asked[len(made)].get("name")), 0, 0)


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
