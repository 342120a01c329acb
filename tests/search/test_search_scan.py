"""The strategies that read the sweep as a line: what they claim, and what it costs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searching import first_failing, run, sweep, where

from cudadiag.model import Claim, Sweep
from cudadiag.search import Purpose, Settings, Strategy, next_probes

LINE = sweep(n=range(40))


def with_strategy(strategy: Strategy, **more: object) -> Settings:
    return Settings(strategy=strategy, **more)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 39)), st.sampled_from([Strategy.LINEAR, Strategy.EXHAUSTIVE]), st.integers(1, 4))
def test_a_scan_is_right_about_any_failing_set(failing: set[int], strategy: Strategy, jobs: int) -> None:
    found, seen = run(LINE, lambda i: i in failing, with_strategy(strategy, parallelism=jobs))
    assert found.first == (min(failing) if failing else None)
    assert found.claim is (Claim.PROVEN if failing else Claim.NONE_FOUND)
    assert found.exit_code == (1 if failing else 0)
    if strategy is Strategy.EXHAUSTIVE:
        assert {o.shape for o in seen} == set(range(40))


def test_linear_costs_one_probe_a_shape_up_to_the_first_failing_one() -> None:
    _, seen = run(LINE, lambda i: i >= 23, with_strategy(Strategy.LINEAR))
    assert sum(o.purpose is Purpose.SCAN for o in seen) == 24


@given(st.integers(0, 39))
@settings(max_examples=40, deadline=None)
def test_bisection_finds_an_upper_tail_in_two_plus_log_n_probes(start: int) -> None:
    found, seen = run(LINE, lambda i: i >= start, with_strategy(Strategy.BISECT))
    assert found.first == start
    all_earlier_run = {o.shape for o in seen} >= set(range(start))
    assert found.claim is (Claim.PROVEN if all_earlier_run else Claim.ASSUMED)
    assert sum(o.purpose is Purpose.SCAN for o in seen) <= 2 + 6


def test_bisection_never_calls_a_boundary_first_when_it_saw_the_assumption_fail() -> None:
    found, _ = run(LINE, lambda i: i in (10, 39), with_strategy(Strategy.BISECT))
    assert found.claim in (Claim.BOUNDARY, Claim.ASSUMED)
    seen_pass_after_fail = found.first == 10
    assert not seen_pass_after_fail or found.claim is Claim.BOUNDARY


def test_bisection_cannot_start_where_the_last_shape_passes() -> None:
    found, _ = run(LINE, lambda i: i == 10, with_strategy(Strategy.BISECT))
    assert found.claim is Claim.NONE_FOUND
    assert "last shape passes" in found.claim_text
    assert found.exit_code == 3


@pytest.mark.parametrize("strategy", list(Strategy))
def test_an_empty_sweep_wants_nothing(strategy: Strategy) -> None:
    empty = Sweep((), ())
    assert not next_probes(empty, [], with_strategy(strategy))


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_budget_is_never_exceeded(strategy: Strategy) -> None:
    batch = next_probes(LINE, [], with_strategy(strategy, parallelism=8), budget=3)
    assert 0 < len(batch) <= 3
    _, seen = run(LINE, lambda i: i >= 23, with_strategy(strategy, max_probes=9))
    assert len(seen) <= 9


@pytest.mark.parametrize("strategy", [Strategy.LINEAR, Strategy.BISECT, Strategy.RULES, Strategy.EXHAUSTIVE])
def test_an_unresolved_shape_is_retried_then_left_unknown_and_nothing_is_proven(strategy: Strategy) -> None:
    found, seen = run(LINE, lambda i: i >= 23, with_strategy(strategy), unresolved=lambda i: i == 22)
    assert found.first == 23
    assert found.claim is not Claim.PROVEN
    assert sum(o.shape == 22 for o in seen) <= 3
    assert "unresolved" in found.claim_text or found.counts.unknown == 1


def test_every_shape_unresolved_decides_nothing() -> None:
    found, seen = run(LINE, lambda i: True, Settings(), unresolved=lambda i: True)
    assert found.claim is Claim.NONE_FOUND
    assert found.exit_code == 3
    assert len(seen) == 3 * 40


def test_a_passing_shape_needs_as_many_runs_as_the_rate_demands() -> None:
    found, seen = run(LINE, where(LINE, lambda n: n >= 6), with_strategy(Strategy.LINEAR), rate=0.5, chance=3)
    assert found.rate is not None
    assert found.rate.flaky
    runs = [sum(o.shape == i for o in seen) for i in range(found.first or 0)]
    assert min(runs) >= 5  # at a rate of one half: 5 for 95 % of one shape alone
    assert found.first == first_failing(LINE, where(LINE, lambda n: n >= 6))
