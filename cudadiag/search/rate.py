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
FLAKY_SHARE = 0.1
"""Of faults nobody knows anything about; a judgement, in the open."""
WRONG_ANSWER_S = 3 * 3600.0
"""What it costs to be misled by a flaky fault that looked deterministic: a morning. With one hour, false claims about
flaky faults that take 5 to 30 s to fail became twice as many in simulations; with three they did not."""


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


def deterministic_confidence(repeats: int, flaky_share: float = FLAKY_SHARE) -> float:
    """How sure a fault that failed in all of `repeats` repeats fails always, enough for one pass to count as passing.

    Prior: all but `flaky_share` of the faults are deterministic, the others have any rate equally likely. Returns the
    chance that a single pass of a faulty shape did not mislead: 1 - P(flaky | all failed) * E[1 - rate]."""
    flaky = flaky_share / (repeats + 1)
    return 1 - flaky / (1 - flaky_share + flaky) / (repeats + 2)


def worthwhile(cost_s: float, most: int, flaky_share: float = FLAKY_SHARE) -> int:
    """Repeats of a failing shape, `most` at most, that are worth `cost_s` seconds each: the next one is where what it
    adds to `deterministic_confidence`, times what a wrong answer costs, is more.

    With the default prior: 11 up to 1.3 s each, 6 at 5 s, 3 at 30 s, 1 from 100 s on."""
    count = 0
    while count < most:
        gain = deterministic_confidence(count + 1, flaky_share) - deterministic_confidence(count, flaky_share)
        if gain * WRONG_ANSWER_S < cost_s:
            break
        count += 1
    return count


def at_least(repeats: int, confidence: float = 0.95) -> float:
    """What failed in all of `repeats` repeats has a rate above this, with one-sided confidence."""
    return float((1 - confidence) ** (1 / repeats)) if repeats else 0.0
