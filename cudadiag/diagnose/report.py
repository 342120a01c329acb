"""The screens of `sanitize` and `diagnose`. The answer first; every line names the probes it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from cudadiag.diagnose.crosscheck import WITHOUT_TOOL, Agreement, Told
from cudadiag.diagnose.engine import Diagnosis, Weighed
from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.interface import Status
from cudadiag.diagnose.subject import Subject
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.allocations import buffers_of, words
from cudadiag.evidence.rules.tools import HEALTH_WORDS
from cudadiag.report.fault import fault_lines, fault_title, short_path
from cudadiag.report.probe import how_words
from cudadiag.report.style import count_words, faint, outcome_word, printable, shape_words, strong

STATUS_COLOURS = {Status.SUPPORTED: "red", Status.REFUTED: "green", Status.UNTESTED: "yellow"}


def subject_line(subject: Subject) -> str:
    """`streams=1 q_len=9 prefix=4096  (the first failing shape of the run ...)`."""
    before = len(subject.sequence) - 1
    after = f" after {count_words(before, 'other')} in one process" if before > 0 else ""
    return f"{strong('shape')}         {strong(shape_words(subject.shape))}{after}{faint(f'  ({subject.origin})')}"


def sanitize_lines(subject: Subject, found: Agreement, sources: Iterable[str], notes: Sequence[str]) -> list[str]:
    """Fault, cause with its source line, which observers agree, the health of each."""
    lines = [subject_line(subject), *_fault_block(found, sources), "", strong("Observers"), *observer_rows(found)]
    lines += [
        "",
        *[f"{strong('agreement')}     {word}" if i == 0 else f"{'':14}{word}" for i, word in enumerate(found.words)],
    ]
    lines += [f"{strong('note')}          {note}" for note in notes]
    return lines


def closing_lines(found: Agreement, sources: Iterable[str]) -> list[str]:
    """What `bisect` adds where other observers were asked about the shape it found."""
    rows = ["", strong("The shape found, under other observers"), *observer_rows(found)]
    rows += [f"  {word}" for word in found.words]
    cause = found.cause
    if cause is None or cause.fault is None or cause.observer in WITHOUT_TOOL:
        return rows
    place = place_words(cause)
    head = [f"  {strong('where')}    {place}"] if place else []
    return [
        *rows,
        "",
        f"{strong('The cause')} {faint(f'(probe {cause.number}, {how_words(cause.judged)})')}",
        *head,
        *[f"  {line}" for line in fault_lines(cause.fault, sources)],
    ]


def _fault_block(found: Agreement, sources: Iterable[str]) -> list[str]:
    shown = found.cause or next((told.witness for told in found.told if told.fails), None)
    if shown is None:
        return [f"{strong('fault')}         none: {outcome_word(found.outcome)}"]
    if shown.fault is None:
        return [f"{strong('fault')}         {outcome_word(shown.outcome)}: {printable(shown.judged.verdict.reason)}"]
    rows = [f"{strong('fault')}         {faint(f'(probe {shown.number}, {how_words(shown.judged)})')}"]
    rows += [f"  {line}" for line in fault_lines(shown.fault, sources)]
    place = place_words(shown)
    if place:
        rows.insert(2, f"    {strong('where')}    {place}")
    if shown.tool == "memcheck" and shown.error_number == 719:
        rows.append(f"    {strong('note')}     under memcheck the program sees 719, whatever the fault")
    instruction = next((told.witness.instruction for told in found.told if told.witness.instruction), None)
    if instruction:
        rows.append(f"    {strong('at the pc')} {printable(instruction)}")
    return rows


def place_words(witness: Witness) -> str | None:
    """The bad address by the case's own names: "right at the end of `scratch` (row 4095)"."""
    caused = witness.caused
    if caused is None or caused.allocation is None:
        return None
    return words(caused.allocation, buffers=buffers_of(witness.result), address=caused.address)


def observer_rows(found: Agreement) -> list[str]:
    """One row for each observer: outcome, what, where, its health, the probe."""
    return [_row(told) for told in found.told]


def _row(told: Told) -> str:
    witness = told.witness
    what = fault_title(witness.fault) if witness.fault else ("" if told.passes else witness.judged.verdict.reason)
    caused = witness.caused
    at = f"{short_path(caused.file)}:{caused.line}" if caused and caused.file and caused.line else ""
    runs = f"{told.failed} of {told.runs} failed" if told.runs > 1 else ""
    parts = [part for part in (printable(what), at and f"at {at}", health_words(witness), runs) if part]
    probe = faint(f"(probe {witness.number})")
    return f"  {told.observer:<10} {outcome_word(witness.outcome, 10)} {'; '.join(parts)}  {probe}"


def health_words(witness: Witness) -> str:
    """Whether a tool did its work, and what it left out; "" where there was no tool."""
    if witness.health is None or not witness.outcome.is_evidence:
        return ""  # an unresolved probe's reason says it already
    report = witness.reading.sanitizer
    words = "healthy" if witness.checked else f"not to the end: {HEALTH_WORDS[witness.health]}"
    if report and report.not_printed:
        words += f", {report.not_printed} of {report.errors} records not printed"
    return words


def diagnosis_lines(evidence: Evidence, found: Diagnosis, agreement: Agreement, sources: Iterable[str]) -> list[str]:
    """Most likely cause, how sure, next step; the fault; every explanation."""
    lines = [subject_line(evidence.subject)]
    lines += [
        f"{strong('rule')}          {rule.outcome} where {rule.expression}" for rule in evidence.subject.rules[:3]
    ]
    if found.cause is not None:
        lines.append(f"{strong('most likely')}   {strong(found.cause.explanation.title)}")
        lines.append(f"{'':14}{printable(found.cause.finding.why)}")
    else:
        lines.append(f"{strong('most likely')}   nothing stands out")
    lines.append(f"{strong('how sure')}      {found.sureness}")
    lines.append(f"{strong('next step')}     {found.next_step}")
    lines += ["", *_fault_block(agreement, sources), "", strong("Explanations")]
    for status in Status:
        lines += [row for weighed in found.weighed if weighed.finding.status is status for row in _rows(weighed)]
    lines += ["", strong("Observers"), *observer_rows(agreement), *[f"  {word}" for word in agreement.words]]
    return lines


def _rows(weighed: Weighed) -> list[str]:
    explanation, finding = weighed.explanation, weighed.finding
    status = click.style(f"{finding.status.value:<10}", fg=STATUS_COLOURS[finding.status])
    strength = " (suggested)" if finding.status is Status.SUPPORTED and not weighed.shown else ""
    probes = faint(f"  ({_probes(finding.probes)})") if finding.probes else ""
    return [f"  {status} {explanation.name:<18} {printable(finding.why)}{strength}{probes}"]


def _probes(numbers: Sequence[int]) -> str:
    unique = list(dict.fromkeys(numbers))
    shown = ", ".join(map(str, unique[:8])) + (", ..." if len(unique) > 8 else "")
    return f"probe{'s' if len(unique) != 1 else ''} {shown}"
