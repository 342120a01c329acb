"""The simple plans: one shape, every shape, and several repeats of one. The searching plan is in `searching`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cudadiag.model import Outcome, Scalar, Sweep
from cudadiag.session.judged import Judged
from cudadiag.session.task import Task, Wanted


@dataclass(frozen=True)
class OneShape:
    """`repeat` fresh processes of one shape."""

    shape: Mapping[str, Scalar]
    index: int | None
    repeat: int = 1
    purpose: str = "one"

    def next(self, history: Sequence[Judged]) -> Wanted:
        done = sum(dict(j.line.shape) == dict(self.shape) and j.line.purpose == self.purpose for j in history)
        tasks = (Task(self.shape, self.index, self.purpose),) * max(0, self.repeat - done)
        return Wanted(tasks, doing="one shape")


@dataclass(frozen=True)
class EveryShape:
    """Every legal shape in sweep order, `repeat` times in fresh processes; what the ledger has is not run again."""

    sweep: Sweep
    repeat: int = 1
    retries: int = 0  # of shapes that came out unresolved

    def next(self, history: Sequence[Judged]) -> Wanted:
        done = Counter(j.line.index for j in history if j.outcome is not Outcome.UNRESOLVED)
        failed = Counter(j.line.index for j in history if j.outcome is Outcome.UNRESOLVED)
        tasks = []
        for index in range(len(self.sweep)):
            left = self.repeat - done[index] - max(0, failed[index] - self.retries)
            tasks += [Task(self.sweep.shape(index), index, "sweep")] * max(0, left)
        return Wanted(tuple(tasks), doing="every shape")
