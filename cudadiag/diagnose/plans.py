"""The plans of `sanitize` and `diagnose`: find the shape, then ask for what is wanted about it. They run nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cudadiag.diagnose.crosscheck import ENOUGH, WITHOUT_TOOL, Agreement, cross_check
from cudadiag.diagnose.engine import Diagnosis, diagnosis, wanted
from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import PURPOSE, REBUILT, REPEATS, Experiment, Setting
from cudadiag.diagnose.subject import Subject, of_answer, of_sequences
from cudadiag.diagnose.witness import OBSERVERS
from cudadiag.model import Sweep
from cudadiag.search import Settings
from cudadiag.session.judged import Judged
from cudadiag.session.searching import Searching
from cudadiag.session.task import Build, Task, Wanted

LOCATE = "locate"
SANITIZE = "sanitize"
LONGEST_SEQUENCE = 64
QUICK = Settings(rate_repeats=1, attacks=4, cheap_probes=12, confirm_repeats=2, screen_probes=64)
"""Enough of a search to have a first failing shape and a rule; `bisect` makes sure."""


@dataclass(frozen=True)
class Locating:
    """Looks for a failing shape under one observer; in one process first, where the case asks for it."""

    sweep: Sweep
    observer: str
    in_sequence: bool = False
    parallelism: int = 1

    @cached_property
    def _search(self) -> Searching:
        return Searching(self.sweep, dataclasses.replace(QUICK, parallelism=self.parallelism))

    @property
    def _origin(self) -> str:
        return f"a search under {self.observer}"

    def next(self, history: Sequence[Judged]) -> Wanted:
        if self.in_sequence and not any(judged.line.purpose == LOCATE for judged in history):
            every = tuple(range(min(len(self.sweep), LONGEST_SEQUENCE)))
            task = Task(self.sweep.shape(every[-1]), every[-1], LOCATE, sequence=every, observer=self.observer)
            return Wanted((task,), "the sweep in one process")
        asked = self._search.next([judged for judged in history if judged.line.purpose != LOCATE])
        tasks = tuple(dataclasses.replace(task, observer=self.observer) for task in asked.tasks)
        return dataclasses.replace(asked, tasks=tasks)

    def found(self, history: Sequence[Judged]) -> Subject | None:
        """The failing shape, once it is known; None before, and where the search found none."""
        in_one = of_sequences(self.sweep, [j for j in history if j.line.purpose == LOCATE], self._origin)
        if in_one is not None:
            return in_one
        own = [judged for judged in history if judged.line.purpose not in (LOCATE, PURPOSE, SANITIZE)]
        if not own or self.next(history).tasks:
            return None
        return of_answer(self._search.answer(own), self.sweep, own, self._origin)


@dataclass(frozen=True)
class About:
    """What both plans are about: the sweep, where it runs, and the shape or how it is looked for."""

    sweep: Sweep
    setting: Setting
    subject: Subject | None
    locating: Locating
    labels: tuple[str, ...] = ()

    def subject_in(self, history: Sequence[Judged]) -> Subject | None:
        return self.subject or self.locating.found(history)

    def searched(self, history: Sequence[Judged]) -> bool:
        """Whether the search for a failing shape came to its end."""
        return not self.locating.next(history).tasks

    def shapes_run(self, history: Sequence[Judged]) -> int:
        """How many shapes of the sweep gave evidence, alone or in one process with others."""
        alone = {j.line.index for j in history if j.outcome.is_evidence and not j.line.sequence}
        others = {i for j in history for i in j.line.sequence[: len(j.steps)]}
        return len((alone | others) - {None})

    def ran_all(self, history: Sequence[Judged]) -> bool:
        """Whether every shape was run: only then is nothing found the same as nothing wrong."""
        return self.shapes_run(history) >= len(self.sweep)

    def evidence(self, history: Sequence[Judged]) -> Evidence | None:
        """What is known about the shape in question; None while there is none."""
        subject = self.subject_in(history)
        if subject is None:
            return None
        index = subject.index
        derived = {} if index is None else {name: column[index] for name, column in self.sweep.derived.items()}
        return Evidence(subject, self.setting, history, derived)


@dataclass(frozen=True)
class Diagnosing:
    """Runs the experiments that can tell explanations apart; all that are possible with `everything`."""

    about: About
    everything: bool = False

    def next(self, history: Sequence[Judged]) -> Wanted:
        evidence = self.about.evidence(history)
        if evidence is None:
            return self.about.locating.next(history)
        experiments = wanted(evidence, everything=self.everything)
        tasks = [task for experiment in experiments for task in self._tasks(experiment, evidence)]
        return Wanted(tuple(tasks), f"experiments: {', '.join(experiments)}")

    def diagnosis(self, history: Sequence[Judged]) -> Diagnosis | None:
        """What follows from the probes so far; None where no shape is in question."""
        evidence = self.about.evidence(history)
        return None if evidence is None else diagnosis(evidence)

    def _tasks(self, experiment: Experiment, evidence: Evidence) -> list[Task]:
        subject, setting = evidence.subject, self.about.setting
        task = Task(
            shape=subject.shape,
            index=None,  # not the search's: what a tool says is no observation of the sweep
            purpose=PURPOSE,
            tag=experiment.value,
            sequence=() if experiment is Experiment.ALONE else subject.sequence,
            observer=setting.observer_of(experiment),
            build=Build(experiment.value) if experiment in REBUILT else Build.USUAL,
            device=self._other_device(evidence) if experiment is Experiment.OTHER_GPU else None,
        )
        again = experiment is Experiment.REPEAT or (experiment is Experiment.PLAIN and evidence.did(experiment))
        return [task] * (REPEATS if again else 1)

    def _other_device(self, evidence: Evidence) -> str | None:
        used = {witness.judged.line.device for witness in evidence.own}
        return next((label for label in self.about.labels if label not in used), None)


@dataclass(frozen=True)
class Sanitizing:
    """Runs one shape under several observers. `observers` None: plain, blocking and memcheck, and the others only
    where memcheck names no cause."""

    about: About
    observers: tuple[str, ...] | None = None
    everything: bool = False

    def next(self, history: Sequence[Judged]) -> Wanted:
        evidence = self.about.evidence(history)
        if evidence is None:
            return self.about.locating.next(history)
        subject = evidence.subject
        tasks = [
            Task(subject.shape, None, SANITIZE, name, subject.sequence, observer=name)
            for name in self._wanted(evidence)
            if not any(w.observer == name for w in evidence.own)
        ]
        return Wanted(tuple(tasks or self._repeats(evidence)), "observers")

    def _repeats(self, evidence: Evidence) -> list[Task]:
        """More runs with and without blocking launches, where the two end otherwise: it may be chance."""
        found = cross_check(evidence.own)
        if self.observers is not None or not found.blocking_differs:
            return []
        subject = evidence.subject
        return [
            Task(subject.shape, None, SANITIZE, told.observer, subject.sequence, observer=told.observer)
            for told in found.told
            if told.observer in WITHOUT_TOOL
            for _ in range(ENOUGH - told.runs)
        ]

    def agreement(self, history: Sequence[Judged]) -> Agreement | None:
        evidence = self.about.evidence(history)
        return None if evidence is None else cross_check(evidence.own)

    def _wanted(self, evidence: Evidence) -> tuple[str, ...]:
        possible = [name for name in OBSERVERS if self.possible(name)]
        if self.observers is not None:
            return self.observers
        first = [name for name in ("plain", "blocking", "memcheck") if name in possible]
        if self.everything:
            return tuple(possible)
        asked = [name for name in first if any(w.observer == name for w in evidence.own)]
        if asked != first or cross_check(evidence.own).cause is not None:
            return tuple(first)
        return tuple(possible)

    def possible(self, name: str) -> bool:
        """Whether this observer can say something of its own here: on the emulated device every one sees the same
        memory."""
        if self.about.setting.device == "emulator":
            return name in ("plain", "blocking")
        return self.about.setting.problem(Experiment(name)) is None
