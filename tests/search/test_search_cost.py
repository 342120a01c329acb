"""What repeats cost, and how many of them are worth it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searching import sweep

from cudadiag.model import Outcome
from cudadiag.search import Observation, Purpose, Settings, answer, next_probes
from cudadiag.search import rate as noise
from cudadiag.search.ddmin import ddmin

SIZES = sweep(n=[256, 512, 1024, 2048, 4096, 8192], q=[1, 9])
FIRST = 6


def repeats_of_the_failing(settings: Settings, cost_s: float) -> int:
    """Repeats of failing shapes in a search where a failure costs so much and a pass a tenth of a second."""
    seen: list[Observation] = []
    while batch := next_probes(SIZES, seen, settings):
        for probe in batch.probes:
            fails = probe.shape >= FIRST
            observed = probe.observed(Outcome.HANG if fails else Outcome.PASS, None, cost_s if fails else 0.1)
            seen += [observed] * probe.repeat
    assert answer(SIZES, seen, settings).first == FIRST
    return sum(o.purpose in (Purpose.RATE, Purpose.CONFIRM) and o.outcome.is_failure for o in seen)


def test_a_hang_of_half_a_minute_is_not_waited_for_eleven_times() -> None:
    assert repeats_of_the_failing(Settings(), 0.3) >= 11
    assert 5 <= repeats_of_the_failing(Settings(), 5) <= 7
    assert 3 <= repeats_of_the_failing(Settings(), 30) <= 4
    assert repeats_of_the_failing(Settings(), 3000) == 1  # the first failing shape, whatever it costs


def test_what_was_asked_for_is_run_whatever_it_costs() -> None:
    assert repeats_of_the_failing(Settings(rate_repeats=5), 30) >= 5
    assert repeats_of_the_failing(Settings(prove=True), 30) >= 11


def test_a_device_that_does_the_same_each_time_needs_few() -> None:
    assert repeats_of_the_failing(Settings(flaky_share=0.001), 0.4) <= 3


@given(st.floats(0.01, 500), st.floats(1.01, 10), st.integers(0, 30), st.floats(0.0005, 0.5))
def test_dearer_repeats_are_fewer_and_none_is_left_that_is_worth_it(
    cost: float, more: float, most: int, share: float
) -> None:
    count = noise.worthwhile(cost, most, share)
    assert noise.worthwhile(cost * more, most, share) <= count <= most
    gains = [
        noise.deterministic_confidence(n + 1, share) - noise.deterministic_confidence(n, share) for n in range(most)
    ]
    assert [gain * noise.WRONG_ANSWER_S >= cost for gain in gains[: count + 1]] == [True] * count + [False] * (
        count < most
    )


@pytest.mark.parametrize(("repeats", "bound"), [(0, 0.0), (3, 0.3684), (11, 0.7616)])
def test_the_bound_of_repeats_that_all_failed(repeats: int, bound: float) -> None:
    assert noise.at_least(repeats) == pytest.approx(bound, abs=1e-4)
    assert noise.at_least(repeats) ** repeats == pytest.approx(0.05 if repeats else 1.0)


@pytest.mark.parametrize(("final", "tries"), [(True, 1), (False, 3)])
def test_what_cannot_change_is_tried_once(final: bool, tries: int) -> None:
    seen: list[Observation] = []
    while batch := next_probes(SIZES, seen, Settings()):
        for probe in batch.probes:
            bad = probe.shape == 3
            seen += [probe.observed(Outcome.UNRESOLVED if bad else Outcome.PASS, final=bad and final)] * probe.repeat
    assert sum(o.shape == 3 for o in seen) == tries
    found = answer(SIZES, seen, Settings())
    assert found.counts.unknown == 1
    assert found.exit_code == 3
    assert any("unresolved after 3 tries" in w and ("cannot change" in w) == final for w in found.warnings)


def test_a_list_of_which_everything_is_needed_costs_about_two_tests_each() -> None:
    for size in (15, 40):
        tests = itertools.count()

        def triggers(part: tuple[int, ...], size: int = size, tests: itertools.count[int] = tests) -> bool:
            next(tests)
            return len(part) == size

        assert len(ddmin(range(size), triggers)) == size
        assert next(tests) <= 2 * size
