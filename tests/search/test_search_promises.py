"""What must hold for any failing set: claims are true, the search ends, the same evidence gives the same answer."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searching import first_failing, run, sweep

from cudadiag.model import Claim, Sweep
from cudadiag.search import Observation, Settings, answer, next_probes
from cudadiag.search.vocabulary import build

SMALL = sweep(a=[1, 2, 3, 4, 8, 16], b=[1, 7, 8, 9], c=[0, 1])
QUIET = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUIET
@given(st.sets(st.integers(0, len(SMALL) - 1)), st.integers(0, 10**6), st.integers(1, 3))
def test_proven_is_never_false_whatever_fails(failing: set[int], seed: int, jobs: int) -> None:
    found, _ = run(SMALL, lambda i: i in failing, Settings(seed=seed, parallelism=jobs))
    assert found.first == (min(failing) if failing else None)
    assert found.claim is (Claim.PROVEN if failing else Claim.NONE_FOUND)
    for i, predicted in enumerate(found.predicted):
        if found.rules and found.rules[0].complete:
            assert (predicted != "pass") == (i in failing)


@QUIET
@given(st.integers(0, 10**6), st.data())
def test_any_rule_of_the_vocabulary_is_found(seed: int, data: st.DataObject) -> None:
    made = build(SMALL)
    row = data.draw(st.integers(0, len(made.literals.conditions) - 1))
    truth = made.literals.bits[row]
    found, _ = run(SMALL, lambda i: bool(truth[i]), Settings(seed=seed))
    assert found.first == int(truth.argmax())
    assert [p != "pass" for p in found.predicted] == truth.tolist()


@QUIET
@given(st.sets(st.integers(0, len(SMALL) - 1), min_size=1), st.integers(0, 100), st.floats(0.0, 1.0))
def test_a_resumed_search_ends_where_an_uninterrupted_one_does(failing: set[int], seed: int, part: float) -> None:
    chosen = Settings(seed=seed)
    whole, seen = run(SMALL, lambda i: i in failing, chosen)
    again, resumed = run(SMALL, lambda i: i in failing, chosen, seen=seen[: int(part * len(seen))])
    assert again == whole
    assert resumed == seen


@QUIET
@given(st.sets(st.integers(0, len(SMALL) - 1), min_size=1), st.integers(0, 100))
def test_nothing_is_remembered_between_calls(failing: set[int], seed: int) -> None:
    """The same observations over an equal sweep that was never searched give the same wishes and the same answer."""
    chosen = Settings(seed=seed)
    whole, seen = run(SMALL, lambda i: i in failing, chosen)
    cut = len(seen) // 2
    fresh = Sweep(SMALL.axes, SMALL.shapes)
    assert next_probes(fresh, seen[:cut], chosen) == next_probes(SMALL, seen[:cut], chosen)
    assert answer(Sweep(SMALL.axes, SMALL.shapes), seen, chosen) == whole


@QUIET
@given(st.sets(st.integers(0, len(SMALL) - 1)), st.integers(0, 100))
def test_observations_survive_json(failing: set[int], seed: int) -> None:
    chosen = Settings(seed=seed)
    whole, seen = run(SMALL, lambda i: i in failing, chosen)
    back = [Observation.from_json(o.to_json()) for o in seen]
    assert back == seen
    assert answer(SMALL, back, chosen) == whole


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.floats(0.25, 0.75), st.integers(70, 200))
def test_outside_the_vocabulary_nothing_false_is_implied(seed: int, density: float, start: int) -> None:
    """Random subsets beyond a stretch of passing shapes that is too long to prove."""
    subject = sweep(a=range(1, 25), b=range(1, 13))
    dice = random.Random(seed)
    failing = {i for i in range(start, len(subject)) if dice.random() < density}
    found, _ = run(subject, lambda i: i in failing, Settings(seed=seed))
    if found.claim in (Claim.PROVEN, Claim.IMPLIED):
        assert found.first == first_failing(subject, lambda i: i in failing)
