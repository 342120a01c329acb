"""The joint to the search: the ledger's probes become its observations, its wishes become tasks."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass

from cudadiag.model import Outcome, Sweep
from cudadiag.search import Answer, Observation, Probe, Purpose, Settings, answer, next_probes
from cudadiag.session.judged import Judged
from cudadiag.session.task import Task, Wanted
from harness.records import ProbeFacts

LASTING = tuple(
    os.strerror(number)
    for number in (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.E2BIG)
)
_PURPOSES = {purpose.value: purpose for purpose in Purpose}


@dataclass(frozen=True)
class Searching:
    """The plan of `bisect`: whatever the search asks for."""

    sweep: Sweep
    settings: Settings

    def next(self, history: Sequence[Judged]) -> Wanted:
        batch = next_probes(self.sweep, observations(history), self.settings)
        tasks = [task for probe in batch.probes for task in _tasks(self.sweep, probe)]
        return Wanted(tuple(tasks), batch.doing, batch.best)

    def answer(self, history: Sequence[Judged]) -> Answer:
        """What follows from the probes so far."""
        return answer(self.sweep, observations(history), self.settings)


def _tasks(sweep: Sweep, probe: Probe) -> list[Task]:
    task = Task(sweep.shape(probe.shape), probe.shape, probe.purpose.value, probe.tag, probe.sequence)
    return [task] * probe.repeat


def observations(history: Sequence[Judged]) -> list[Observation]:
    """What the probes showed about shapes of the sweep, in the order in which they ended."""
    found: list[Observation] = []
    for judged in history:
        line = judged.line
        if line.index is None:
            continue
        probe = Probe(line.index, _PURPOSES.get(line.purpose, Purpose.SCAN), sequence=line.sequence, tag=line.tag)
        if line.sequence:
            results = [(v.outcome, s) for v, s in zip(judged.steps, judged.step_signatures, strict=True)]
            found += probe.observed_sequence(results, line.facts.wall_s)
        else:
            final = judged.outcome is Outcome.UNRESOLVED and _cannot_change(line.facts)
            found.append(probe.observed(judged.outcome, judged.signature, line.facts.wall_s, final))
    return found


def _cannot_change(facts: ProbeFacts) -> bool:
    """Whether it was not started for a reason that another try does not change: the case itself, or what the system
    says of the program. Anything else (no memory, too many files) may pass."""
    refused = facts.start_error is not None and facts.stdout is None  # before anything was handed to the system
    return refused or bool(facts.start_error and facts.start_error.endswith(LASTING))
