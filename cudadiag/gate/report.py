"""What the outputs are made of: the runs of a gate, its findings, and a row for every planned shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.finding import Finding
from cudadiag.gate.status import Status
from cudadiag.gate.words import shape_words
from cudadiag.model import Shape


@dataclass(frozen=True)
class GateReport:
    """`finished`: the gate came to its end; reports of a gate under way, or killed, are as complete as it was.
    `root`: the folder that paths in outputs are relative to. `power`: what the repeats can find, in words."""

    gate: str
    started: str
    runs: Sequence[CaseRun]
    findings: Sequence[Finding]
    exit_code: int
    finished: bool
    strict: bool
    power: str
    root: Path
    baseline: Path | None = None
    shard: str = "1/1"
    command_line: tuple[str, ...] = ()
    wall_s: float = 0.0

    @property
    def probes(self) -> int:
        return sum(len(run.seen) for run in self.runs)

    def of(self, *statuses: Status) -> list[Finding]:
        return [finding for finding in self.findings if finding.status in statuses]


class RowState(StrEnum):
    """How a shape went, as test reports know it."""

    PASSED = "passed"
    FAILED = "failed"  # new or changed
    KNOWN = "known"
    UNDECIDED = "undecided"
    LEFT_OUT = "left-out"


@dataclass(frozen=True)
class Row:
    """One planned shape, or (`shape` None) one thing to say about a case as a whole."""

    case: str
    shape: Shape | None
    state: RowState
    message: str = ""
    wall_s: float = 0.0
    finding: Finding | None = field(default=None, repr=False)
    index: int = -1

    @property
    def name(self) -> str:
        return shape_words(self.shape) if self.shape is not None else "(case)"


_STATES = {
    Status.NEW: RowState.FAILED,
    Status.CHANGED: RowState.FAILED,
    Status.KNOWN: RowState.KNOWN,
    Status.FLAKY: RowState.KNOWN,
    Status.UNDECIDED: RowState.UNDECIDED,
    Status.LEFT_OUT: RowState.LEFT_OUT,
}


def rows(report: GateReport, run: CaseRun) -> Iterator[Row]:
    """A row for every planned shape of a case, in sweep order, and one for the case where it was not run."""
    findings = [f for f in report.findings if f.case == run.name]
    by_index: dict[int, Finding] = {}
    for finding in findings:
        if finding.status in _STATES:
            for index in finding.indices:
                by_index.setdefault(index, finding)  # the gravest comes first
    for finding in findings:
        if finding.status in (Status.UNDECIDED, Status.LEFT_OUT) and not finding.indices:
            yield Row(run.name, None, _STATES[finding.status], finding.reason, finding=finding)
    if run.problem is not None and not run.seen:
        return
    for index in sorted({*run.planned, *run.cut, *(seen.index for seen in run.seen)}):
        yield _row(run, index, by_index.get(index))


def _row(run: CaseRun, index: int, finding: Finding | None) -> Row:
    shape, seen = run.sweep.shape(index), run.at(index)
    wall_s = sum(s.wall_s for s in seen)
    mild = finding is not None and _STATES[finding.status] in (RowState.KNOWN, RowState.LEFT_OUT)
    if finding is None or (mild and seen and not any(s.failed for s in seen)):
        if any(s.passed for s in seen):
            return Row(run.name, shape, RowState.PASSED, "", wall_s, index=index)
        message = seen[-1].words if seen else "not run"
        return Row(run.name, shape, RowState.UNDECIDED, message, wall_s, index=index)
    return Row(run.name, shape, _STATES[finding.status], finding.reason, wall_s, finding, index)
