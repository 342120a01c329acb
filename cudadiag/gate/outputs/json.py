"""The gate's JSON document: everything, for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cudadiag.gate.finding import Finding
from cudadiag.gate.outputs.interface import Format
from cudadiag.gate.report import GateReport, rows
from cudadiag.gate.status import Status
from cudadiag.model import Fault, Scalar
from cudadiag.report.documents import DOCUMENT_VERSION, to_text


@dataclass(frozen=True)
class FindingDocument:
    """One finding. `signature` and `fine` are null for what is about no crash that was seen; `entry_line` is the line
    in the baseline."""

    status: Status
    case: str
    reason: str
    shapes: Sequence[Mapping[str, Scalar]]
    signature: str | None
    fine: str | None
    fails: int
    runs: int
    entry_line: int | None
    issue: str | None
    probe_folder: str | None
    fault: Fault | None


@dataclass(frozen=True)
class ShapeDocument:
    """One planned shape. `state`: passed, failed (new or changed), known, undecided or left-out."""

    shape: Mapping[str, Scalar]
    state: str
    why: Sequence[str]
    runs: int
    fails: int


@dataclass(frozen=True)
class CaseDocument:
    """One case. `problem`: why it could not be run; `left_out`: why it was not meant to be."""

    case: str
    path: str | None
    device: str
    problem: str | None
    left_out: str | None
    sources_changed: bool | None
    run_folders: Sequence[str]
    shapes: Sequence[ShapeDocument]


@dataclass(frozen=True)
class GateDocument:
    """`cudadiag gate --json`. `finished` is false in a file that a killed gate left."""

    document: str
    schema: int
    exit_code: int
    gate: str
    finished: bool
    strict: bool
    shard: str
    baseline: str | None
    started: str
    wall_s: float
    power: str
    counts: Mapping[str, int]
    findings: Sequence[FindingDocument]
    cases: Sequence[CaseDocument]


def document(report: GateReport) -> GateDocument:
    """The report as its document."""
    counts = {status.value: len(report.of(status)) for status in Status}
    return GateDocument(
        document="gate",
        schema=DOCUMENT_VERSION,
        exit_code=report.exit_code,
        gate=report.gate,
        finished=report.finished,
        strict=report.strict,
        shard=report.shard,
        baseline=str(report.baseline) if report.baseline else None,
        started=report.started,
        wall_s=report.wall_s,
        power=report.power,
        counts=counts,
        findings=[_finding(report, finding) for finding in report.findings],
        cases=list(_cases(report)),
    )


def _finding(report: GateReport, finding: Finding) -> FindingDocument:
    run = next((run for run in report.runs if run.name == finding.case), None)
    return FindingDocument(
        status=finding.status,
        case=finding.case,
        reason=finding.reason,
        shapes=[run.sweep.shape(index) for index in finding.indices] if run else [],
        signature=finding.group,
        fine=finding.fine,
        fails=finding.fails,
        runs=finding.runs,
        entry_line=finding.entry.line if finding.entry else None,
        issue=finding.entry.issue if finding.entry else None,
        probe_folder=(finding.seen.folder or None) if finding.seen else None,
        fault=finding.seen.verdict.fault if finding.seen else None,
    )


def _cases(report: GateReport) -> Iterator[CaseDocument]:
    for run in report.runs:
        why = {c.index: c.why for c in run.chosen}
        shapes = []
        for row in rows(report, run):
            if row.shape is not None:
                evidence = [s for s in run.at(row.index) if s.outcome.is_evidence]
                fails = sum(s.failed for s in evidence)
                reasons = why.get(row.index, ("neighbour of a new crash",))
                shapes.append(ShapeDocument(row.shape, row.state.value, reasons, len(evidence), fails))
        yield CaseDocument(
            run.name, run.path, run.device, run.problem, run.left_out, run.changed, run.run_folders, shapes
        )


def render(report: GateReport) -> bytes:
    return to_text(document(report)).encode("utf-8", "replace") + b"\n"


FORMAT = Format("json", render, "the JSON document that --json prints")
