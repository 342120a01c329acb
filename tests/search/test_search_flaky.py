"""Flaky faults: measured first, one-sided, never counted as passing too soon."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searching import run, sweep, where

from cudadiag.search import Settings
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
