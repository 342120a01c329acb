"""What goes into a search (observations) and what comes out while it runs (probes wanted next)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from cudadiag.model import Outcome


class Purpose(StrEnum):
    """Why a probe is wanted. The report counts probes by it."""

    SCAN = "scan"  # the next shape of a linear or exhaustive scan, or of a plain bisection
    SCREEN = "screen"  # looking for a first failing shape
    RATE = "rate"  # does the failing shape always fail?
    HALVE = "halve"  # the surviving rules disagree here
    ATTACK = "attack"  # all surviving rules agree here: try to refute the last of them
    PROVE = "prove"  # an earlier shape nobody ran yet
    MINIMISE = "minimise"  # a neighbour of the smallest failing shape
    CONFIRM = "confirm"  # repeat of a failing shape at the end
    SEQUENCE = "sequence"  # several shapes in one process


TO_THE_ANSWER = frozenset({Purpose.SCAN, Purpose.SCREEN, Purpose.RATE, Purpose.HALVE, Purpose.MINIMISE})
"""Purposes that lead to the answer; the others (attack, prove, confirm, sequence) make it surer or look beyond it."""


@dataclass(frozen=True)
class Observation:
    """What one probe showed about one shape.

    `shape` is its index in the sweep. `earlier` are the indices this process ran before it, in order; () means that it
    was alone or the first of its process, which is the same thing. A sequence of n shapes gives up to n observations.
    `purpose` and `tag` come from the probe unchanged: the search counts its attacks by them. `cost_s` in seconds.
    `final`: an `unresolved` run whose reason another run would not change.
    """

    shape: int
    outcome: Outcome
    signature: str | None = None
    earlier: tuple[int, ...] = ()
    cost_s: float | None = None
    purpose: Purpose | None = None
    tag: str = ""
    final: bool = False

    @property
    def alone(self) -> bool:
        return not self.earlier

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "earlier": list(self.earlier)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Observation:
        """From `to_json`; raises KeyError or ValueError where a needed field is missing or not a known word."""
        purpose = data.get("purpose")
        return cls(
            shape=int(data["shape"]),
            outcome=Outcome(data["outcome"]),
            signature=data.get("signature"),
            earlier=tuple(int(i) for i in data.get("earlier", ())),
            cost_s=data.get("cost_s"),
            purpose=Purpose(purpose) if purpose else None,
            tag=str(data.get("tag", "")),
            final=bool(data.get("final", False)),
        )


@dataclass(frozen=True)
class Probe:
    """A probe the search wants: `shape` alone in `repeat` fresh processes, or `sequence` in order in one process.

    For a sequence `shape` is its last index. `expected` is what the best rule predicts, for the live view.
    """

    shape: int
    purpose: Purpose
    repeat: int = 1
    sequence: tuple[int, ...] = ()
    tag: str = ""
    expected: str | None = None

    def observed(
        self, outcome: Outcome, signature: str | None = None, cost_s: float | None = None, final: bool = False
    ) -> Observation:
        """The observation that one run of this probe alone makes."""
        return Observation(self.shape, outcome, signature, (), cost_s, self.purpose, self.tag, final)

    def observed_sequence(
        self, results: Sequence[tuple[Outcome, str | None]], cost_s: float | None = None
    ) -> list[Observation]:
        """Observations of one run of this sequence: one result for each shape reached, in order; `cost_s` of the
        process."""
        if not results:  # the process told nothing: still a try, so that it is not made for ever
            results = [(Outcome.UNRESOLVED, None)]
        share = None if cost_s is None else cost_s / len(results)
        return [
            Observation(index, outcome, signature, self.sequence[:i], share, self.purpose, self.tag)
            for i, (index, (outcome, signature)) in enumerate(zip(self.sequence, results, strict=False))
        ]


@dataclass(frozen=True)
class Batch:
    """The probes wanted next, in order; empty when the search is finished. `doing` says in words what they are for,
    `best` the best rules so far in words (for the live view)."""

    probes: tuple[Probe, ...] = ()
    doing: str = ""
    best: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.probes)

    def __len__(self) -> int:
        """Processes this batch asks for."""
        return sum(p.repeat for p in self.probes)
