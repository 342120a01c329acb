"""A judged process that ran several shapes, taken apart into one judged probe for each shape that it reached."""

from __future__ import annotations

from dataclasses import replace

from cudadiag.model import Sweep
from cudadiag.session.judged import Judged
from cudadiag.session.steps import step_facts
from harness.records import ProbeFacts


def apart(judged: Judged, sweep: Sweep) -> list[Judged]:
    """In the order in which they ran; all bear the number of their probe. A process of one shape is itself.

    Each has its own verdict, measurements and share of the wall time; `sequence` ends with its shape.
    """
    line = judged.line
    if not line.sequence:
        return [judged]
    if not judged.steps:  # it came to no shape: what it shows is about the one it would have begun with
        begun = line.sequence[0]
        return [replace(judged, line=replace(line, shape=sweep.shape(begun), index=begun, sequence=(begun,)))]
    facts = [part for part, _ in step_facts(line.facts)]
    begins = [part.breadcrumbs[0].at_s if part.breadcrumbs else 0.0 for part in facts]
    ends = [*begins[1:], line.facts.wall_s]
    found = []
    for place, (part, verdict, signature) in enumerate(zip(facts, judged.steps, judged.step_signatures, strict=True)):
        index = line.sequence[place]
        own = replace(
            line,
            shape=sweep.shape(index),
            index=index,
            sequence=line.sequence[: place + 1],
            facts=_lasting(part, ends[place] - begins[place]),
        )
        found.append(Judged(own, verdict, signature))
    return found


def reached(judged: Judged) -> tuple[int, ...]:
    """The shapes (indices) that a process in sequence came to; the first of them where it broke before any."""
    return judged.line.sequence[: max(1, len(judged.steps))]


def _lasting(facts: ProbeFacts, seconds: float) -> ProbeFacts:
    return replace(facts, wall_s=max(0.0, seconds))
