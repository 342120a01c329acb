"""Explanation by a buffer that does not fit the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.words import place
from cudadiag.diagnose.interface import Expects, Explanation, Finding, clean_tool, refuted, supported
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.allocations import buffers_of
from cudadiag.model import Allocation, FaultKind

NEAR_BYTES = 64 << 10
"""An overrun that begins farther away than this (and than a row) is no buffer that is a little too short."""
NEAR_UNNAMED_BYTES = 512
"""Where the buffers are not known by name, one that was freed may have lain behind the nearest live one."""


class BufferMismatch(Explanation):
    """A buffer is smaller than what the kernel does with it."""

    name = "buffer-mismatch"
    title = "A buffer's size does not match its use (an input, a mask, the scratch)"
    predicts = "memcheck records accesses just behind the end of one of the case's buffers, and names which"
    expects: ClassVar[Expects] = {Experiment.MEMCHECK: "an access just behind a buffer"}
    advice = "compare how the buffer's size is computed with the largest index the kernel uses"

    def weigh(self, evidence: Evidence) -> Finding:
        recorded = evidence.recorded(FaultKind.OUT_OF_BOUNDS)
        behind = [(w, near) for w in recorded if (near := _just_behind(w)) is not None]
        if behind:
            witness, near = behind[0]
            name = f"`{near.name}`" if near.name else f"the allocation of {near.size} bytes"
            others = [b.name for b in evidence.buffers if b.name != near.name]
            rest = f"; no overrun of {_any_of(others)} was recorded" if others and near.name else ""
            why = f"{name} ({near.size} bytes) ends where {place(witness.caused)} goes on{rest}"
            return supported(why, [w for w, _ in behind], suggested=True)
        if recorded:
            return refuted("the bad access is not just behind a buffer", recorded)
        return clean_tool(evidence, Experiment.MEMCHECK, "access behind a buffer")


def _any_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


def _just_behind(witness: Witness) -> Allocation | None:
    near = witness.caused.allocation if witness.caused else None
    if near is None or near.side != "after" or near.state != "live":
        return None
    row = next((b.row_bytes for b in buffers_of(witness.result) if b.address == near.address), None) or 0
    limit = max(NEAR_BYTES, row) if near.name else NEAR_UNNAMED_BYTES
    return near if near.distance <= limit else None
