"""The evidence about each shape, counted from the observations. The one place that says what counts as evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Outcome, Sweep
from cudadiag.search import rate as noise
from cudadiag.search.observation import Observation, Purpose
from cudadiag.search.settings import Settings

Counts = NDArray[np.int64]
Label = tuple[str, str | None]
"""An outcome with its signature: what rules are told apart by."""

MOST_SIGNATURES = 3


@dataclass(frozen=True)
class Tally:
    """Runs alone (or first in their process), per shape. `labels[i]` is the commonest failure of a failing shape,
    `fail_cost_s[i]` the mean cost of its failing runs where it is known.

    Only evidence counts: an `unresolved` run is counted in `unresolved` and nowhere else (`hopeless` where its reason
    cannot change); a run after others in one
    process says nothing about the shape alone. A shape that ever failed alone is failing, however often it passed.
    """

    passes: Counts
    fails: Counts
    unresolved: Counts
    hopeless: NDArray[np.bool_]
    labels: Mapping[int, Label]
    processes: int
    mean_cost_s: float | None
    mean_fail_cost_s: float | None
    fail_cost_s: Mapping[int, float]
    signatures_folded: bool = False

    @cached_property
    def failing(self) -> NDArray[np.bool_]:
        hits: NDArray[np.bool_] = self.fails > 0
        return hits

    @cached_property
    def passing(self) -> NDArray[np.bool_]:
        clean: NDArray[np.bool_] = (self.passes > 0) & (self.fails == 0)
        return clean

    @cached_property
    def flaky(self) -> bool:
        return bool(((self.fails > 0) & (self.passes > 0)).any())

    @property
    def repeats(self) -> tuple[int, int]:
        """(fails, runs) over the failing shapes, leaving out the failure that showed each of them to be failing.

        The unbiased estimate where a shape was run until it failed (negative binomial sampling), and where it was then
        repeated a fixed number of times."""
        failing = self.failing
        return int((self.fails[failing] - 1).sum()), int((self.fails + self.passes)[failing].sum() - failing.sum())

    @property
    def pessimistic_rate(self) -> float:
        """1 while no failing shape ever passed; else a rate the true one is rarely below."""
        return noise.pessimistic(*self.repeats) if self.flaky else 1.0

    def given_up(self, settings: Settings) -> NDArray[np.bool_]:
        """Shapes that stayed unresolved through all their retries and have no evidence: unknown, not asked for
        again."""
        none: NDArray[np.bool_] = self.fails + self.passes == 0
        return none & ((self.unresolved > settings.retries) | self.hopeless)

    def runnable(self, settings: Settings) -> NDArray[np.bool_]:
        """Shapes that may still be asked for: one that keeps coming back unresolved is left alone, even if it once
        passed."""
        return (self.unresolved - (self.passes + self.fails) <= settings.retries) & ~self.hopeless

    @property
    def first(self) -> int | None:
        """The first shape in sweep order known to fail."""
        hits = np.flatnonzero(self.failing)
        return int(hits[0]) if hits.size else None


def tally(sweep: Sweep, observations: Sequence[Observation]) -> Tally:
    """Count the observations. Raises IndexError for a shape that is not in the sweep (a ledger of another sweep)."""
    n = len(sweep)
    passes, fails, unresolved = (np.zeros(n, dtype=np.int64) for _ in range(3))
    hopeless = np.zeros(n, dtype=bool)
    seen: dict[int, dict[Label, int]] = {}
    costs: dict[bool, list[float]] = {True: [], False: []}
    by_shape: dict[int, list[float]] = {}
    for o in observations:
        if not 0 <= o.shape < n:
            raise IndexError(f"observation of shape {o.shape}, but the sweep has {n} shapes")
        if o.cost_s is not None:
            costs[o.outcome.is_failure].append(o.cost_s)
        if not o.alone:
            continue
        if not o.outcome.is_evidence:
            unresolved[o.shape] += 1
            hopeless[o.shape] |= o.final
        elif o.outcome is Outcome.PASS:
            passes[o.shape] += 1
        else:
            fails[o.shape] += 1
            if o.cost_s is not None:
                by_shape.setdefault(o.shape, []).append(o.cost_s)
            counted = seen.setdefault(o.shape, {})
            label = (o.outcome.value, o.signature)
            counted[label] = counted.get(label, 0) + 1
    labels, folded = _labels(seen)
    everything = _mean(costs[True] + costs[False])
    failing = {shape: sum(found) / len(found) for shape, found in by_shape.items()}
    spent = _processes(observations)
    return Tally(passes, fails, unresolved, hopeless, labels, spent, everything, _mean(costs[True]), failing, folded)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _labels(seen: dict[int, dict[Label, int]]) -> tuple[dict[int, Label], bool]:
    """The commonest label of each failing shape. Where there are more signatures than rules could be learnt for, or
    one shape shows several, they are folded into their outcome: a signature that changes from run to run separates
    nothing."""
    unstable = any(len({s for _, s in counted}) > 1 for counted in seen.values())
    everything = {label for counted in seen.values() for label in counted}
    fold = unstable or len(everything) > MOST_SIGNATURES
    labels: dict[int, Label] = {}
    for shape, counted in sorted(seen.items()):
        folded: dict[Label, int] = {}
        for (outcome, signature), count in counted.items():
            key = (outcome, None if fold else signature)
            folded[key] = folded.get(key, 0) + count
        labels[shape] = max(sorted(folded, key=str), key=lambda label: folded[label])
    return labels, fold and len({s for _, s in everything}) > 1


def _processes(observations: Sequence[Observation]) -> int:
    """Processes the observations came from: one for each run alone or first."""
    return sum(1 for o in observations if o.alone)


def count_purpose(observations: Sequence[Observation], purpose: Purpose) -> int:
    return sum(1 for o in observations if o.purpose is purpose and o.alone)
