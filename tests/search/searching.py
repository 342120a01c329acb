"""Runs a search against a function that says what each shape does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import product

from cudadiag.model import Axis, Outcome, Scalar, Sweep
from cudadiag.search import Answer, Observation, Settings, answer, next_probes

MOST = 5000
Truth = Callable[[int], Outcome | str | bool]


def sweep(**axes: Iterable[Scalar]) -> Sweep:
    made = tuple(Axis(name, tuple(values)) for name, values in axes.items())
    return Sweep(made, tuple(product(*(a.values for a in made))))


def outcome(value: Outcome | str | bool) -> Outcome:
    if isinstance(value, bool):
        return Outcome.FAULT if value else Outcome.PASS
    return Outcome(value)


def run(
    subject: Sweep,
    truth: Truth,
    settings: Settings | None = None,
    seen: Sequence[Observation] = (),
    rate: float = 1.0,
    chance: int = 0,
    unresolved: Callable[[int], bool] = lambda _: False,
) -> tuple[Answer, list[Observation]]:
    """The answer, and every observation it rests on. Fails the test if the search does not end."""
    settings = settings or Settings()
    dice, observations = random.Random(chance), list(seen)
    while batch := next_probes(subject, observations, settings):
        assert len(batch.probes) <= settings.parallelism
        for probe in batch.probes:
            for _ in range(probe.repeat):
                what = Outcome.UNRESOLVED if unresolved(probe.shape) else outcome(truth(probe.shape))
                if what.is_failure and dice.random() >= rate:
                    what = Outcome.PASS
                observations.append(probe.observed(what))
        assert len(observations) < MOST, "the search does not end"
    return answer(subject, observations, settings), observations


def where(subject: Sweep, condition: Callable[..., object]) -> Truth:
    """Truth from a condition on the parameters."""
    return lambda index: bool(condition(**subject.shape(index)))


def first_failing(subject: Sweep, truth: Truth) -> int | None:
    return next((i for i in range(len(subject)) if outcome(truth(i)).is_failure), None)
