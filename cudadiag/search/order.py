"""Order and state: shapes that fail in a process after others and pass alone, or the reverse.

Asked only with `settings.sequence`, after the rest. Three processes run the shapes that pass alone in declared,
reverse and shuffled order, each with a few that fail alone at its end; what differs from the runs alone is made short
with ddmin. Assumes a deterministic fault: with a flaky one, order and chance cannot be told apart without many
repeats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Outcome, Sweep
from cudadiag.search.answer import OrderDependence
from cudadiag.search.ddmin import ddmin
from cudadiag.search.observation import Observation, Probe, Purpose
from cudadiag.search.pairs import PairSearch
from cudadiag.search.settings import Settings
from cudadiag.search.tally import Tally

LONGEST = 64  # shapes of one process
FAILING_AT_END = 3
MINIMISING, CONTROL = "ddmin", "control"
ORDERS = ("declared", "reverse", "shuffled")


class _Ask(Exception):
    def __init__(self, sequence: tuple[int, ...], tag: str) -> None:
        super().__init__(sequence)
        self.probe = Probe(sequence[-1], Purpose.SEQUENCE, sequence=sequence, tag=tag)


@dataclass(frozen=True)
class Trigger:
    """Shape `shape` behaved differently after `earlier` than alone: it failed (`fails`), or passed although it fails
    alone."""

    shape: int
    earlier: tuple[int, ...]
    fails: bool


class OrderSearch:
    """What the runs in sequence show, and which sequence to run next."""

    def __init__(self, sweep: Sweep, observations: Sequence[Observation], tally: Tally, settings: Settings) -> None:
        self.sweep, self.observations, self.tally, self.settings = sweep, observations, tally, settings
        self.known: dict[tuple[tuple[int, ...], int], list[Outcome]] = defaultdict(list)
        self.cut_short: set[tuple[int, ...]] = set()
        self.broken: dict[tuple[int, ...], int] = defaultdict(int)
        self.tried: dict[str, int] = defaultdict(int)
        for o in observations:
            if o.purpose is not Purpose.SEQUENCE and o.alone:
                continue
            self.known[(o.earlier, o.shape)].append(o.outcome)
            if o.outcome.is_failure:
                self.cut_short.add((*o.earlier, o.shape))
            if not o.outcome.is_evidence:
                self.broken[(*o.earlier, o.shape)] += 1
            if o.alone:
                self.tried[o.tag] += 1

    def next(self, predicted_failing: NDArray[np.bool_]) -> list[Probe]:
        """The next sequence to run, or the shape that has to be run alone to compare; empty when finished."""
        if self.tally.flaky:
            return []
        for name, sequence in self._orders(predicted_failing).items():
            if not self._ran(name):
                return [Probe(sequence[-1], Purpose.SEQUENCE, sequence=sequence, tag=name)]
        alone = self._untested_alone()
        if alone is not None:
            return [Probe(alone, Purpose.CONFIRM)]
        try:
            self.result()
        except _Ask as ask:
            return [ask.probe]
        return []

    def _ran(self, name: str) -> bool:
        """A process that gave no evidence at all is tried again, a bounded number of times."""
        return self._told(name) or self.tried[name] > self.settings.retries

    def _told(self, name: str) -> bool:
        """Whether the process of this order gave evidence about at least one shape after another."""
        return any(
            o.tag == name and o.purpose is Purpose.SEQUENCE and o.outcome.is_evidence and o.earlier
            for o in self.observations
        )

    def _orders(self, predicted_failing: NDArray[np.bool_]) -> dict[str, tuple[int, ...]]:
        failing = np.flatnonzero(self.tally.failing)[:FAILING_AT_END].tolist()
        base = self._base(predicted_failing)
        if len(base) + len(failing) < 2 or not base:
            return {}
        shuffled = np.random.default_rng([self.settings.seed, 5]).permutation(base).tolist()
        lists = (base, base[::-1], shuffled)
        return {name: (*order, *failing) for name, order in zip(ORDERS, lists, strict=True)}

    def _base(self, predicted_failing: NDArray[np.bool_]) -> list[int]:
        usable = np.flatnonzero(~self.tally.failing & ~predicted_failing & self.tally.runnable(self.settings))
        if len(usable) > LONGEST - FAILING_AT_END:
            usable = usable[np.linspace(0, len(usable) - 1, LONGEST - FAILING_AT_END).astype(int)]
        return [int(i) for i in usable]

    def _untested_alone(self) -> int | None:
        """A shape that failed after others and was never run alone: it may simply fail."""
        for (earlier, shape), outcomes in self.known.items():
            untested = self.tally.passes[shape] + self.tally.fails[shape] == 0
            if (
                earlier
                and untested
                and any(o.is_failure for o in outcomes)
                and self.tally.runnable(self.settings)[shape]
            ):
                return shape
        return None

    @cached_property
    def trigger(self) -> Trigger | None:
        """The difference from running alone with the fewest shapes before it."""
        found = []
        for (earlier, shape), outcomes in self.known.items():
            if not earlier:
                continue
            if self.tally.passing[shape] and any(o.is_failure for o in outcomes):
                found.append(Trigger(shape, earlier, True))
            if self.tally.failing[shape] and Outcome.PASS in outcomes:
                found.append(Trigger(shape, earlier, False))
        return min(found, key=lambda t: (len(t.earlier), t.fails, t.shape, t.earlier), default=None)

    def result(self) -> OrderDependence | None:
        """What the sequences show, None before any ran. Raises _Ask with the sequence that has to be run first."""
        told = sum(self._told(name) for name in ORDERS)
        if not told:
            return None
        if self.trigger is None:
            return OrderDependence(
                "independent", f"{told} orders in one process each show nothing that running alone does not"
            )
        trigger = self.trigger
        shortest = self._shortest(trigger)
        minimal = self.tried[MINIMISING] < self.settings.cheap_probes
        if not trigger.fails:
            return self._only_first(trigger, shortest, minimal)
        return self._after(trigger, shortest, minimal)

    def _shortest(self, trigger: Trigger) -> tuple[int, ...]:
        """1-minimal; without another run where the ledger already shows that no single shape can be left out."""
        earlier = trigger.earlier
        try:
            parts = [earlier[:i] + earlier[i + 1 :] for i in range(len(earlier))]
            if not any(self._does(trigger, part, MINIMISING) for part in parts):
                return earlier
        except _Ask:
            pass
        return ddmin(earlier, lambda part: self._does(trigger, part, MINIMISING))

    def _does(self, trigger: Trigger, earlier: tuple[int, ...], tag: str) -> bool:
        """Whether the shape shows the same difference after `earlier`; asks for the run where nobody knows."""
        outcomes = self.known.get((earlier, trigger.shape), [])
        evidence = [o for o in outcomes if o.is_evidence]
        if evidence:
            return any(o.is_failure for o in evidence) if trigger.fails else Outcome.PASS in evidence
        sequence = (*earlier, trigger.shape)
        prefixes = [sequence[:n] for n in range(1, len(sequence) + 1)]
        reached = any(p in self.cut_short or self.broken[p] > self.settings.retries for p in prefixes)
        over = tag == MINIMISING and self.tried[tag] >= self.settings.cheap_probes
        if reached or over or len(outcomes) > self.settings.retries:
            return False
        raise _Ask(sequence, tag)

    def _only_first(self, trigger: Trigger, shortest: tuple[int, ...], minimal: bool) -> OrderDependence:
        others = [i for i in np.flatnonzero(self.tally.passing).tolist() if i not in shortest][:2]
        always = all(self._does(trigger, (i,), CONTROL) for i in others) and len(shortest) == 1
        shape = self.sweep.shape(trigger.shape)
        if always:
            return self._report(
                "fails-only-first",
                f"{_say(shape)} fails only as the first shape of its process",
                trigger,
                shortest,
                minimal,
            )
        after = " then ".join(_say(self.sweep.shape(i)) for i in shortest)
        return self._report(
            "passes-after", f"{_say(shape)} fails alone and passes after {after}", trigger, shortest, minimal
        )

    def _after(self, trigger: Trigger, shortest: tuple[int, ...], minimal: bool) -> OrderDependence:
        shape = _say(self.sweep.shape(trigger.shape))
        after = " then ".join(_say(self.sweep.shape(i)) for i in shortest)
        positions = {name: self._failed_at(name) for name in ORDERS}
        every = all(p is not None for p in positions.values())
        if every and (len(shortest) > 1 or self._whatever_before(trigger, len(shortest))):
            return self._from_kth(positions, trigger, shortest, minimal)
        search = self._pair_search(shortest)
        if every and (search is None or not search.explains_all()):
            return self._from_kth(positions, trigger, shortest, minimal)
        rule = None if search is None else search.rule()
        text = f"{shape} passes alone and fails after {after}" + (f"; it fails where {rule}" if rule else "")
        return self._report("fails-after", text, trigger, shortest, minimal, rule=rule)

    def _from_kth(
        self, positions: dict[str, int | None], trigger: Trigger, shortest: tuple[int, ...], minimal: bool
    ) -> OrderDependence:
        """Something adds up in the process: every order fails, at a position of its own."""
        kth = positions["declared"]
        text = f"passes alone; in one process the sweep fails from its {_ordinal(kth or 0)} shape on in declared order"
        more = f" ({_ordinal(positions['reverse'] or 0)} in reverse, {_ordinal(positions['shuffled'] or 0)} shuffled)"
        return self._report("fails-from-the-kth", text + more, trigger, shortest, minimal, kth=kth)

    def _whatever_before(self, trigger: Trigger, count: int) -> bool:
        """Whether any other shapes before it, as many, do the same."""
        others = [
            i for i in np.flatnonzero(self.tally.passing).tolist() if i != trigger.shape and i not in trigger.earlier
        ]
        alike = [(trigger.shape,) * count]
        if len(others) >= count:
            alike.append(tuple(others[:count]))
        return all(self._does(trigger, earlier, CONTROL) for earlier in alike)

    def _pair_search(self, shortest: tuple[int, ...]) -> PairSearch | None:
        """Where one earlier shape is enough: what is learnt about pairs (the shape before, the shape after)."""
        if len(shortest) != 1:
            return None
        search = PairSearch(self.sweep, self.observations, self.tally, self.settings)
        probe = search.next()
        if probe is not None:
            raise _Ask(probe.sequence, probe.tag)
        return search

    def _failed_at(self, name: str) -> int | None:
        """Position (from 1) at which the process of this order met a shape that passes alone and failed."""
        for o in self.observations:
            if o.purpose is Purpose.SEQUENCE and o.tag == name and o.outcome.is_failure and self.tally.passing[o.shape]:
                return len(o.earlier) + 1
        return None

    def _report(
        self,
        kind: str,
        text: str,
        trigger: Trigger,
        shortest: tuple[int, ...],
        minimal: bool,
        kth: int | None = None,
        rule: str | None = None,
    ) -> OrderDependence:
        sequence = (*shortest, trigger.shape)
        shapes = tuple(self.sweep.shape(i) for i in sequence)
        return OrderDependence(kind, text, sequence, shapes, minimal, kth, rule)

    def answer(self) -> OrderDependence | None:
        """`result` for a report: while something is still to be run, what is known without it."""
        try:
            return self.result()
        except _Ask:
            trigger = self.trigger
        if trigger is None:
            return None
        shape = _say(self.sweep.shape(trigger.shape))
        said = "fails" if trigger.fails else "passes"
        text = (
            f"{shape} {said} after {len(trigger.earlier)} other shapes in one process, unlike alone (not minimised yet)"
        )
        kind = "fails-after" if trigger.fails else "passes-after"
        return self._report(kind, text, trigger, trigger.earlier, False)


def _say(shape: object) -> str:
    assert isinstance(shape, dict)
    return ", ".join(f"{name}={value}" for name, value in shape.items())


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
