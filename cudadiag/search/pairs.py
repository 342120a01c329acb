"""Which shape before which shape: the rule search once more, over ordered pairs run in one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cudadiag.model import Axis, Outcome, Sweep
from cudadiag.search import expr
from cudadiag.search.belief import PASS
from cudadiag.search.memo import SweepMemo
from cudadiag.search.observation import Observation, Probe, Purpose
from cudadiag.search.rules import RuleSearch
from cudadiag.search.settings import Settings
from cudadiag.search.tally import Tally, tally

MOST_SHAPES = 24
MOST_PROBES = 40
TAG = "pair"


@dataclass(frozen=True)
class Pairs:
    """The sweep of pairs, and the two shapes that each of its shapes stands for."""

    sweep: Sweep
    members: tuple[tuple[int, int], ...]

    @property
    def number(self) -> dict[tuple[int, int], int]:
        return {pair: i for i, pair in enumerate(self.members)}


def _pairs(sweep: Sweep) -> Pairs:
    n = len(sweep)
    chosen = range(n) if n <= MOST_SHAPES else np.unique(np.linspace(0, n - 1, MOST_SHAPES).astype(int)).tolist()
    members = tuple((a, b) for a in chosen for b in chosen)
    axes = tuple(Axis(f"earlier.{x.name}", x.values) for x in sweep.axes) + sweep.axes
    shapes = tuple(sweep.shapes[a] + sweep.shapes[b] for a, b in members)
    return Pairs(Sweep(axes, shapes), members)


pairs_of = SweepMemo(_pairs)


class PairSearch:
    """Learns where "the one before, then this one" fails, from all that ran in sequence.

    Claim: none of its own; the rule is named where it fits every pair seen and survived a few attacks. Assumes that
    what matters is some one earlier shape: a shape that passed after several passed after each of them. Costs at most
    MOST_PROBES processes of two shapes."""

    def __init__(self, sweep: Sweep, observations: Sequence[Observation], alone: Tally, settings: Settings) -> None:
        self.pairs, self.observations, self.alone = pairs_of(sweep), observations, alone
        seen = _as_pairs(self.pairs, observations, alone)
        self.spent = sum(o.tag.startswith(TAG) and o.alone for o in observations)
        chosen = replace(
            settings,
            attacks=8,
            rate_repeats=0,
            confirm_repeats=0,
            cheap_probes=0,
            cheap_s=0.0,
            sequence=False,
            parallelism=1,
        )
        self.search = RuleSearch(self.pairs.sweep, seen, tally(self.pairs.sweep, seen), chosen)

    def next(self) -> Probe | None:
        if self.spent >= MOST_PROBES or self.search.tally.first is None or self.search.tally.flaky:
            return None
        wanted = self.search.next().probes
        if not wanted or wanted[0].purpose not in (Purpose.HALVE, Purpose.ATTACK):
            return None
        pair = self.pairs.members[wanted[0].shape]
        return Probe(pair[1], Purpose.SEQUENCE, sequence=pair, tag=f"{TAG}/{wanted[0].purpose.value}/{wanted[0].tag}")

    def explains_all(self) -> bool:
        """Whether every failure in a process is one of a shape after some one shape that the rule names.

        Where it is not, more than one earlier shape counts: something adds up."""
        found = self.search.conclusion
        if found is None:
            return False
        named = {self.pairs.members[i] for i in np.flatnonzero(found.predicted != PASS).tolist()}
        members = {a for a, _ in self.pairs.members}
        return all(
            any((before, o.shape) in named for before in o.earlier)
            for o in self.observations
            if o.outcome.is_failure and self.alone.passing[o.shape] and members.issuperset((*o.earlier, o.shape))
        )

    def rule(self) -> str | None:
        found = self.search.conclusion
        if found is None or not self.search.settled or len(found.rules) != 1:
            return None
        return expr.words(found.rules[0][1])


def _as_pairs(pairs: Pairs, observations: Sequence[Observation], alone: Tally) -> list[Observation]:
    """Observations over pairs: a failure after exactly one shape, and for a pass one for each shape before it. Shapes
    that fail alone say nothing about order."""
    number = pairs.number
    found = []
    for o in observations:
        if o.alone or alone.failing[o.shape]:
            continue
        passed = o.outcome is Outcome.PASS
        befores = o.earlier if passed else o.earlier[-1:] if len(o.earlier) == 1 else ()
        purpose, tag = _decode(o.tag)
        for before in befores:
            index = number.get((before, o.shape))
            if index is not None:
                found.append(Observation(index, o.outcome, o.signature, (), None, purpose, tag))
    return found


def _decode(tag: str) -> tuple[Purpose | None, str]:
    parts = tag.split("/", 2)
    return (Purpose(parts[1]), parts[2]) if parts[0] == TAG and len(parts) == 3 else (None, "")
