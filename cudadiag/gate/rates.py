"""How many fresh passes a known crash needs before it counts as fixed, and how likely a new one is found.

Noise is one-sided: a shape without the crash never fails. A crash that fails in a share `rate` of fresh processes then
passes n times in a row with probability (1 - rate)^n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cudadiag.search.rate import pessimistic

FALSE_FIXED = 1e-4
"""Chance that one run calls a crash fixed that is still there: over a hundred runs, one in a hundred."""
NEVER_MEASURED = (1, 1)
"""What is assumed of an entry without a rate: that it was seen failing once."""


@dataclass(frozen=True)
class Rate:
    """How often a known crash fails in a fresh process: a share that is taken as given, or `fails` of `runs`."""

    share: float | None = None
    fails: int = NEVER_MEASURED[0]
    runs: int = NEVER_MEASURED[1]

    @property
    def value(self) -> float:
        """The share, as counted where it was counted."""
        return self.share if self.share is not None else self.fails / self.runs

    @property
    def at_least(self) -> float:
        """A share that the true one is hardly below: the given one, or the pessimistic end of the counted one."""
        return self.share if self.share is not None else pessimistic(self.fails, self.runs, share=0.1)

    def __str__(self) -> str:
        return f"{self.share:g}" if self.share is not None else f"{self.fails}/{self.runs}"


def passes_needed(rate: Rate) -> int:
    """Passes in a row after which a crash of this rate counts as fixed.

    Claim: with a rate not below `rate.at_least`, a run that calls it fixed is wrong with probability FALSE_FIXED.
    1 pass for a given rate of 1, 26 for 0.3, 24 where it was only seen failing once.
    """
    share = rate.at_least
    if share >= 1:
        return 1
    return max(1, math.ceil(math.log(FALSE_FIXED) / math.log1p(-share)))


def chance_to_find(rate: float, repeat: int) -> float:
    """Probability that `repeat` fresh processes of a shape show a crash that fails in a share `rate` of them."""
    return 1 - (1 - rate) ** repeat


POWER_AT = (0.1, 0.3, 0.5)


def power_words(repeat: int) -> str:
    """What a run's repeats can find, in words."""
    parts = ", ".join(f"{rate:g} of runs {chance_to_find(rate, repeat):.2f}" for rate in POWER_AT)
    times = "once" if repeat == 1 else f"{repeat} times"
    return f"each shape ran {times}: chance to find a new crash that fails in {parts}, always 1"
