"""A summary in Markdown: for GitHub's step summary, a merge request's comment, an artifact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cudadiag.gate.finding import Finding
from cudadiag.gate.outputs.interface import Format
from cudadiag.gate.report import GateReport, rows
from cudadiag.gate.sourceplace import find_place
from cudadiag.gate.status import Status
from cudadiag.gate.words import clean, count_words
from cudadiag.report.style import seconds_words

MOST_BYTES = 900_000  # GitHub takes 1 MiB


def headline(report: GateReport) -> str:
    """The answer in one line."""
    red = report.of(Status.NEW, Status.CHANGED)
    if red:
        words = count_words(len(red), "new crash", "new crashes")
    elif report.exit_code == 0:
        words = "nothing new"
    elif report.exit_code == 1:
        words = "nothing new, but the baseline is not current (--strict)"
    else:
        words = "could not decide"
    return words if report.finished else f"{words} (the gate did not finish)"


def render(report: GateReport) -> bytes:
    text = "\n".join(_lines(report)) + "\n"
    return text.encode("utf-8", "replace")[:MOST_BYTES]


def _lines(report: GateReport) -> Iterator[str]:
    yield f"## cudadiag gate: {headline(report)}"
    yield ""
    if report.findings:
        yield "| | case | what | where |"
        yield "|---|---|---|---|"
        yield from (_finding(report, finding) for finding in report.findings)
        yield ""
    yield "| case | shapes run | " + " | ".join(("passed", "failed", "known", "undecided", "left out")) + " |"
    yield "|---|---|---|---|---|---|---|"
    for run in report.runs:
        states = Counter(row.state.value for row in rows(report, run) if row.shape is not None)
        counts = (states[name] for name in ("passed", "failed", "known", "undecided", "left-out"))
        ran = len({seen.index for seen in run.seen})
        yield f"| {_cell(run.name)} | {ran} of {len(run.sweep)} | " + " | ".join(map(str, counts)) + " |"
    yield ""
    shard = "" if report.shard == "1/1" else f", shard {report.shard}"
    yield f"{count_words(report.probes, 'probe')} in {seconds_words(report.wall_s)}{shard}; {report.power}."


def _finding(report: GateReport, finding: Finding) -> str:
    run = next((run for run in report.runs if run.name == finding.case), None)
    place = find_place(finding, run, report.root) if finding.seen else None
    where = f"`{place.path}:{place.line}`" if place else ""
    status = f"**{finding.status.value}**" if finding.status.is_red else finding.status.value
    return f"| {status} | {_cell(finding.case)} | {_cell(finding.reason)} | {_cell(where)} |"


def _cell(text: str) -> str:
    """Text of a program must not become markup or break the table."""
    plain = " ".join(clean(text).split())
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("@", "&#64;")


FORMAT = Format("markdown", render, "Markdown summary")
