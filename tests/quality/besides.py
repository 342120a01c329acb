"""What is shown beside the search: a linear scan, plain bisection and hypothesis.find, on the same simulated
kernels."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, find, strategies
from hypothesis import settings as hypothesis_settings
from hypothesis.errors import NoSuchExample
from simulated import Kernel, search

from cudadiag.search import Settings, Strategy


@dataclass(frozen=True)
class Beside:
    """The first failing shape another method names, right or not, and the processes it took. It claims what `claim`
    says."""

    right: bool
    probes: int
    claim: str


def beside(subject: Kernel) -> dict[str, Beside]:
    """Each method once; the methods are not random, but for hypothesis.find (its seed is fixed)."""
    return {
        "linear": _strategy(subject, Strategy.LINEAR),
        "bisect": _strategy(subject, Strategy.BISECT),
        "hypothesis.find": _find(subject),
    }


def _strategy(subject: Kernel, strategy: Strategy) -> Beside:
    """The plain method: no repeats of a failing shape, which plain bisection does not make either."""
    plain = Settings(strategy=strategy, rate_repeats=0, confirm_repeats=0)
    found, _ = search(subject, plain)
    return Beside(found.first == subject.first, found.effort.to_the_answer, found.claim.value)


def _find(subject: Kernel) -> Beside:
    """hypothesis.find shrinks the index of the shape towards 0; an index it never tried it knows nothing about."""
    calls: set[int] = set()

    def fails(index: int) -> bool:
        calls.add(index)
        return subject.truth[index] != "pass"

    quiet = hypothesis_settings(
        max_examples=500,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        found: int | None = find(
            strategies.integers(0, len(subject.sweep) - 1), fails, settings=quiet, random=random.Random(0)
        )
    except NoSuchExample:
        found = None
    return Beside(found == subject.first, len(calls), "none")
