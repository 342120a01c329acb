"""GitLab's code quality report: a list of issues, shown in the merge request."""

from __future__ import annotations

import json
from typing import Any

from cudadiag.gate.finding import Finding
from cudadiag.gate.outputs.interface import Format
from cudadiag.gate.outputs.sarif import fingerprint, rule_of
from cudadiag.gate.report import GateReport
from cudadiag.gate.sourceplace import Place, find_place, relative
from cudadiag.gate.status import Status
from cudadiag.gate.words import clean

SEVERITY = {
    Status.NEW: "blocker",
    Status.CHANGED: "critical",
    Status.KNOWN: "minor",
    Status.FLAKY: "minor",
    Status.EXPIRED: "major",
    Status.VANISHED: "minor",
    Status.FIXED: "info",
}


def render(report: GateReport) -> bytes:
    issues = [issue for finding in report.findings if (issue := _issue(report, finding))]
    unique = list({issue["fingerprint"]: issue for issue in reversed(issues)}.values())[::-1]
    return json.dumps(unique, indent=2).encode("ascii") + b"\n"


def _issue(report: GateReport, finding: Finding) -> dict[str, Any] | None:
    """None for what is about the run and not about the code: it is in the job's log and its exit status."""
    if finding.status not in SEVERITY:
        return None
    run = next((run for run in report.runs if run.name == finding.case), None)
    place = find_place(finding, run, report.root) if finding.seen else _in_baseline(report, finding)
    if place is None:
        return None
    return {
        "description": clean(f"{finding.status.value}: {finding.case}: {finding.reason}"),
        "check_name": f"cudadiag/{rule_of(finding) if finding.seen else finding.status.value}",
        "fingerprint": _fingerprint(finding),
        "severity": SEVERITY[finding.status],
        "location": {"path": place.path, "lines": {"begin": place.line}},
    }


def _in_baseline(report: GateReport, finding: Finding) -> Place | None:
    if report.baseline is None or finding.entry is None:
        return None
    path = relative(report.baseline, report.root)
    return Place(path, finding.entry.line) if path else None


def _fingerprint(finding: Finding) -> str:
    if finding.seen is not None or finding.entry is None:
        return fingerprint(finding)
    return f"{finding.status.value}-{finding.entry.key.encode('utf-8', 'replace').hex()[:80]}"


FORMAT = Format("gitlab", render, "GitLab code quality report")
