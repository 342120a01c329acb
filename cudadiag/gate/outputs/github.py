"""GitHub: annotations as workflow commands, which the runner reads in the log; the step summary is `markdown`'s."""

from __future__ import annotations

from collections.abc import Iterator

from cudadiag.gate.finding import Finding
from cudadiag.gate.outputs.interface import Format
from cudadiag.gate.report import GateReport
from cudadiag.gate.sourceplace import find_place
from cudadiag.gate.status import Status
from cudadiag.gate.words import clean

COMMANDS = {
    Status.NEW: "error",
    Status.CHANGED: "error",
    Status.UNDECIDED: "error",
    Status.EXPIRED: "warning",
    Status.VANISHED: "warning",
    Status.FIXED: "notice",
    Status.FLAKY: "notice",
    Status.KNOWN: "notice",
    Status.LEFT_OUT: "notice",
}


def render(report: GateReport) -> bytes:
    return "".join(f"{line}\n" for line in lines(report)).encode("utf-8", "replace")


def lines(report: GateReport) -> Iterator[str]:
    """One workflow command for each finding. GitHub shows ten of each kind in a step, the gravest come first."""
    for finding in report.findings:
        yield _command(report, finding)


def _command(report: GateReport, finding: Finding) -> str:
    run = next((run for run in report.runs if run.name == finding.case), None)
    place = find_place(finding, run, report.root)
    properties = {"title": f"{finding.status.value}: {finding.case}"}
    if place is not None:
        properties = {"file": place.path, "line": str(place.line), **properties}
    words = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{COMMANDS[finding.status]} {words}::{_data(clean(finding.reason))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text)).replace(":", "%3A").replace(",", "%2C")


FORMAT = Format("github", render, "GitHub annotations (workflow commands); without a file on stdout")
