"""The two questions a controller asks: what to run next, and what follows from what ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudadiag.model import Sweep
from cudadiag.search import report, scan
from cudadiag.search.answer import Answer
from cudadiag.search.explain import rules_answer
from cudadiag.search.observation import Batch, Observation, Probe
from cudadiag.search.order import OrderSearch
from cudadiag.search.rules import RuleSearch
from cudadiag.search.settings import Settings, Strategy
from cudadiag.search.tally import Tally, tally


def next_probes(
    sweep: Sweep, observations: Sequence[Observation], settings: Settings, budget: int | None = None
) -> Batch:
    """The probes wanted next: at most `settings.parallelism` of them, and at most `budget` processes; empty when
    finished.

    `budget` is how many more processes the caller will run (None: as many as the search wants). Raises IndexError for
    an observation of a shape that the sweep does not have.
    """
    if not len(sweep):
        return Batch()
    counted = tally(sweep, observations)
    allowed = _allowed(counted, settings, budget)
    if allowed <= 0:
        return Batch()
    best: tuple[str, ...] = ()
    match settings.effective:
        case Strategy.LINEAR:
            probes, doing = scan.linear_probes(counted, settings), "running the shapes in order"
        case Strategy.BISECT:
            probes, doing = scan.bisect_probes(counted, settings), "bisecting"
        case Strategy.EXHAUSTIVE:
            probes, doing = scan.exhaustive_probes(counted, settings), "running every shape"
        case _:
            search = RuleSearch(sweep, observations, counted, settings)
            wanted = search.next()
            probes, doing, best = wanted.probes, wanted.doing, search.best
    if not probes and settings.sequence:
        search = RuleSearch(sweep, observations, counted, settings)
        probes = OrderSearch(sweep, observations, counted, settings).next(search.predicted_failing)
        doing = "running shapes in one process"
    return Batch(_fit(probes[: settings.parallelism], allowed), doing, best)


def _allowed(counted: Tally, settings: Settings, budget: int | None) -> int:
    limits = [] if budget is None else [budget]
    if settings.max_probes is not None:
        limits.append(settings.max_probes - counted.processes)
    return min(limits, default=1 << 60)


def _fit(probes: list[Probe], allowed: int) -> tuple[Probe, ...]:
    """The first probes, with their repeats cut so that no more than `allowed` processes are asked for."""
    fitted: list[Probe] = []
    for probe in probes:
        if allowed <= 0:
            break
        fitted.append(replace(probe, repeat=min(probe.repeat, allowed)))
        allowed -= fitted[-1].repeat
    return tuple(fitted)


def answer(sweep: Sweep, observations: Sequence[Observation], settings: Settings) -> Answer:
    """What follows from the observations so far; can be asked at any time, and again later from the ledger."""
    counted = tally(sweep, observations)
    if settings.effective is Strategy.RULES and len(sweep):
        ruled = rules_answer(RuleSearch(sweep, observations, counted, settings))
        return _with_order(ruled, sweep, observations, counted, settings)
    if settings.effective is Strategy.BISECT and len(sweep):
        claimed = scan.bisect_claim(counted, settings)
    else:
        claimed = scan.scan_claim(counted, settings)
    return _with_order(
        report.base_answer(sweep, observations, counted, claimed, settings), sweep, observations, counted, settings
    )


def _with_order(
    found: Answer, sweep: Sweep, observations: Sequence[Observation], counted: Tally, settings: Settings
) -> Answer:
    """Order dependence, wherever the ledger has runs in sequence. Under a flaky fault nothing is said about it."""
    if counted.flaky:
        note = ("the fault is flaky: dependence on the order was not looked for",) if settings.sequence else ()
        return replace(found, warnings=found.warnings + note)
    return replace(found, order=OrderSearch(sweep, observations, counted, settings).answer())


def shape_states(sweep: Sweep, observations: Sequence[Observation]) -> tuple[str | None, ...]:
    """For a safe list: what the evidence alone says of each shape ("pass", an outcome with its signature, None
    unknown)."""
    return report.states(tally(sweep, observations))
