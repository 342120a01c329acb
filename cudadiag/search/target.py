"""What a rule has to explain, and what it costs to name a shape that passed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.table import Indices
from cudadiag.search.tally import Tally

Floats = NDArray[np.float64]

NEVER = 1e6
"""Passing runs that no noise explains: the shape showed an outcome that would have given way to this rule's."""
NEGLIGIBLE = -40.0
"""Log likelihood below which a rule is dropped."""


@dataclass(frozen=True)
class Noise:
    """How passes at failing shapes weigh. `log_likelihood[n]` is for a rule that names shapes which passed n runs in
    all, against one that names none; beyond its end a rule is dropped. `rate` is the expected chance of a failing run
    to fail."""

    log_likelihood: Floats
    rate: float

    @classmethod
    def none(cls) -> Noise:
        """A deterministic fault: one pass refutes."""
        return cls(np.zeros(1), 1.0)

    @classmethod
    def known(cls, rate: float) -> Noise:
        """One-sided noise of a given rate."""
        per_pass = float(np.log1p(-rate))
        return cls(per_pass * np.arange(int(NEGLIGIBLE / per_pass) + 1, dtype=np.float64), rate)

    @classmethod
    def measured(cls, tally: Tally) -> Noise:
        """The rate integrated out over a flat prior, given all failing runs and the passes of shapes known to fail.

        What was looked for and when to stop does not matter to a likelihood, so every run counts."""
        if not tally.flaky:
            return cls.none()
        rates = np.arange(1, 100) / 100
        fails, passes = int(tally.fails.sum()), int(tally.passes[tally.failing].sum())
        more = np.arange(int(tally.passes.sum()) + 1)
        log = fails * np.log(rates) + (passes + more[:, None]) * np.log1p(-rates)
        top = log.max()
        likelihood = np.log(np.exp(log - top).sum(axis=1))
        weights = np.exp(log[0] - log[0].max())
        kept = likelihood - likelihood[0]
        return cls(kept[kept > NEGLIGIBLE], float((weights * rates).sum() / weights.sum()))


@dataclass(frozen=True)
class Target:
    """What a rule must explain: it holds at every shape of `fails`; `others[k]` passed `runs[k]` times (NEVER: may
    not be named at all)."""

    fails: Indices
    others: Indices
    runs: Floats
    noise: Noise
