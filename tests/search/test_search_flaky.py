"""Flaky faults: measured first, one-sided, never counted as passing too soon."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searching import run, sweep, where

from cudadiag.model import Outcome
from cudadiag.search import Observation, Settings, answer
from cudadiag.search import rate as noise

LINE = sweep(prefix=[256, 512, 1024, 2048, 4096, 8192, 16384, 32768], q=[1, 9])


def test_a_flaky_threshold_is_found_in_at_least_nine_of_ten_runs() -> None:
    truth = where(LINE, lambda prefix, q: prefix >= 4096)
    right = sum(run(LINE, truth, Settings(seed=s), rate=0.5, chance=s)[0].first == 8 for s in range(10))
    assert right >= 9


def test_a_rate_without_structure_is_reported_as_such_with_an_interval() -> None:
    subject = sweep(prompt=[64, 641, 1024, 4100, 16384], chunk=[1, 2])
    found, _ = run(subject, lambda _: True, rate=0.3, chance=1)
    assert found.first == 0
    assert found.rate is not None
    assert found.rate.whatever_the_shape
    assert found.rate.low < 0.3 < found.rate.high


def test_a_fault_that_never_passed_is_repeated_before_it_counts_as_deterministic() -> None:
    found, _ = run(LINE, where(LINE, lambda prefix, q: prefix >= 4096))
    assert found.rate is not None
    assert not found.rate.flaky
    assert found.rate.runs >= Settings().confirm_repeats
    assert found.rate.fails == found.rate.runs


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_interval_holds_the_share(a: int, b: int) -> None:
    fails, runs = min(a, b), max(a, b)
    low, high = noise.interval(fails, runs)
    assert 0 <= low <= (fails / runs if runs else 0.5) <= high <= 1


@pytest.mark.parametrize(
    ("fails", "runs", "low", "high"), [(0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1.0)]
)
def test_the_interval_is_clopper_pearsons(fails: int, runs: int, low: float, high: float) -> None:
    assert noise.interval(fails, runs) == pytest.approx((low, high), abs=1e-4)


@given(st.floats(0.02, 0.98), st.floats(0.5, 0.99), st.integers(1, 50))
def test_the_repeats_keep_the_promise_and_no_fewer_would(rate: float, confidence: float, shapes: int) -> None:
    runs = noise.repeats_needed(rate, confidence, shapes)
    if runs < noise.MOST_REPEATS:
        assert shapes * (1 - rate) ** runs <= (1 - confidence) * 1.0001
        assert runs == 1 or shapes * (1 - rate) ** (runs - 1) > (1 - confidence) * 0.9999


def test_the_capacity_of_the_channel() -> None:
    assert noise.capacity(1.0) == 1.0
    assert noise.capacity(0.5) == pytest.approx(math.log2(1.25))  # the known value for the Z-channel at one half
    assert noise.capacity(0.0) == 0.0


def test_what_was_run_how_often_is_said_per_shape_and_nothing_more() -> None:
    """The words of the report, counted again from the observations."""
    truth = where(LINE, lambda prefix, q: prefix >= 4096)
    told = 0
    for seed in range(6):
        found, seen = run(LINE, truth, Settings(seed=seed, cheap_probes=0, cheap_s=0), rate=0.5, chance=seed)
        passes, fails = (
            [sum(o.outcome.is_failure == failed for o in seen if o.shape == i) for i in range(len(LINE))]
            for failed in (False, True)
        )
        assert found.rate is not None
        assert found.rate.flaky
        assert all((e.fails, e.runs) == (fails[e.shape], fails[e.shape] + passes[e.shape]) for e in found.rate.each)
        if not found.rate.repeats:
            assert found.rate.fails == sum(e.fails for e in found.rate.each)
            assert found.rate.runs == sum(e.runs for e in found.rate.each)
        assert f"{sum(f > 0 for f in fails)} of {len(LINE)} legal shapes failed" in found.rule_note
        few = found.passed_too_seldom
        assert all(passes[i] and not fails[i] for i in few)
        enough = [passes[i] for i in range(len(LINE)) if passes[i] and not fails[i] and i not in few]
        assert not few or not enough or max(passes[i] for i in few) < min(enough)
        assert not any(rule.complete for rule in found.rules) or not few
        assert "every legal shape" not in found.rule_note
        told += bool(few)
    assert told >= 4


def test_a_deterministic_fault_is_settled_by_one_run_of_each_shape() -> None:
    found, seen = run(LINE, where(LINE, lambda prefix, q: prefix >= 4096), Settings(attacks=200))
    assert {o.shape for o in seen} == set(range(len(LINE)))
    assert found.passed_too_seldom == ()
    assert [rule.complete for rule in found.rules] == [True]
    assert found.rule_note == "every legal shape was run and agrees"


def test_a_neighbour_that_passed_once_does_not_make_the_smallest_shape_minimal() -> None:
    subject = sweep(n=[1, 2, 3])
    seen = [Observation(2, Outcome.FAULT), Observation(2, Outcome.PASS), Observation(1, Outcome.PASS)]
    found = answer(subject, seen, Settings())
    assert found.smallest is not None
    assert found.smallest.index == 2
    assert not found.smallest.minimal
    assert found.passed_too_seldom == (1,)
    steady = answer(subject, [seen[0], seen[2]], Settings())
    assert steady.smallest is not None
    assert steady.smallest.minimal
