"""SARIF 2.1.0 (OASIS, errata 01): one result for every signature, at the kernel's source line, as GitHub's code
scanning takes it: relative URIs, rules with descriptions, fingerprints that stay when lines move.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from cudadiag import __version__
from cudadiag.gate.finding import Finding
from cudadiag.gate.outputs.interface import Format
from cudadiag.gate.report import GateReport
from cudadiag.gate.sourceplace import Place, find_place
from cudadiag.gate.status import Status
from cudadiag.gate.words import clean, shape_words

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://cudadiag.readthedocs.io"
LEVELS = {Status.NEW: "error", Status.CHANGED: "error", Status.KNOWN: "warning", Status.FLAKY: "warning"}
STATES = {Status.NEW: "new", Status.CHANGED: "updated", Status.KNOWN: "unchanged", Status.FLAKY: "unchanged"}


def render(report: GateReport) -> bytes:
    results = [result for finding in _told(report) if (result := _result(report, finding))]
    rules = sorted({result["ruleId"] for result in results})
    for result in results:
        result["ruleIndex"] = rules.index(result["ruleId"])
    run = {
        "tool": {
            "driver": {
                "name": "cudadiag",
                "semanticVersion": _semantic(__version__),
                "informationUri": HOME,
                "rules": [_rule(name) for name in rules],
            }
        },
        "automationDetails": {"id": f"cudadiag-gate/{report.shard.replace('/', '-of-')}/"},
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The root of the repository."}}},
        "invocations": [_invocation(report)],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, allow_nan=False).encode("ascii") + b"\n"


def _semantic(version: str) -> str:
    return ".".join([*version.split("+")[0].split("."), "0", "0"][:3])


def _told(report: GateReport) -> Iterator[Finding]:
    """The findings about a crash that was seen, one for each case and signature."""
    seen = set()
    for finding in report.of(*LEVELS):
        key = (finding.case, finding.group)
        if finding.seen is not None and key not in seen:
            seen.add(key)
            yield finding


def fingerprint(finding: Finding) -> str:
    """Stays the same while the case and the signature do, whatever the line or the shape."""
    return hashlib.sha256(f"{finding.case}\0{finding.group}".encode("utf-8", "replace")).hexdigest()


def rule_of(finding: Finding) -> str:
    """The fault's kind, or the outcome of a failure that is no fault."""
    assert finding.seen is not None
    verdict = finding.seen.verdict
    return verdict.fault.kind.value if verdict.fault else verdict.outcome.value


def _result(report: GateReport, finding: Finding) -> dict[str, Any] | None:
    run = next((run for run in report.runs if run.name == finding.case), None)
    place = find_place(finding, run, report.root)
    if place is None:
        return None  # nothing below the root to show it at: the other outputs and the notifications have it
    shapes = [shape_words(run.sweep.shape(index)) for index in finding.indices] if run else []
    result: dict[str, Any] = {
        "ruleId": rule_of(finding),
        "level": LEVELS[finding.status],
        "kind": "fail",
        "baselineState": STATES[finding.status],
        "message": {"text": clean(f"{finding.case}: {finding.reason}")},
        "locations": [_location(place, finding)],
        "partialFingerprints": {
            "cudadiagSignature/v1": fingerprint(finding),
            "primaryLocationLineHash": f"{fingerprint(finding)[:16]}:1",
        },
        "properties": {"signature": finding.group, "fine": finding.fine, "case": finding.case, "shapes": shapes[:100]},
    }
    if finding.entry is not None and finding.status in (Status.KNOWN, Status.FLAKY):
        words = f"{finding.entry.reason} ({finding.entry.owner}, {finding.entry.issue})"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": clean(words)}]
    return result


def _location(place: Place, finding: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": place.uri, "uriBaseId": "SRCROOT"},
            "region": {"startLine": place.line},
        }
    }
    fault = finding.seen.verdict.fault if finding.seen else None
    if fault and fault.caused and fault.caused.kernel:
        location["logicalLocations"] = [{"name": clean(fault.caused.kernel), "kind": "function"}]
    return location


def _rule(name: str) -> dict[str, Any]:
    words = name.replace("-", " ")
    return {
        "id": name,
        "name": "".join(part.capitalize() for part in name.split("-")),
        "shortDescription": {"text": f"A shape ends with: {words}"},
        "fullDescription": {"text": f"cudadiag ran a shape of a case in a process of its own; it ended with {words}."},
        "helpUri": HOME,
        "help": {"text": "Run `cudadiag bisect CASE` for the first failing shape, the rule and the cause."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["cuda", "crash"], "precision": "very-high"},
    }


def _invocation(report: GateReport) -> dict[str, Any]:
    notes = []
    for finding in report.findings:
        if finding.seen is None or finding.status not in LEVELS:
            level = "error" if finding.status is Status.UNDECIDED else "note"
            text = clean(f"{finding.status.value} {finding.case}: {finding.reason}")
            notes.append({"level": level, "message": {"text": text}})
    return {
        "executionSuccessful": report.finished and not report.of(Status.UNDECIDED),
        "exitCode": report.exit_code,
        "startTimeUtc": report.started,
        "toolExecutionNotifications": notes,
    }


FORMAT = Format("sarif", render, "SARIF 2.1.0, for code scanning")
