"""One-sided noise: a shape without the fault never fails, a shape with it fails in a share `rate` of fresh processes.

Everything here is exact binomial arithmetic. Sources: Clopper and Pearson 1934 for the interval; the number of
repeats is the r of (1 - rate)^r <= 1 - confidence, with the union bound where several shapes must all count as
passing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

GRID = tuple(i / 100 for i in range(1, 101))
MOST_REPEATS = 200


def interval(fails: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper–Pearson interval of a share, (0, 1) without runs."""
    if runs == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if fails == 0 else _solve(lambda p: 1 - _cdf(fails - 1, runs, p), tail)
    high = 1.0 if fails == runs else _solve(lambda p: 1 - _cdf(fails, runs, p), 1 - tail)
    return low, high


def _cdf(k: int, n: int, p: float) -> float:
    if p <= 0:
        return 1.0
    if p >= 1:
        return 1.0 if k >= n else 0.0
    logs = (
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(k + 1)
    )
    return min(1.0, sum(math.exp(v) for v in logs))


def _solve(rising: Callable[[float], float], target: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < target else (low, middle)
    return (low + high) / 2


def pessimistic(fails: int, runs: int, share: float = 0.01) -> float:
    """A rate that the true one is below in a `share` of cases, given `fails` of `runs` and a flat prior.

    Being pessimistic costs runs; being optimistic costs the promise (a shape would count as passing too soon): at one
    case of ten, one in two hundred proofs about a fault of rate one half rested on a rate that a streak made look
    high."""
    weights = [
        math.exp(fails * math.log(p) + (runs - fails) * math.log1p(-p)) if p < 1 else float(fails == runs) for p in GRID
    ]
    total, seen = sum(weights), 0.0
    for p, weight in zip(GRID, weights, strict=True):
        seen += weight
        if seen >= share * total:
            return p
    return 1.0


def repeats_needed(rate: float, confidence: float, shapes: int = 1) -> int:
    """Passing runs that each of `shapes` shapes needs before all of them count as passing with this confidence."""
    if rate >= 1:
        return 1
    miss = (1 - confidence) / max(1, shapes)
    return min(MOST_REPEATS, max(1, math.ceil(math.log(miss) / math.log1p(-rate))))


def capacity(rate: float) -> float:
    """Bits that one yes/no probe can carry at best through one-sided noise (the Z-channel): 1 at rate 1."""
    if rate >= 1:
        return 1.0
    if rate <= 0:
        return 0.0
    miss = 1 - rate
    return math.log2(1 + rate * miss ** (miss / rate))


def deterministic_confidence(repeats: int) -> float:
    """How sure a fault that failed in all of `repeats` repeats fails always, enough for one pass to count as passing.

    Prior: nine faults in ten are deterministic, the others have any rate equally likely. Returns the chance that a
    single pass of a faulty shape did not mislead: 1 - P(flaky | all failed) * E[1 - rate]."""
    flaky = 0.1 / (repeats + 1)
    return 1 - flaky / (0.9 + flaky) / (repeats + 2)
