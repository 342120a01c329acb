"""A story for people: the answer in five lines, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cudadiag.report.fault import caused_words, fault_title, is_host, noticed_words
from cudadiag.report.style import count_words, faint, printable, shape_words, strong
from cudadiag.triage.document import ClusterRow, TriageDocument
from cudadiag.triage.fold import Folded
from cudadiag.triage.verdicts import TriageVerdict

WIDTH = 160
HEADS = {
    TriageVerdict.FAULT: "fault",
    TriageVerdict.HANG: "hang",
    TriageVerdict.WRONG: "wrong result",
    TriageVerdict.RESOURCE: "out of a resource",
    TriageVerdict.ENVIRONMENT: "environment",
    TriageVerdict.HARDWARE: "hardware",
    TriageVerdict.HOST: "the host program failed",
    TriageVerdict.NOT_A_CRASH: "not a crash",
    TriageVerdict.CAUSE_NOT_IN_LOG: "the cause is not in this log",
    TriageVerdict.NOTHING_WRONG: "nothing wrong found",
}


def story_lines(document: TriageDocument) -> list[str]:
    """The whole report of one story."""
    parts = [_answer(document), _folded(document), _facts(document), _misleading(document), _next(document)]
    return [line for part in parts for line in part]


def _answer(document: TriageDocument) -> Iterator[str]:
    fault = document.fault
    what = fault_title(fault) if fault else printable(document.summary)
    yield strong(f"{HEADS[document.verdict]}: {what}")
    if document.line is not None:
        yield f"  line     {document.log}:{document.log_line}: {_short(document.line)}"
    if fault is not None:
        if fault.noticed is not None:
            yield f"  noticed  {_short(noticed_words(fault.noticed))}"
        if not is_host(fault) and document.verdict not in (
            TriageVerdict.HARDWARE,
            TriageVerdict.ENVIRONMENT,
            TriageVerdict.RESOURCE,
        ):
            yield f"  caused   {caused_words(fault.caused) if fault.caused else 'not in this log'}"
    yield f"  sure     {document.confidence}: {document.confidence_reason}"
    if document.signature:
        yield f"  key      {document.signature}"


def _folded(document: TriageDocument) -> Iterator[str]:
    heads = {Folded.ECHO: "the same fault again", Folded.CASCADE: "what follows from it", Folded.ALSO: "besides"}
    if document.verdict is TriageVerdict.CAUSE_NOT_IN_LOG:
        heads[Folded.CASCADE] = "only consequences"
    for relation, head in heads.items():
        rows = [row for row in document.folded if row.relation is relation]
        if rows:
            yield ""
            yield strong(head)
            yield from (
                f"  {count_words(row.count, 'line'):>10}  {row.what}  {faint(f'from {row.log}:{row.first_line}')}"
                for row in rows
            )


def _facts(document: TriageDocument) -> Iterator[str]:
    lines: list[str] = []
    if document.first_sign:
        lines.append(f"  first sign   line {document.first_sign.log_line}: {_short(document.first_sign.text)}")
    if document.bench.settings:
        lines.append("  settings     " + " ".join(f"{k}={v}" for k, v in document.bench.settings.items()))
    if document.bench.affected:
        lines.append("  no result    " + ", ".join(document.bench.affected))
    if document.bench.worked:
        lines.append("  worked       " + ", ".join(document.bench.worked))
    if document.table and document.verdict is not TriageVerdict.NOTHING_WRONG:
        cells = dict(document.table.last_row)
        lines.append(f"  last row     line {document.table.log_line}: {shape_words(cells)}")
        if document.table.next_shape:
            lines.append(f"  next shape   {shape_words(document.table.next_shape)}  ({document.table.note})")
        elif document.table.note:
            lines.append(f"  next shape   not known: {document.table.note}")
    if len(document.processes) > 1:
        lines.append(
            f"  processes    {', '.join(document.processes[:8])}{', ...' if len(document.processes) > 8 else ''}"
        )
    if lines:
        yield ""
        yield strong("around it")
        yield from lines


def _misleading(document: TriageDocument) -> Iterator[str]:
    if document.misleading:
        yield ""
        yield strong("do not conclude")
        yield from (f"  - {note}" for note in document.misleading)


def _next(document: TriageDocument) -> Iterator[str]:
    if not document.next or document.verdict is TriageVerdict.NOTHING_WRONG:
        return
    yield ""
    yield strong("next")
    for number, step in enumerate(document.next, start=1):
        yield f"  {number}. {step.do}"
        yield f"     {faint('why')} {step.why}"
        yield f"     $ {step.command}"


def cluster_lines(clusters: Sequence[ClusterRow]) -> Iterator[str]:
    """The groups of many logs, the most severe first."""
    for row in clusters:
        when = f", {row.oldest} to {row.newest}" if row.oldest and row.newest else ""
        yield strong(f"{count_words(row.count, 'log')}  {row.severity}: {printable(row.summary)}")
        yield f"  group     {row.group}{when}"
        yield f"  severity  {row.severity_reason}"
        yield f"  face      {row.face}"
        yield from (f"  note      {note}" for note in row.notes)
        yield f"  logs      {_names(row.logs)}"
        yield ""


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")


def _short(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."
