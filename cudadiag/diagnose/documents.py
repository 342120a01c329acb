"""The JSON documents of `sanitize --json` and `diagnose --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cudadiag.diagnose.crosscheck import Agreement
from cudadiag.diagnose.engine import Diagnosis
from cudadiag.diagnose.report import place_words
from cudadiag.diagnose.subject import Subject
from cudadiag.model import Fault, Outcome, Scalar
from cudadiag.report.documents import ProbeDocument, RunInfo


@dataclass(frozen=True)
class SubjectPart:
    """The shape in question. `sequence`: indices that must run in one process, this one last; [] where it fails
    alone."""

    shape: Mapping[str, Scalar]
    index: int | None
    sequence: Sequence[int]
    origin: str
    rules: Sequence[str]


@dataclass(frozen=True)
class ObserverPart:
    """One observer's word. `health` is None where there was no tool; `not_printed` records were left out by it."""

    observer: str
    outcome: Outcome
    reason: str
    failed: int
    runs: int
    probe: int
    kind: str | None
    line: int | None
    health: str | None
    errors: int | None
    not_printed: int


@dataclass(frozen=True)
class AgreementPart:
    """How far the observers agree; see docs/how-to/sanitize.md."""

    outcome: Outcome
    found_by: Sequence[str]
    masked_by: Sequence[str]
    only_under: str | None
    only_with_blocking_off: bool
    only_with_blocking_on: bool
    vanishes_under_tools: bool
    varies: Sequence[str]
    unresolved: Sequence[str]
    words: Sequence[str]
    observers: Sequence[ObserverPart]
    fault: Fault | None
    fault_probe: int | None
    where: str | None


@dataclass(frozen=True)
class SanitizeDocument:
    """`cudadiag sanitize --json`. `subject` and `agreement` are None where no failing shape was found."""

    document: str
    schema: int
    exit_code: int
    info: RunInfo
    subject: SubjectPart | None
    agreement: AgreementPart | None
    notes: Sequence[str]
    probes: Sequence[ProbeDocument]


@dataclass(frozen=True)
class ExplanationPart:
    """One explanation. `status`: supported, refuted or untested; `strength` of support: shown or suggested."""

    name: str
    title: str
    predicts: str
    status: str
    strength: str | None
    why: str
    probes: Sequence[int]
    next_step: str
    docs: str


@dataclass(frozen=True)
class DiagnoseDocument:
    """`cudadiag diagnose --json`. `cause` is the name of the most likely explanation."""

    document: str
    schema: int
    exit_code: int
    info: RunInfo
    subject: SubjectPart | None
    cause: str | None
    sureness: str | None
    next_step: str | None
    explanations: Sequence[ExplanationPart]
    agreement: AgreementPart | None
    probes: Sequence[ProbeDocument]


def subject_part(subject: Subject) -> SubjectPart:
    rules = [f"{rule.outcome} where {rule.expression}" for rule in subject.rules]
    return SubjectPart(dict(subject.shape), subject.index, list(subject.sequence), subject.origin, rules)


def agreement_part(found: Agreement) -> AgreementPart:
    shown = found.cause or next((told.witness for told in found.told if told.fails), None)
    return AgreementPart(
        outcome=found.outcome,
        found_by=found.found_by,
        masked_by=found.masked_by,
        only_under=found.only_under,
        only_with_blocking_off=found.only_with_blocking_off,
        only_with_blocking_on=found.only_with_blocking_on,
        vanishes_under_tools=found.vanishes_under_tools,
        varies=found.varies,
        unresolved=found.unresolved,
        words=found.words,
        observers=_observers(found),
        fault=shown.fault if shown else None,
        fault_probe=shown.number if shown else None,
        where=place_words(shown) if shown else None,
    )


def _observers(found: Agreement) -> list[ObserverPart]:
    rows = []
    for told in found.told:
        witness = told.witness
        report = witness.reading.sanitizer
        rows.append(
            ObserverPart(
                observer=told.observer,
                outcome=witness.outcome,
                reason=witness.judged.verdict.reason,
                failed=told.failed,
                runs=told.runs,
                probe=witness.number,
                kind=witness.kind.value if witness.kind else None,
                line=witness.caused.line if witness.caused else None,
                health=witness.health.value if witness.health else None,
                errors=report.errors if report else None,
                not_printed=report.not_printed if report else 0,
            )
        )
    return rows


def explanation_parts(found: Diagnosis, next_steps: Mapping[str, str]) -> list[ExplanationPart]:
    return [
        ExplanationPart(
            name=weighed.explanation.name,
            title=weighed.explanation.title,
            predicts=weighed.explanation.predicts,
            status=weighed.finding.status.value,
            strength=weighed.finding.strength.value if weighed.finding.status.value == "supported" else None,
            why=weighed.finding.why,
            probes=list(dict.fromkeys(weighed.finding.probes)),
            next_step=next_steps[weighed.explanation.name],
            docs=weighed.explanation.docs,
        )
        for weighed in found.weighed
    ]
