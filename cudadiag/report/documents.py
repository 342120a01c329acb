"""The JSON documents of `--json`, one frozen dataclass each. Their JSON Schemas are made from these classes
(report/schemas.py), so that the two cannot differ. `schema` is raised when a key changes its meaning or goes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cudadiag.model import Fault, Outcome, Scalar
from cudadiag.session.check import Check
from cudadiag.session.judged import Judged
from cudadiag.store.lines import strict_json

DOCUMENT_VERSION = 1


@dataclass(frozen=True)
class ProbeDocument:
    """One probe. `folder`, `stdout` and `stderr` are paths; times are in seconds unless named otherwise."""

    probe: int
    shape: Mapping[str, Scalar]
    index: int | None
    purpose: str
    observer: str
    device: str
    memory_model: str
    repeat: int
    sequence: Sequence[int]
    outcome: Outcome
    reason: str
    proof: str | None
    fault: Fault | None
    exit_code: int | None
    signal: int | None
    timed_out: bool
    last_step: str | None
    wall_s: float
    us_per_call: float | None
    reference_us: float | None
    folder: str
    stdout: str | None
    stderr: str | None


@dataclass(frozen=True)
class RunInfo:
    """Which run of what: `run` is the name that `--resume` and `explain` take."""

    run: str
    folder: str
    case: str
    case_path: str | None
    device: Mapping[str, Any]
    settings: Mapping[str, Any]
    interrupted: bool


@dataclass(frozen=True)
class TimelineRow:
    """One line of the merged time line. `tied`: a line of the other stream was read at the same moment."""

    at_s: float
    source: str  # "stdout", "stderr" or "step"
    text: str
    tied: bool


@dataclass(frozen=True)
class RunDocument:
    """`cudadiag run --json`."""

    document: str
    schema: int
    exit_code: int
    info: RunInfo
    probes: Sequence[ProbeDocument]
    timeline: Sequence[TimelineRow] | None


@dataclass(frozen=True)
class SweepDocument:
    """`cudadiag sweep --json`. `counts`: probes of each outcome; `shapes_run` of `shapes` have evidence."""

    document: str
    schema: int
    exit_code: int
    info: RunInfo
    shapes: int
    shapes_run: int
    counts: Mapping[str, int]
    probes: Sequence[ProbeDocument]


@dataclass(frozen=True)
class DoctorDocument:
    """`cudadiag doctor --json`."""

    document: str
    schema: int
    exit_code: int
    checks: Sequence[Check]


@dataclass(frozen=True)
class CaseRow:
    """One case that can be run by name. `problem` is set where its file cannot be read as a case."""

    name: str
    title: str
    path: str
    origin: str  # "here" (./cases) or "bundled"
    target: str | None
    shapes: int | None
    problem: str | None = None


@dataclass(frozen=True)
class CasesDocument:
    """`cudadiag cases --json`."""

    document: str
    schema: int
    exit_code: int
    cases: Sequence[CaseRow]


@dataclass(frozen=True)
class RunRow:
    """One run that `clean` lists. `removed` is False for those kept and in a dry run."""

    run: str
    case: str
    started: str
    bytes: int
    reason: str | None
    removed: bool


@dataclass(frozen=True)
class CleanDocument:
    """`cudadiag clean --json`."""

    document: str
    schema: int
    exit_code: int
    runs: Sequence[RunRow]


@dataclass(frozen=True)
class LookupRow:
    """One entry. `kind` is None for what is no fault by itself. `details`: causes, or how to read an Xid."""

    table: str  # "cuda" or "xid"
    number: int
    name: str
    kind: str | None
    meaning: str
    details: Sequence[str]


@dataclass(frozen=True)
class LookupDocument:
    """`cudadiag lookup --json`."""

    document: str
    schema: int
    exit_code: int
    query: str
    entries: Sequence[LookupRow]


@dataclass(frozen=True)
class ErrorPart:
    """`exit`: the exit code. `hint`: what to do about it, where something is known."""

    message: str
    hint: str | None
    exit: int


@dataclass(frozen=True)
class ErrorDocument:
    """What every command prints with --json in place of its own document where it ends with 2 or 3 before it has one:
    wrong use, a wrong case file, no device, a tool missing. `git bisect` codes are those of the process (128, 125)."""

    document: str
    schema: int
    exit_code: int
    error: ErrorPart


def error_document(message: str, hint: str | None, exit_code: int) -> ErrorDocument:
    """The document of a command that ended before it had one of its own."""
    return ErrorDocument("error", DOCUMENT_VERSION, exit_code, ErrorPart(message, hint, exit_code))


def probe_document(judged: Judged) -> ProbeDocument:
    """A judged probe as its document."""
    line, verdict, facts = judged.line, judged.verdict, judged.line.facts
    return ProbeDocument(
        probe=line.number,
        shape=dict(line.shape),
        index=line.index,
        purpose=line.purpose,
        observer=line.observer,
        device=line.device,
        memory_model=line.memory_model,
        repeat=line.repeat,
        sequence=line.sequence,
        outcome=verdict.outcome,
        reason=verdict.reason,
        proof=verdict.proof,
        fault=verdict.fault,
        exit_code=facts.exit_code,
        signal=facts.signal,
        timed_out=facts.timed_out,
        last_step=facts.last_step,
        wall_s=facts.wall_s,
        us_per_call=judged.us_per_call,
        reference_us=judged.reference_us,
        folder=facts.folder,
        stdout=facts.stdout.path if facts.stdout else None,
        stderr=facts.stderr.path if facts.stderr else None,
    )


def to_text(document: Any) -> str:
    """A document as JSON text, strict: numbers that are not finite become text."""
    return json.dumps(strict_json(dataclasses.asdict(document)), indent=2, allow_nan=False)
