"""cudadiag's own runs as logs: every failing probe of a ledger, judged anew, is a story."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cudadiag.model import Outcome, Verdict
from cudadiag.session.judged import Judged
from cudadiag.session.judging import judging_from_json
from cudadiag.store.ledger import Ledger, read_ledger
from cudadiag.triage.story import Story
from cudadiag.triage.verdicts import GROUP_VERDICTS, KIND_VERDICTS, TriageVerdict, code_group

OUTCOME_VERDICTS = {
    Outcome.HANG: TriageVerdict.HANG,
    Outcome.WRONG: TriageVerdict.WRONG,
    Outcome.SKIPPED: TriageVerdict.WRONG,
    Outcome.PASS: TriageVerdict.NOTHING_WRONG,
    Outcome.UNRESOLVED: TriageVerdict.CAUSE_NOT_IN_LOG,
}


@dataclass(frozen=True)
class ProbeStory:
    """One probe with its story; `shape` in words."""

    number: int
    shape: str
    started: str
    story: Story
    folder: str


def probe_stories(path: Path) -> tuple[Ledger, list[ProbeStory]]:
    """The failing probes of a ledger, in order. Raises UsageError for a file that is no ledger."""
    ledger = read_ledger(path)
    judging = judging_from_json(ledger.run.settings.get("judging", {}))
    judged = [judging.judged(line) for line in ledger.probes]
    return ledger, [_story(one, ledger) for one in judged if one.outcome.is_failure]


def _story(judged: Judged, ledger: Ledger) -> ProbeStory:
    shape = " ".join(f"{name}={value}" for name, value in judged.line.shape.items())
    name = f"{ledger.run.run_id} probe {judged.line.number} ({shape})"
    verdict = judged.verdict
    story = Story(
        verdict=triage_verdict(verdict),
        fault=verdict.fault,
        primary=None,
        cause=None,
        summary=f"{ledger.run.case_name} {shape}: {verdict.reason}",
        confidence="high",
        confidence_reason="judged from the facts of a probe",
        names=(name,),
    )
    return ProbeStory(judged.line.number, shape, judged.line.started, story, judged.line.facts.folder)


def triage_verdict(verdict: Verdict) -> TriageVerdict:
    """DESIGN's outcome and fault kind as a verdict of triage: the table of `verdicts`, read the other way."""
    if verdict.outcome is not Outcome.FAULT or verdict.fault is None:
        return OUTCOME_VERDICTS.get(verdict.outcome, TriageVerdict.FAULT)
    if verdict.fault.kind in KIND_VERDICTS:  # before the number: a host's exit status is no CUDA code
        return KIND_VERDICTS[verdict.fault.kind]
    return GROUP_VERDICTS.get(code_group(verdict.fault.number) or "", TriageVerdict.FAULT)
