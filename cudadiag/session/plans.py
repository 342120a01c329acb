"""The simple plans: one shape, every shape, giving up where nothing can be learnt. The searching one is elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cudadiag.model import Scalar, Sweep
from cudadiag.session.apart import reached
from cudadiag.session.judged import Judged
from cudadiag.session.task import Plan, Task, Wanted


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
class UnlessHopeless:
    """A plan that is given up when its first probes are all unresolved for one reason: a thousand more would be."""

    plan: Plan
    patience: int = 6

    def next(self, history: Sequence[Judged]) -> Wanted:
        return Wanted() if hopeless(history, self.patience) else self.plan.next(history)


def hopeless(history: Sequence[Judged], patience: int = 6) -> str | None:
    """The reason that all probes so far share, when there are at least `patience` and none is evidence; else None."""
    reasons = {judged.verdict.reason for judged in history}
    if len(history) < patience or len(reasons) != 1 or any(judged.outcome.is_evidence for judged in history):
        return None
    return reasons.pop()


@dataclass(frozen=True)
class EveryShape:
    """Every legal shape in sweep order, `repeat` times in fresh processes; what the ledger has is not run again."""

    sweep: Sweep
    repeat: int = 1
    at_once: int = 256  # asked for together: after each lot the plan may be given up

    def next(self, history: Sequence[Judged]) -> Wanted:
        done = Counter(judged.line.index for judged in history)
        tasks: list[Task] = []
        for index in range(len(self.sweep)):
            tasks += [Task(self.sweep.shape(index), index, "sweep")] * max(0, self.repeat - done[index])
            if len(tasks) >= (self.at_once if history else 6):
                break
        return Wanted(tuple(tasks), doing="every shape")


@dataclass(frozen=True)
class InSequence:
    """Every shape in sweep order in one process (`isolation: sequence`), `repeat` times. After a shape that ended the
    process the next one begins a new process, so that every shape gets its row."""

    sweep: Sweep
    repeat: int = 1

    def next(self, history: Sequence[Judged]) -> Wanted:
        done = sum(len(reached(judged)) for judged in history if judged.line.sequence)
        at = done % len(self.sweep)
        if done >= self.repeat * len(self.sweep):
            return Wanted()
        rest = tuple(range(at, len(self.sweep)))
        return Wanted((Task(self.sweep.shape(rest[-1]), rest[-1], "sweep", sequence=rest),), doing="all in one process")
