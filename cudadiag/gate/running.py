"""A gate under way: case after case, each run with a ledger of its own; told to the outputs after every probe."""

from __future__ import annotations

import dataclasses
import datetime
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudadiag.errors import Undecided
from cudadiag.gate.ask import GateAsk
from cudadiag.gate.baseline import Baseline
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.decide import decide, exit_code
from cudadiag.gate.gathering import Candidate, words
from cudadiag.gate.plan import GatePlan
from cudadiag.gate.planning import telling_order, within
from cudadiag.gate.rates import power_words
from cudadiag.gate.report import GateReport
from cudadiag.gate.seen import from_judged
from cudadiag.gate.sourceplace import repository_root
from cudadiag.model import Sweep
from cudadiag.session.judged import Judged
from cudadiag.session.progress import PassedOn, Progress
from cudadiag.session.setup import Prepared, begin
from cudadiag.store.folders import Store

MOST_ROUNDS = 8  # of a budget: what was too dear by the estimate is tried again while time is left


@dataclass(frozen=True)
class Around:
    """What a gate is given: where runs are kept, the baseline, the day, who is told."""

    store: Store
    baseline: Baseline
    today: datetime.date
    command_line: tuple[str, ...]
    watch: Callable[[Sweep], Progress]
    publish: Callable[[GateReport], None]


class Gate:
    """One gate. `interrupted`: the exit code of the signal that stopped it, None where nothing did."""

    def __init__(self, ask: GateAsk, candidates: Sequence[Candidate], around: Around) -> None:
        self.ask, self.around = ask, around
        self.runs: list[CaseRun] = [candidate.run for candidate in candidates]
        self.interrupted: int | None = None
        self._prepared = [candidate.prepared for candidate in candidates]
        self._began_s = time.monotonic()
        self._started = datetime.datetime.now(datetime.UTC)
        self.name = f"{self._started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"

    def run(self) -> GateReport:
        """All of it. Publishes the report before the first probe, after each, and at the end."""
        self.around.publish(self.report(finished=False))
        if self.ask.budget_s is None:
            self._round(range(len(self.runs)))
        else:
            self._rounds(self.ask.budget_s)
        report = self.report(finished=self.interrupted is None)
        self.around.publish(report)
        return report

    def report(self, *, finished: bool) -> GateReport:
        """What can be said now."""
        baseline, ask = self.around.baseline, self.ask
        every = not ask.cases and ask.shard.number == 1
        findings = decide(self.runs, baseline, self.around.today, all_cases=every)
        code = exit_code(findings, self.runs, strict=ask.strict, finished=finished, may_be_empty=ask.shard.count > 1)
        repeats = [run.repeat for run in self.runs if run.planned]
        return GateReport(
            gate=self.name,
            started=f"{self._started:%Y-%m-%dT%H:%M:%S}Z",
            runs=tuple(self.runs),
            findings=findings,
            exit_code=code,
            finished=finished,
            strict=ask.strict,
            power=power_words(min(repeats, default=ask.repeat)),
            root=repository_root(Path(ask.cwd)),
            baseline=baseline.path,
            shard=str(ask.shard),
            command_line=self.around.command_line,
            wall_s=time.monotonic() - self._began_s,
        )

    def spent(self) -> bool:
        """Whether the budget is used up."""
        return self.ask.budget_s is not None and time.monotonic() - self._began_s >= self.ask.budget_s

    def _rounds(self, budget_s: float) -> None:
        for _ in range(MOST_ROUNDS):
            left_s = budget_s - (time.monotonic() - self._began_s)
            before = [run.cut for run in self.runs]
            self._plan_within(left_s)
            self._round(telling_order([self._only_new(i) for i in range(len(self.runs))]))
            self._cut_unrun()
            done = not any(run.cut for run in self.runs) or [run.cut for run in self.runs] == before
            if self.spent() or self.interrupted is not None or done:
                return

    def _plan_within(self, left_s: float) -> None:
        """What of the shapes not run yet fits into the time that is left."""
        waiting = [
            dataclasses.replace(run, chosen=tuple(c for c in run.chosen if not run.at(c.index)) if self._can(i) else ())
            for i, run in enumerate(self.runs)
        ]
        slots = max((len(p.choice.labels) * p.ask.jobs for p in self._prepared if p), default=1)
        for i, planned in enumerate(within(waiting, left_s, slots)):
            self.runs[i] = dataclasses.replace(self.runs[i], cut=planned.cut)

    def _can(self, i: int) -> bool:
        return self._prepared[i] is not None and self.runs[i].problem is None

    def _only_new(self, i: int) -> CaseRun:
        run = self.runs[i]
        return dataclasses.replace(run, chosen=tuple(c for c in run.chosen if not run.at(c.index)))

    def _cut_unrun(self) -> None:
        """Shapes that were planned and that the budget's end kept from running."""
        if not self.spent():
            return
        for i, run in enumerate(self.runs):
            if self._can(i):
                missing = frozenset(index for index in run.planned if not run.at(index))
                self.runs[i] = dataclasses.replace(run, cut=run.cut | missing)

    def _round(self, order: Sequence[int]) -> None:
        for i in order:
            prepared = self._prepared[i]
            if self.interrupted is not None or self.spent():
                return
            if prepared is not None and self._only_new(i).planned and self._can(i):
                try:
                    self._case(i, prepared)
                except Undecided as problem:
                    self.runs[i] = dataclasses.replace(self.runs[i], problem=words(problem))
                self.around.publish(self.report(finished=False))

    def _case(self, i: int, prepared: Prepared) -> None:
        progress = _Telling(self.around.watch(prepared.sweep), lambda judged: self._finished(i, judged))
        try:
            with begin(prepared, self.around.store, self.around.command_line, progress) as session:
                run = self.runs[i]
                self.runs[i] = dataclasses.replace(run, run_folders=(*run.run_folders, str(session.folder)))
                plan = GatePlan(self.runs[i], self.around.baseline, self.spent, before=run.seen)
                session.controller.follow(plan)
                findings = [f for f in self.report(finished=False).findings if f.case == run.name]
                told = [{"status": f.status.value, "reason": f.reason, "signature": f.group} for f in findings]
                session.note("concluded", {"gate": self.name, "shard": str(self.ask.shard), "findings": told})
                if session.stop.requested:
                    session.note("interrupted", {"signal": session.stop.signal})
                    self.interrupted = session.stop.exit_code
        finally:
            progress.closed()

    def _finished(self, i: int, judged: Judged) -> None:
        seen = from_judged(judged)
        if seen is not None:
            self.runs[i] = dataclasses.replace(self.runs[i], seen=(*self.runs[i].seen, seen))
        self.around.publish(self.report(finished=False))


class _Telling(PassedOn):
    """Tells the gate of each probe."""

    def __init__(self, inner: Progress, finished: Callable[[Judged], None]) -> None:
        super().__init__(inner)
        self._tell = finished

    def finished(self, judged: Judged) -> None:
        super().finished(judged)
        self._tell(judged)
