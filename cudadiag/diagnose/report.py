"""The screens of `sanitize` and `diagnose`. The answer first; every line names the probes it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from cudadiag.diagnose.crosscheck import WITHOUT_TOOL, Agreement, Told
from cudadiag.diagnose.engine import Diagnosis, Weighed, probe_words
from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.interface import Status
from cudadiag.diagnose.plans import About
from cudadiag.diagnose.subject import Subject
from cudadiag.diagnose.witness import HOST_KINDS, Witness
from cudadiag.evidence.allocations import buffers_of, words
from cudadiag.evidence.expectations import TOOLS
from cudadiag.evidence.rules.tools import HEALTH_WORDS
from cudadiag.evidence.sanitizer import SanitizerReport
from cudadiag.model import Outcome
from cudadiag.report.fault import fault_lines, fault_title, short_path
from cudadiag.report.probe import how_words, last_lines, straggler_notes
from cudadiag.report.style import count_words, faint, outcome_word, printable, shape_words, strong
from cudadiag.session.judged import Judged
from cudadiag.session.task import Plan

FOLDED_FROM = 3
"""So many explanations that stand alike for one reason take one row."""
STDERR_LINES = 8
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


def nothing_found_lines(about: About, history: Sequence[Judged]) -> list[str]:
    """What is said where no shape is in question: none fails, or the search for the first one did not end."""
    under = f"under {about.locating.observer}"
    failing = next((judged for judged in history if judged.outcome.is_failure), None)
    if failing is not None:
        what = fault_title(failing.fault) if failing.fault else failing.verdict.reason
        return [
            f"the search {under} for the first failing shape did not end",
            f"  failing so far: {shape_words(failing.line.shape)}: {printable(what)}  (probe {failing.line.number})",
        ]
    reasons = dict.fromkeys(j.verdict.reason for j in history if j.outcome is Outcome.UNRESOLVED)
    if reasons:
        count = sum(judged.outcome is Outcome.UNRESOLVED for judged in history)
        lines = [f"no failing shape was found {under}; {count_words(count, 'probe')} could not be judged:"]
        lines += [f"  {printable(reason)}" for reason in list(reasons)[:3]]
        without = "  `cudadiag bisect` without a tool also finds hangs; then this command takes the shape from there"
        return [*lines, without] if about.locating.observer in TOOLS else lines
    if not about.searched(history):
        return [f"the search {under} did not end; nothing failed so far"]
    run = about.shapes_run(history)
    if run < len(about.sweep):
        return [
            f"no failing shape was found {under} ({run} of {len(about.sweep)} shapes run)",
            "  `cudadiag bisect --prove` runs every shape; --shape gives the one that fails",
        ]
    return [f"no failing shape was found {under}"]


def unfinished_lines(plan: Plan, history: Sequence[Judged]) -> list[str]:
    """Said where a run was stopped before its plan was done: what it would still have asked for."""
    left = plan.next(history)
    count = len(left.tasks)
    return ["", f"not finished: {count_words(count, 'more probe')} wanted ({left.doing})"] if count else []


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
        return [f"{strong('fault')}         none: {outcome_word(found.outcome)}", *_why_not(found)]
    if shown.fault is None:
        return [f"{strong('fault')}         {outcome_word(shown.outcome)}: {printable(shown.judged.verdict.reason)}"]
    rows = [f"{strong('fault')}         {faint(f'(probe {shown.number}, {how_words(shown.judged)})')}"]
    rows += [f"  {line}" for line in fault_lines(shown.fault, sources)]
    place = place_words(shown)
    if place:
        rows.insert(2, f"    {strong('where')}    {place}")
    if shown.tool == "memcheck" and shown.error_number == 719:
        rows.append(f"    {strong('note')}     a bad access that memcheck records reaches the program as 719")
    rows += [f"    {row}" for row in host_lines(shown)]
    instruction = next((told.witness.instruction for told in found.told if told.witness.instruction), None)
    if instruction:
        rows.append(f"    {strong('at the pc')} {printable(instruction)}")
    return rows


def host_lines(witness: Witness) -> list[str]:
    """What a host program said as it failed, and what it left running: nothing of CUDA tells why it ended."""
    facts = witness.judged.line.facts
    rows = [f"{strong('note')}     {note}" for note in straggler_notes(facts)]
    if witness.kind not in HOST_KINDS or facts.stderr is None or not facts.stderr.total_bytes:
        return rows
    said = last_lines(facts.stderr)[-STDERR_LINES:]
    return [*rows, f"{strong('stderr')}   its last lines:", *[f"  {row}" for row in said]]


def _why_not(found: Agreement) -> list[str]:
    """Where nobody could say: the reason of each, once."""
    reasons = dict.fromkeys(told.witness.judged.verdict.reason for told in found.told if not told.runs)
    return [f"{'':14}{printable(reason)}" for reason in reasons]


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
    opinion = witness.reading.core.opinion if witness.reading.core else None
    parts = [part for part in (printable(what), at and f"at {at}", health_words(witness), opinion, runs) if part]
    probe = faint(f"(probe {witness.number})")
    return f"  {told.observer:<10} {outcome_word(witness.outcome, 10)} {'; '.join(parts)}  {probe}"


def health_words(witness: Witness) -> str:
    """Whether a tool did its work, and what it left out; "" where there was no tool."""
    if witness.health is None or not witness.outcome.is_evidence:
        return ""  # an unresolved probe's reason says it already
    report = witness.reading.sanitizer
    words = "healthy" if witness.checked else f"not to the end: {HEALTH_WORDS[witness.health]}"
    words += _warning_words(report) if report else ""
    if report and report.not_printed:
        words += f", {report.not_printed} of {report.errors} records not printed"
    return words


def _warning_words(report: SanitizerReport) -> str:
    """What a tool warns of, which is no finding: `, 1 warning: race at zoo.cu:92`."""
    warnings = [record for record in report.records if record.level in ("Warning", "warning")]
    if not warnings:
        return ""
    first = warnings[0]
    place = f" at {short_path(first.file)}:{first.line}" if first.file and first.line else ""
    return f", {count_words(len(warnings), 'warning')}: {first.kind.value}{place}"


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
        lines += _status_rows([weighed for weighed in found.weighed if weighed.finding.status is status])
    lines += ["", strong("Observers"), *observer_rows(agreement), *[f"  {word}" for word in agreement.words]]
    return lines


def _status_rows(weighed: Sequence[Weighed]) -> list[str]:
    """One row for each, but one for all that stand alike for the same reason."""
    alike: dict[tuple[str, tuple[int, ...]], list[Weighed]] = {}
    for each in weighed:
        alike.setdefault((each.finding.why, each.finding.probes), []).append(each)
    folded = {id(each): group for group in alike.values() if len(group) >= FOLDED_FROM for each in group}
    return [_row_of(each, folded.get(id(each), [each])) for each in weighed if folded.get(id(each), [each])[0] is each]


def _row_of(first: Weighed, group: Sequence[Weighed]) -> str:
    finding = first.finding
    status = click.style(f"{finding.status.value:<10}", fg=STATUS_COLOURS[finding.status])
    strength = " (suggested)" if finding.status is Status.SUPPORTED and not first.shown else ""
    probes = faint(f"  ({probe_words(finding.probes, 8)})") if finding.probes else ""
    name = first.explanation.name if len(group) == 1 else f"{len(group)} explanations"
    others = "" if len(group) == 1 else f": {', '.join(each.explanation.name for each in group)}"
    return f"  {status} {name:<18} {printable(finding.why)}{others}{strength}{probes}"
