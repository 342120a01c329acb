"""What to run next in one case: every chosen shape, then as many fresh runs of a known crash as its rate demands,
then of a new crash its repeats and its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cudadiag.gate.baseline import Baseline, Entry
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.covering import Neighbours
from cudadiag.gate.decide import belongs
from cudadiag.gate.rates import passes_needed
from cudadiag.gate.seen import Seen, from_judged
from cudadiag.model import Outcome
from cudadiag.session.judged import Judged
from cudadiag.session.plans import hopeless
from cudadiag.session.task import Task, Wanted

CONFIRM = 4  # runs of the first shape at which a new crash is seen: its rate goes into the baseline
CONFIRM_HANG = 2  # a hang costs its whole time limit each time
RETRIES = 2  # of a shape whose runs are no evidence
MOST_EXTENT = 16  # shapes run to see how far new crashes of a case go
MOST_EXTENT_HANG = 4
MOST_FRESH = 200  # runs of one shape of a known crash in one gate; a rarer one is never called fixed by a single run
AT_ONCE = 16


@dataclass(frozen=True)
class Watch:
    """A known crash, the chosen shapes at which it is expected, and all of those shapes."""

    entry: Entry
    indices: tuple[int, ...]
    inside: frozenset[int]


def watches(run: CaseRun, baseline: Baseline) -> tuple[Watch, ...]:
    """The known crashes that this run meets."""
    found = []
    for entry in run.entries(baseline):
        inside = run.covered(entry).inside
        found.append(Watch(entry, tuple(index for index in run.planned if index in inside), inside))
    return tuple(found)


@dataclass(frozen=True)
class GatePlan:
    """Asked by the controller. `before`: what earlier sessions of this gate saw of the case. `spent` tells that the
    budget is used up: then nothing more is wanted."""

    run: CaseRun
    baseline: Baseline
    spent: Callable[[], bool] = lambda: False
    before: tuple[Seen, ...] = ()

    def next(self, history: Sequence[Judged]) -> Wanted:
        if self.spent() or hopeless(history):
            return Wanted()
        seen = (*self.before, *(s for s in map(from_judged, history) if s is not None))
        if any(s.broken_device for s in seen):
            return Wanted()
        known = watches(self.run, self.baseline)
        for tasks, doing in (
            (self._first(seen, known), "chosen shapes"),
            (self._known(seen, known), "known crashes"),
            (self._confirm(seen, known), "how often a new crash fails"),
            (self._extent(seen, known), "how far a new crash goes"),
        ):
            if tasks:
                return Wanted(tuple(tasks[:AT_ONCE]), doing)
        return Wanted()

    def _task(self, index: int, purpose: str) -> Task:
        return Task(self.run.sweep.shape(index), index, purpose)

    def _first(self, seen: Sequence[Seen], known: Sequence[Watch]) -> list[Task]:
        """Every planned shape; those without a known crash `repeat` times. A run that is no evidence is tried again."""
        done, told = Counter(s.index for s in seen), Counter(s.index for s in seen if s.outcome.is_evidence)
        once = {index for watch in known for index in watch.indices}
        wanted = [(i, 1 if i in once else self.run.repeat) for i in self.run.planned]
        more = [(i, min(times - told[i], times + RETRIES - done[i])) for i, times in wanted]
        return [self._task(i, "gate") for i, times in more for _ in range(times)]

    def _known(self, seen: Sequence[Seen], known: Sequence[Watch]) -> list[Task]:
        """A known crash that has not failed yet: more runs, twice as many each time, until it fails or counts as
        fixed. One that is still there costs few of them."""
        tasks: list[Task] = []
        done = Counter(s.index for s in seen)
        for watch in known:
            if any(s.index in watch.indices and not s.passed for s in seen):
                continue  # it failed, or nothing can be said
            needed = min(passes_needed(watch.entry.measured), MOST_FRESH)
            for index in watch.indices:
                more = min(needed - done[index], max(1, done[index]))
                tasks += [self._task(index, "fresh")] * more
        return tasks

    def _extent(self, seen: Sequence[Seen], known: Sequence[Watch]) -> list[Task]:
        """Neighbours of where a new crash is seen, as far as it goes: the baseline must know all of it, or the next
        run meets it again one shape further on."""
        ran = {s.index for s in seen}
        extra = len(ran - set(self.run.planned))
        new = self._new(seen, known)
        failing = sorted({s.index for s in new})
        most = MOST_EXTENT_HANG if any(s.outcome is Outcome.HANG for s in new) else MOST_EXTENT
        near = dict.fromkeys(other for index in failing for other in self._neighbours.of(index) if other not in ran)
        return [self._task(index, "extent") for index in list(near)[: max(0, most - extra)]]

    def _new(self, seen: Sequence[Seen], known: Sequence[Watch]) -> list[Seen]:
        """Failures that no known crash explains, in the order in which they ended."""
        found = []
        for s in (s for s in seen if s.failed):
            here = [watch.entry for watch in known if s.index in watch.inside]
            if belongs(s, here, self.baseline)[0] is None:
                found.append(s)
        return found

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self.run.sweep)

    def _confirm(self, seen: Sequence[Seen], known: Sequence[Watch]) -> list[Task]:
        done = Counter(s.index for s in seen)
        first: dict[str, Seen] = {}
        for s in self._new(seen, known):
            if s.signature:
                first.setdefault(s.signature.coarse, s)
        tasks: list[Task] = []
        for s in first.values():
            runs = CONFIRM_HANG if s.outcome is Outcome.HANG else CONFIRM
            tasks += [self._task(s.index, "confirm")] * (runs - done[s.index])
        return tasks
