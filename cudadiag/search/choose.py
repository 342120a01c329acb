"""Which shape to run next: where the surviving rules disagree most, for the money."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.belief import Belief
from cudadiag.search.tally import Tally
from cudadiag.search.target import Floats

NEARLY = 0.98
"""Shapes within 2 % of the best are as good: one of them is drawn, so that no fixed order can be played against."""
MOST_GROUPED = 64


@dataclass(frozen=True)
class Choice:
    """A column of the table worth running, with the information it is expected to give (bits)."""

    column: int
    gain: float


def entropy(shares: Floats) -> Floats:
    """Bits, elementwise -p log2 p."""
    safe = np.clip(shares, 1e-30, 1.0).astype(np.float64)
    return np.asarray(-safe * np.log2(safe))


def gains(belief: Belief, rate: float) -> Floats:
    """Expected information of one run at each shape of the table: H(what is seen) - H(what is seen | rule).

    One-sided noise: a shape that a rule names fails with probability `rate`. At rate 1 this is the entropy of the
    vote."""
    seen = belief.chances * rate
    fails = np.clip(seen.sum(axis=0), 0.0, 1.0)
    total = entropy(seen).sum(axis=0) + entropy(1 - fails)
    if rate < 1:
        noise = float(entropy(np.array([rate, 1 - rate])).sum())
        total -= fails / rate * noise
    return np.asarray(np.maximum(total, 0.0))


def by_cost(gain: Floats, chances: Floats, tally: Tally) -> Floats:
    """Information for the time it is expected to take: a hang costs its whole limit, a pass a moment."""
    every, fail = tally.mean_cost_s, tally.mean_fail_cost_s
    if every is None or fail is None or every <= 0:
        return gain
    expected = every + np.clip(chances.sum(axis=0), 0, 1) * max(0.0, fail - every)
    return np.asarray(gain / expected)


def pick(worth: Floats, allowed: NDArray[np.bool_], generator: np.random.Generator) -> int | None:
    """A column among the best allowed ones, None where nothing is worth a run."""
    usable = np.where(allowed, worth, 0.0)
    top = usable.max(initial=0.0)
    if top <= 1e-9:
        return None
    return int(generator.choice(np.flatnonzero(usable >= NEARLY * top)))


def choose(
    belief: Belief, tally: Tally, allowed: NDArray[np.bool_], count: int, generator: np.random.Generator
) -> list[Choice]:
    """Up to `count` columns that together split the surviving rules best: the first by its own worth, each next one
    by what it still tells after those before it.

    Claim: none. Source: generalised binary search (Nowak, arXiv 0910.4397). Expected cost about the entropy of the
    prior."""
    chances = belief.chances
    gain = gains(belief, belief.noise.rate)
    worth = by_cost(gain, chances, tally)
    allowed = allowed.copy()
    chosen: list[Choice] = []
    while len(chosen) < count:
        column = pick(worth, allowed, generator)
        if column is None:
            break
        chosen.append(Choice(column, float(gain[column])))
        allowed[column] = False
        if len(chosen) < count:
            worth = by_cost(_after(belief, [c.column for c in chosen]), chances, tally)
    return chosen


def _after(belief: Belief, columns: list[int]) -> Floats:
    """Expected entropy of each shape's vote once the given columns are known, in the likeliest view's widest
    posterior."""
    fitted = min(belief.views[0].posteriors, key=lambda p: float(p.shares[0]))
    if len(columns) > 6:  # 2^6 groups say enough; beyond, only the last ones count
        columns = columns[-6:]
    _, group = np.unique(fitted.bits[:, columns] @ (1 << np.arange(len(columns))), return_inverse=True)
    groups = min(int(group.max()) + 1, MOST_GROUPED)
    weights = np.zeros((groups, len(group)), dtype=np.float32)
    kept = group < groups
    weights[group[kept], np.flatnonzero(kept)] = fitted.shares[kept]
    mass = weights.sum(axis=1, keepdims=True)
    votes = (weights @ fitted.bits) / np.maximum(mass, 1e-12)
    return np.asarray((mass * (entropy(votes) + entropy(1 - votes))).sum(axis=0))
