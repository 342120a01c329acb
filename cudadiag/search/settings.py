"""What the caller may choose about a search. Everything else about it is decided here, in the open, by the
strategies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cudadiag.search.rate import FLAKY_SHARE

DEFAULT_RATE_REPEATS = 3


class Strategy(StrEnum):
    """How to look. `auto` is `rules`."""

    AUTO = "auto"
    RULES = "rules"
    LINEAR = "linear"
    BISECT = "bisect"
    EXHAUSTIVE = "exhaustive"


@dataclass(frozen=True)
class Settings:
    """Choices of one search; part of the key of its answer, so they belong in the ledger's first line.

    `cheap_probes`, `cheap_s`: earlier shapes left are run, and the answer becomes `proven`, where they are at most
    this many or cost at most this many seconds as measured; with `prove` whatever they cost.
    `attacks`: random untested shapes at which a rule must hold before it counts (earlier shapes first).
    `screen_probes`: passing shapes run before the search gives up on finding a first failure in a sweep it cannot
    exhaust.
    `rate_repeats`: repeats of the first failing shape met, to learn whether the fault is flaky, before anything else;
    fewer than the default of 3 where each costs more than that is worth (rate.worthwhile).
    `confirm_repeats`: repeats of failing shapes altogether before a fault that never passed counts as deterministic,
    fewer where they cost more than they are worth. After all 11 the chance to miss a flaky one *and* be misled by one
    false pass is at most max over p of p^11 (1-p) = 3.2 %.
    `flaky_share`: of the faults on this device, before anything is known.
    `retries`: further tries of a shape whose probes stay `unresolved`; then it is left unknown.
    `parallelism`: how many probes can be asked for at once. `sequence`: also run shapes in one process, in several
    orders.
    `max_probes`: stop there with the claim the evidence supports.
    """

    strategy: Strategy = Strategy.AUTO
    seed: int = 0
    confidence: float = 0.95
    cheap_probes: int = 64
    cheap_s: float = 60.0
    prove: bool = False
    attacks: int = 32
    screen_probes: int = 256
    rate_repeats: int = DEFAULT_RATE_REPEATS
    confirm_repeats: int = 11
    flaky_share: float = FLAKY_SHARE
    retries: int = 2
    partial_ok: bool = False
    parallelism: int = 1
    sequence: bool = False
    max_probes: int | None = None

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence must be at least 0.5 and below 1, not {self.confidence}")
        if not 0 < self.flaky_share < 1:
            raise ValueError(f"flaky_share must be between 0 and 1, not {self.flaky_share}")
        counts = (self.cheap_probes, self.attacks, self.rate_repeats, self.confirm_repeats, self.retries)
        if min(counts) < 0 or self.parallelism < 1 or self.screen_probes < 1:
            raise ValueError("counts of a search cannot be negative, and parallelism and screen_probes are at least 1")

    @property
    def effective(self) -> Strategy:
        return Strategy.RULES if self.strategy is Strategy.AUTO else self.strategy
