"""The loop: ask the plan, start processes in the free slots, write down what each showed, judge it, ask again.

A plan is asked only when everything it asked for has ended, so the answer does not depend on which of several probes
side by side happened to end first. Each finished probe is on the disk before it is judged or believed.
"""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from cudadiag.session.clock import now
from cudadiag.session.judged import Judged
from cudadiag.session.progress import Progress
from cudadiag.session.stop import Stop
from cudadiag.session.task import Plan, Task
from cudadiag.store.folders import probe_folder
from cudadiag.store.ledger import LedgerWriter
from cudadiag.store.lines import ProbeLine
from harness.records import ProbeFacts, ProbeRequest

SIGNAL_S = 0.2
"""How long a signal may go unnoticed."""


class Bench(Protocol):
    """Where probes are run and judged: the joint to the case, the harness and the evidence."""

    @property
    def slots(self) -> Sequence[str]:
        """The device of each slot; as many probes run side by side."""

    def request(self, task: Task, slot: str, folder: Path) -> ProbeRequest: ...

    def run(self, request: ProbeRequest, stop: Event) -> ProbeFacts:
        """Blocks until the process ended. Called from several threads."""

    def read(self, facts: ProbeFacts) -> Mapping[str, Any]:
        """What the readers find in the probe's files, as it is kept in the ledger."""

    def judge(self, line: ProbeLine) -> Judged: ...


@dataclass(frozen=True)
class _Started:
    task: Task
    slot: int
    number: int
    request: ProbeRequest
    at: str


class Controller:
    """One run. `history` grows in the order in which probes ended; a resumed run begins with the ledger's probes."""

    def __init__(
        self,
        bench: Bench,
        writer: LedgerWriter,
        progress: Progress,
        stop: Stop,
        before: Iterable[ProbeLine] = (),
    ) -> None:
        self.history: list[Judged] = [bench.judge(line) for line in before]
        self._bench = bench
        self._writer = writer
        self._progress = progress
        self._stop = stop
        self._seen = Counter(_kind(j.line) for j in self.history)
        self._number = max((j.line.number for j in self.history), default=0)
        self._ended: queue.SimpleQueue[tuple[_Started, Future[ProbeFacts]] | None] = queue.SimpleQueue()
        stop.on_stop(lambda: self._ended.put(None))

    @property
    def stopped(self) -> bool:
        return self._stop.requested

    def watch(self, progress: Progress) -> None:
        """Tell another from now on; it hears at once of the probes a resumed run begins with."""
        self._progress = progress
        for judged in self.history:
            progress.finished(judged)

    def follow(self, plan: Plan) -> None:
        """Run what the plan wants until it wants nothing more or the user stops it."""
        with ThreadPoolExecutor(max_workers=len(self._bench.slots), thread_name_prefix="probe") as threads:
            try:
                while not self.stopped:
                    wanted = plan.next(self.history)
                    if not wanted.tasks:
                        return
                    self._progress.asking(wanted.doing, wanted.best, len(wanted.tasks))
                    self._work_off(list(wanted.tasks), threads)
            except BaseException:
                self._stop.event.set()  # whatever went wrong: no probe outlives the run
                raise

    def _work_off(self, tasks: list[Task], threads: ThreadPoolExecutor) -> None:
        free = list(range(len(self._bench.slots)))
        running = 0
        while running or (tasks and not self.stopped):
            while free and tasks and not self.stopped:
                self._start(tasks.pop(0), free.pop(0), threads)
                running += 1
            ended = self._next_ended()
            if ended is None:
                continue
            started, future = ended
            running -= 1
            free.append(started.slot)
            free.sort()
            self._finish(started, future.result())

    def _next_ended(self) -> tuple[_Started, Future[ProbeFacts]] | None:
        """The next probe that ended; None now and then. A signal that arrives just before the main thread goes to sleep
        does not wake it, and its handler runs in no other thread."""
        try:
            return self._ended.get(timeout=SIGNAL_S)
        except queue.Empty:
            return None

    def _start(self, task: Task, slot: int, threads: ThreadPoolExecutor) -> None:
        self._number += 1
        device = self._bench.slots[slot]
        folder = probe_folder(self._writer.path.parent, self._number)
        started = _Started(task, slot, self._number, self._bench.request(task, device, folder), now())
        self._progress.started(task, device)
        future = threads.submit(self._bench.run, started.request, self._stop.event)
        future.add_done_callback(_tell(self._ended, started))

    def _finish(self, started: _Started, facts: ProbeFacts) -> None:
        if self.stopped and facts.killed_by_us and not facts.timed_out:
            return  # ended because the user stopped the run: it says nothing about its shape
        line = self._line(started, facts)
        try:
            line = replace(line, reading=self._bench.read(facts))
        finally:
            self._writer.append(line)  # also where a reader has a bug: the probe was finished
        self._seen[_kind(line)] += 1
        judged = self._bench.judge(line)
        self.history.append(judged)
        self._progress.finished(judged)

    def _line(self, started: _Started, facts: ProbeFacts) -> ProbeLine:
        task, request = started.task, started.request
        line = ProbeLine(
            number=started.number,
            shape=dict(task.shape),
            index=task.index,
            purpose=task.purpose,
            observer=request.observer,
            device=request.device,
            memory_model=request.memory_model,
            repeat=0,
            started=started.at,
            facts=facts,
            sequence=task.sequence,
            tag=task.tag,
        )
        return replace(line, repeat=self._seen[_kind(line)])


def _kind(line: ProbeLine) -> tuple[object, ...]:
    """Probes that differ in nothing but chance."""
    return tuple(line.shape.items()), line.sequence, line.observer, line.device, line.memory_model


def _tell(
    ended: queue.SimpleQueue[tuple[_Started, Future[ProbeFacts]] | None], started: _Started
) -> Callable[[Future[ProbeFacts]], None]:
    return lambda future: ended.put((started, future))
