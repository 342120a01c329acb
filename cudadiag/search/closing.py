"""What every strategy ends with: the rate of the fault, the proof over the earlier shapes, the confirming repeats,
the claim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Claim
from cudadiag.search import rate as noise
from cudadiag.search.answer import Rate, ShapeRuns
from cudadiag.search.observation import Probe, Purpose
from cudadiag.search.settings import DEFAULT_RATE_REPEATS, Settings
from cudadiag.search.tally import Tally

FLAKY_RUNS = 11  # runs that the rate of a flaky fault is measured with before the search goes on (grizzly's choice)


def rate_probes(tally: Tally, settings: Settings) -> list[Probe]:
    """Repeats of the first failing shape: `rate_repeats`, and more once it turned out to be flaky.

    Claim: none by itself; gives the rate that says how many passes count as passing. Assumes that fresh processes are
    independent. Costs 3 probes (fewer where they are dear), 11 where the fault is flaky."""
    if tally.first is None:
        return []
    shape = _most_run(tally)
    if tally.flaky:
        wanted = max(settings.rate_repeats, FLAKY_RUNS)
    elif settings.rate_repeats == DEFAULT_RATE_REPEATS:
        wanted = worthwhile(tally.fail_cost_s.get(shape), settings, settings.rate_repeats)
    else:
        wanted = settings.rate_repeats
    missing = wanted - tally.repeats[1]
    return [Probe(shape, Purpose.RATE, missing)] if missing > 0 and tally.runnable(settings)[shape] else []


def worthwhile(cost_s: float | None, settings: Settings, most: int) -> int:
    """Repeats that are worth what each costs, `most` where that is not known or proof is asked for."""
    if cost_s is None or settings.prove:
        return most
    return noise.worthwhile(cost_s / settings.parallelism, most, settings.flaky_share)


def _most_run(tally: Tally) -> int:
    runs = np.where(tally.failing, tally.fails + tally.passes, 0)
    return int(runs.argmax())


def passes_needed(tally: Tally, shapes: int, settings: Settings) -> int:
    """Passing runs that each of `shapes` shapes needs, given what is known about the rate.

    A proof is held to a fifth of the error that `confidence` allows: `proven` must not be wrong where `implied` would
    do."""
    return noise.repeats_needed(tally.pessimistic_rate, 1 - (1 - settings.confidence) / 5, shapes)


def passed_too_seldom(tally: Tally, settings: Settings) -> NDArray[np.bool_]:
    """Shapes that only passed, and in so few runs that a failing one could have: under a flaky fault only. Each shape
    is looked at by itself."""
    return tally.passing & (tally.passes < passes_needed(tally, 1, settings))


def unproven(tally: Tally, first: int, settings: Settings) -> NDArray[np.int64]:
    """Passing runs still missing for each shape before `first` (0 where there are enough); shapes given up count as
    missing."""
    return np.maximum(passes_needed(tally, first, settings) - tally.passes[:first], 0)


def proof_probes(
    tally: Tally, first: int, settings: Settings, generator: np.random.Generator | None = None
) -> list[Probe]:
    """The runs missing before `first` can be called proven, the next `parallelism` of them in sweep order, or at
    random.

    Claim: `proven`. Assumes nothing about the shapes. Costs one probe for each earlier shape not run (r of them where
    the fault is flaky)."""
    missing = np.where(tally.runnable(settings)[:first], unproven(tally, first, settings), 0)
    wanted = np.flatnonzero(missing)
    if generator is not None:
        wanted = generator.permutation(wanted)
    return [Probe(int(i), Purpose.PROVE, int(missing[i]), expected="pass") for i in wanted[: settings.parallelism]]


def is_cheap(probes: int, tally: Tally, settings: Settings) -> bool:
    """Whether so many more probes are few, or take little time as measured so far (side by side they take less)."""
    if settings.prove or probes <= settings.cheap_probes:
        return True
    return tally.mean_cost_s is not None and probes * tally.mean_cost_s / settings.parallelism <= settings.cheap_s


def confirm_probes(tally: Tally, first: int, settings: Settings) -> list[Probe]:
    """Repeats at the end: the first failing shape once more, and repeats of failing shapes until `confirm_repeats` in
    all.

    Claim: a fault that failed every time counts as deterministic. Failures are repeated as often as that is worth (a
    hang costs its whole limit), the first failing shape at least once."""
    if not tally.runnable(settings)[first]:
        return []
    again = 1 if tally.fails[first] < 2 and not tally.flaky else 0
    worth = worthwhile(tally.fail_cost_s.get(first), settings, settings.confirm_repeats)
    missing = 0 if tally.flaky else worth - tally.repeats[1]
    count = max(again, missing) if settings.confirm_repeats else 0
    return [Probe(first, Purpose.CONFIRM, count)] if count > 0 else []


def proof_confidence(tally: Tally, first: int, settings: Settings) -> float:
    """Chance that no shape before `first` is failing after all, given their passing runs (union bound)."""
    if first == 0:
        return 1.0
    if not tally.flaky:
        return noise.deterministic_confidence(tally.repeats[1], settings.flaky_share)
    miss = (1 - tally.pessimistic_rate) ** tally.passes[:first].astype(float)
    return max(0.0, 1 - float(miss.sum()))


def measured_rate(tally: Tally, where: NDArray[np.bool_] | None = None) -> Rate | None:
    """The share of failing runs over the shapes `where` (default: those that failed), None before anything failed.

    Over the shapes that failed, the failure that showed each to be failing is left out (it was looked for); over shapes
    chosen otherwise, such as all that a rule names, every run counts."""
    if tally.first is None:
        return None
    if where is None:
        fails, runs = tally.repeats
    else:
        fails, runs = int(tally.fails[where].sum()), int((tally.fails + tally.passes)[where].sum())
    low, high = noise.interval(fails, runs)
    counted = np.flatnonzero((tally.failing if where is None else where) & (tally.fails + tally.passes > 0))
    each = tuple(ShapeRuns(i, int(tally.fails[i]), int(tally.fails[i] + tally.passes[i])) for i in counted.tolist())
    return Rate(tally.flaky, fails, runs, fails / runs if runs else 1.0, low, high, repeats=where is None, each=each)


@dataclass(frozen=True)
class Claimed:
    """A claim with its confidence and the words for it."""

    claim: Claim
    confidence: float
    text: str


def claim_by_proof(tally: Tally, settings: Settings) -> Claimed | None:
    """`proven` where the evidence is enough for it, else None."""
    first = tally.first
    if first is None or unproven(tally, first, settings).any():
        return None
    if first == 0:
        return Claimed(Claim.PROVEN, 1.0, "proven: it is the first shape of the sweep")
    runs = passes_needed(tally, first, settings)
    each = "" if runs == 1 else f" at least {runs} times each"
    text = f"proven: all {first} earlier shapes were run{each} and pass"
    return Claimed(Claim.PROVEN, proof_confidence(tally, first, settings), text)


def claim_none_found(tally: Tally, sweep_size: int) -> Claimed:
    """`none-found (k of N run)`. With nothing failing the rate is unknown, so each pass counts as seen once."""
    run = int(tally.passing.sum())
    text = f"none-found ({run} of {sweep_size} run)"
    if 3 < run < sweep_size:  # the bound says nothing below that
        text += f"; at most {3 / run:.1%} of the shapes fail, with 95 % confidence, if these were a fair sample"
    return Claimed(Claim.NONE_FOUND, 1.0 if run == sweep_size else 0.0, text)


def claim_boundary(tally: Tally, first: int, settings: Settings) -> Claimed:
    """`boundary`: the lowest failing shape known, with what is not known before it."""
    missing = int((unproven(tally, first, settings) > 0).sum())
    unknown = int(tally.given_up(settings)[:first].sum())
    text = f"boundary: {missing} of the {first} earlier shapes were not run enough to say"
    if unknown:
        text += f", {unknown} of them stayed unresolved"
    return Claimed(Claim.BOUNDARY, 0.0, text)
