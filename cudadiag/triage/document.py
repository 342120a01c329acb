"""The JSON document of `cudadiag triage --json`, as dataclasses; its JSON Schema is made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cudadiag.errors import EXIT_CLEAN, EXIT_FOUND, EXIT_UNDECIDED
from cudadiag.model import Fault, Outcome, Scalar
from cudadiag.triage.advice import Step
from cudadiag.triage.fold import Folded
from cudadiag.triage.nextshape import NextShape
from cudadiag.triage.sign import Sign
from cudadiag.triage.story import Story
from cudadiag.triage.verdicts import TriageVerdict

VERSION = 1
EXIT_CODES = {TriageVerdict.NOTHING_WRONG: EXIT_CLEAN, TriageVerdict.CAUSE_NOT_IN_LOG: EXIT_UNDECIDED}
"""Every other verdict names what is wrong: exit 1."""


@dataclass(frozen=True)
class FoldedRow:
    """Lines that are not the first fault: `echo` (told again), `cascade` (follows), `also` (another problem).
    `first_line` counts from 1 in the file `log`."""

    relation: Folded
    what: str
    count: int
    first_line: int
    log: str
    text: str


@dataclass(frozen=True)
class SeenSign:
    """A line of the log and what it means."""

    log: str
    log_line: int
    text: str
    means: str | None


@dataclass(frozen=True)
class TableEnd:
    """How far a benchmark's table came. `cut`: a further row was begun. `next_shape` needs --case; `note` says how it
    was found or why it was not."""

    title: str | None
    last_row: Mapping[str, Scalar]
    log_line: int
    cut: bool
    next_shape: Mapping[str, Scalar] | None
    note: str | None


@dataclass(frozen=True)
class BenchRow:
    """What a benchmark's or server's numbers say: settings of the last metrics line, settings that gave nothing, and
    those that worked."""

    settings: Mapping[str, str]
    affected: Sequence[str]
    worked: Sequence[str]


@dataclass(frozen=True)
class LogRow:
    """One log by itself. `key` is its signature, or verdict and cause."""

    name: str
    verdict: TriageVerdict
    kind: str | None
    key: str | None
    summary: str


@dataclass(frozen=True)
class ClusterRow:
    """Logs of one group. `face` is the shortest of them. `severity` with its reason; times are ISO 8601 (UTC)."""

    group: str
    count: int
    severity: str
    severity_reason: str
    verdict: TriageVerdict
    kind: str | None
    summary: str
    face: str
    oldest: str | None
    newest: str | None
    logs: Sequence[str]
    notes: Sequence[str]


@dataclass(frozen=True)
class TriageDocument:
    """`cudadiag triage --json`. With several logs the fields up to `logs` tell the most severe of them."""

    document: str
    schema: int
    exit_code: int
    verdict: TriageVerdict
    outcome: Outcome
    cause: str | None
    summary: str
    log: str
    log_line: int | None
    line: str | None
    fault: Fault | None
    folded: Sequence[FoldedRow]
    signature: str | None
    signature_coarse: str | None
    confidence: str
    confidence_reason: str
    misleading: Sequence[str]
    next: Sequence[Step]
    first_sign: SeenSign | None
    table: TableEnd | None
    bench: BenchRow
    processes: Sequence[str]
    logs: Sequence[LogRow]
    clusters: Sequence[ClusterRow]


def exit_code(verdict: TriageVerdict) -> int:
    """The exit status a verdict ends the command with."""
    return EXIT_CODES.get(verdict, EXIT_FOUND)


def triage_document(
    story: Story,
    steps: Sequence[Step],
    *,
    following: NextShape | None = None,
    logs: Sequence[LogRow] = (),
    clusters: Sequence[ClusterRow] = (),
) -> TriageDocument:
    """A story as its document."""
    primary = story.primary
    return TriageDocument(
        document="triage",
        schema=VERSION,
        exit_code=exit_code(story.verdict),
        verdict=story.verdict,
        outcome=story.outcome,
        cause=story.cause,
        summary=story.summary,
        log=_log(story, primary),
        log_line=primary.log_line if primary else None,
        line=primary.text if primary else None,
        fault=story.fault,
        folded=[
            FoldedRow(f.relation, f.what, f.count, f.first_line, _name(story, f.source), f.text) for f in story.folds
        ],
        signature=story.key,
        signature_coarse=story.coarse,
        confidence=story.confidence,
        confidence_reason=story.confidence_reason,
        misleading=story.misread,
        next=steps,
        first_sign=_seen(story, story.first_sign) if story.first_sign else None,
        table=_table(story, following),
        bench=BenchRow(story.bench.settings, story.bench.affected, story.bench.worked),
        processes=story.processes[:64],
        logs=logs,
        clusters=clusters,
    )


def log_row(name: str, story: Story) -> LogRow:
    kind = story.fault.kind.value if story.fault else None
    return LogRow(name, story.verdict, kind, story.key, story.summary)


def _name(story: Story, source: int) -> str:
    return story.names[source] if 0 <= source < len(story.names) else "-"


def _log(story: Story, sign: Sign | None) -> str:
    return _name(story, sign.source if sign else 0)


def _seen(story: Story, sign: Sign) -> SeenSign:
    return SeenSign(_log(story, sign), sign.log_line, sign.text, sign.words)


def _table(story: Story, following: NextShape | None) -> TableEnd | None:
    if story.table is None:
        return None
    row = story.table.last
    shape = dict(following.shape) if following and following.shape else None
    return TableEnd(
        story.table.title, dict(row.cells), row.log_line, story.table.cut, shape, following.note if following else None
    )
