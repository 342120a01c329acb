"""What else a report should say: axes without effect, sweeps that hide bugs, evidence that contradicts itself."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from cudadiag.model import Axis, Scalar, Sweep
from cudadiag.search.answer import Rate
from cudadiag.search.settings import Settings
from cudadiag.search.tally import Tally

HIDING = (64, 32, 16, 8)
"""A sweep with no size between multiples of these never meets the tail of a tile."""


def with_structure(measured: Rate, flat: bool) -> Rate:
    return dataclasses.replace(measured, whatever_the_shape=flat)


def axes_without_effect(sweep: Sweep, predicted: Sequence[str | None]) -> tuple[str, ...]:
    """Axes along which no prediction changes (shapes that differ on that axis only have the same outcome)."""
    found = []
    for j, axis in enumerate(sweep.axes):
        seen: dict[tuple[Scalar, ...], set[str | None]] = defaultdict(set)
        for shape, outcome in zip(sweep.shapes, predicted, strict=True):
            seen[(*shape[:j], *shape[j + 1 :])].add(outcome)
        compared = len(seen) < len(sweep.shapes)
        if compared and len(axis.values) > 1 and all(len(outcomes) == 1 for outcomes in seen.values()):
            found.append(axis.name)
    return tuple(found)


def sweep_warnings(sweep: Sweep) -> tuple[str, ...]:
    """How the sweep itself hides bugs."""
    return tuple(w for axis in sweep.axes for w in _axis_warnings(axis))


def _axis_warnings(axis: Axis) -> list[str]:
    sizes = [v for v in axis.values if isinstance(v, int) and not isinstance(v, bool)]
    if len(sizes) != len(axis.values) or len(sizes) < 2:
        return []
    for unit in HIDING:
        if all(v % unit == 0 for v in sizes):
            advice = f"a bug in the tail of a tile cannot show; add {max(sizes) - 1}"
            return [f"every value of {axis.name} is a multiple of {unit}: {advice}"]
    if len(sizes) >= 4 and all(v > 0 and v & (v - 1) == 0 for v in sizes):
        advice = f"add neighbours such as {max(sizes) - 1} and {max(sizes) // 2 + 1}"
        return [f"every value of {axis.name} is a power of two: {advice}"]
    if len(sizes) >= 4 and all(v % 2 == 0 for v in sizes):
        return [f"every value of {axis.name} is even: add an odd one such as {max(sizes) - 1}"]
    return []


def tally_warnings(tally: Tally, settings: Settings) -> tuple[str, ...]:
    found = []
    unknown = int(tally.given_up(settings).sum())
    if unknown:
        stayed = "shapes stayed" if unknown > 1 else "shape stayed"
        count = "count" if unknown > 1 else "counts"
        once = bool((tally.hopeless & tally.given_up(settings)).any())
        tries = f"{settings.retries + 1} tries{', or one where the reason cannot change,' if once else ''}"
        found.append(f"{unknown} {stayed} unresolved after {tries} and {count} as unknown")
    if tally.signatures_folded:
        found.append("signatures vary from run to run or are too many: rules are per outcome, not per signature")
    return tuple(found)


def contradictions(sweep: Sweep, tally: Tally) -> tuple[str, ...]:
    """Pairs of shapes, one failing and one passing, that differ in one step of one axis only: where a simple rule
    breaks."""
    failing, passing = set(tally.failing.nonzero()[0].tolist()), set(tally.passing.nonzero()[0].tolist())
    found = []
    last = sweep.axes[-1]
    for index in sorted(failing):
        if index + 1 in passing and index - 1 in passing:
            found.append(
                f"{last.name}={sweep.shape(index)[last.name]} fails between two passing shapes (shape {index})"
            )
    return tuple(found[:5])
