"""The strategies that read the sweep as one ordered line: linear, exhaustive and bisection."""

from __future__ import annotations

import math

import numpy as np

from cudadiag.model import Claim
from cudadiag.search import closing
from cudadiag.search.closing import Claimed
from cudadiag.search.observation import Probe, Purpose
from cudadiag.search.settings import Settings
from cudadiag.search.tally import Tally


def linear_probes(tally: Tally, settings: Settings) -> list[Probe]:
    """Run the shapes in sweep order until one fails.

    Claim: `proven`. Assumes nothing. Costs i + 1 probes for a first failing shape at position i (an adversary can ask
    for no less), times the repeats that a flaky fault demands."""
    end = len(tally.passes) if tally.first is None else tally.first
    untested = (tally.passes + tally.fails == 0) & tally.runnable(settings)
    scan = [Probe(int(i), Purpose.SCAN) for i in np.flatnonzero(untested[:end])[: settings.parallelism]]
    if scan or tally.first is None:
        return scan
    return _close(tally, tally.first, settings)


def exhaustive_probes(tally: Tally, settings: Settings) -> list[Probe]:
    """Run every shape.

    Claim: `proven`, and the whole failing set. Assumes nothing. Costs one probe a shape, times the repeats of a flaky
    fault."""
    untested = (tally.passes + tally.fails == 0) & tally.runnable(settings)
    scan = [Probe(int(i), Purpose.SCAN) for i in np.flatnonzero(untested)[: settings.parallelism]]
    if scan or tally.first is None:
        return scan
    closed = _close(tally, tally.first, settings)
    if closed or not tally.flaky:
        return closed
    n = len(tally.passes)
    missing = np.maximum(closing.passes_needed(tally, n, settings) - tally.passes, 0)
    missing[tally.failing | ~tally.runnable(settings)] = 0
    return [Probe(int(i), Purpose.PROVE, int(missing[i])) for i in np.flatnonzero(missing)[: settings.parallelism]]


def _close(tally: Tally, first: int, settings: Settings) -> list[Probe]:
    return (
        closing.rate_probes(tally, settings)
        or closing.proof_probes(tally, first, settings)
        or closing.confirm_probes(tally, first, settings)
    )


def scan_claim(tally: Tally, settings: Settings) -> Claimed:
    if tally.first is None:
        return closing.claim_none_found(tally, len(tally.passes))
    return closing.claim_by_proof(tally, settings) or closing.claim_boundary(tally, tally.first, settings)


def bisect_probes(tally: Tally, settings: Settings) -> list[Probe]:
    """Halve between the last shape that passes and the first that fails.

    Claim: `assumed` (the failing shapes are an upper tail of the sweep; nothing here checks it), `boundary` where a
    shape after the failing one passes. Costs 2 + log2 n probes and the repeats of the rate, times the repeats that a
    flaky fault demands (union bound over the path). Source: folklore; the repeats as in Karp and Kleinberg's noisy
    search, one-sided."""
    n = len(tally.passes)
    runnable = tally.runnable(settings)
    tested = tally.passes + tally.fails > 0
    ends = [Probe(i, Purpose.SCAN) for i in dict.fromkeys((0, n - 1)) if not tested[i] and runnable[i]]
    if ends or tally.first is None:
        return ends
    high = tally.first
    rate = closing.rate_probes(tally, settings)
    if rate or high == 0:
        return rate or closing.confirm_probes(tally, high, settings)
    needed = _path_repeats(tally, settings)
    low = _last_passing(tally, high, needed)
    between = [i for i in range(low + 1, high) if runnable[i]]
    if not between:
        return closing.confirm_probes(tally, high, settings)
    middle = min(between, key=lambda i: abs(2 * i - low - high))
    return [Probe(middle, Purpose.SCAN, max(1, needed - int(tally.passes[middle])))]


def _path_repeats(tally: Tally, settings: Settings) -> int:
    return closing.passes_needed(tally, math.ceil(math.log2(max(2, len(tally.passes)))), settings)


def _last_passing(tally: Tally, high: int, needed: int) -> int:
    passing = np.flatnonzero(tally.passes[:high] >= needed)
    return int(passing[-1]) if passing.size else -1


def bisect_claim(tally: Tally, settings: Settings) -> Claimed:
    first = tally.first
    if first is None:
        claimed = closing.claim_none_found(tally, len(tally.passes))
        if tally.passes[-1]:
            text = f"{claimed.text}; the last shape passes, so bisection cannot start: try the strategy rules"
            return Claimed(claimed.claim, claimed.confidence, text)
        return claimed
    proven = closing.claim_by_proof(tally, settings)
    if proven is not None:
        return proven
    if bool(tally.passing[first:].any()) or _last_passing(tally, first, _path_repeats(tally, settings)) != first - 1:
        return closing.claim_boundary(tally, first, settings)
    text = f"assumed: the shape before it passes; {_span(first)} (bisection takes the failing shapes for an upper tail)"
    return Claimed(Claim.ASSUMED, closing.proof_confidence(tally, 1, settings), text)


def _span(first: int) -> str:
    return f"{first - 1} earlier ones are taken to pass, not all run"
