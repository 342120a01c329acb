"""JUnit XML: a suite for every case, a test for every planned shape. New crashes are failures, known ones are skipped
with their reason, undecided ones are errors; so are shapes not run yet, so that a killed gate is never green.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.outputs.interface import Format
from cudadiag.gate.report import GateReport, Row, RowState, rows
from cudadiag.gate.status import Status
from cudadiag.gate.words import clean

LONGEST = 4000  # characters of a message


def render(report: GateReport) -> bytes:
    root = Xml.Element("testsuites", name="cudadiag gate")
    suites = [_suite(run, list(rows(report, run))) for run in report.runs]
    about_baseline = [_row_of(finding) for finding in report.of(Status.VANISHED, Status.EXPIRED, Status.FIXED)]
    if about_baseline:
        state = RowState.FAILED if report.strict else RowState.KNOWN
        suites.append(_suite(CaseRun("baseline"), [Row(c, None, state, m) for c, m in about_baseline]))
    if not report.finished:
        suites.append(_suite(CaseRun("gate"), [Row("gate", None, RowState.UNDECIDED, "the gate did not finish")]))
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}")
    root.extend(suites)
    Xml.indent(root)
    text: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _row_of(finding: object) -> tuple[str, str]:
    return f"{finding.case} {finding.status.value}", finding.reason  # type: ignore[attr-defined]


def _suite(run: CaseRun, found: Sequence[Row]) -> Xml.Element:
    suite = Xml.Element("testsuite", name=clean(run.name))
    counts = {
        "tests": len(found),
        "failures": sum(row.state is RowState.FAILED for row in found),
        "errors": sum(row.state is RowState.UNDECIDED for row in found),
        "skipped": sum(row.state in (RowState.KNOWN, RowState.LEFT_OUT) for row in found),
    }
    for key, count in counts.items():
        suite.set(key, str(count))
    suite.set("time", f"{sum(row.wall_s for row in found):.3f}")
    suite.extend(_test(run, row) for row in found)
    return suite


def _test(run: CaseRun, row: Row) -> Xml.Element:
    name = row.name if row.shape is not None or row.case == run.name else row.case
    test = Xml.Element("testcase", classname=clean(run.name), name=clean(name), time=f"{row.wall_s:.3f}")
    if run.path:
        test.set("file", clean(run.path))
    message = clean(row.message)[:LONGEST]
    match row.state:
        case RowState.FAILED:
            kind = row.finding.group if row.finding and row.finding.group else "baseline"
            _child(test, "failure", message, clean(kind)).text = _details(row)
        case RowState.UNDECIDED:
            _child(test, "error", message, "undecided").text = message
        case RowState.KNOWN | RowState.LEFT_OUT:
            _child(test, "skipped", f"{row.state.value}: {message}", row.state.value)
    return test


def _child(test: Xml.Element, tag: str, message: str, kind: str) -> Xml.Element:
    return Xml.SubElement(test, tag, message=message, type=kind)


def _details(row: Row) -> str:
    finding = row.finding
    if finding is None:
        return clean(row.message)
    lines = [finding.reason, f"signature: {finding.group}", f"fine:      {finding.fine}"]
    if finding.seen and finding.seen.folder:
        lines.append(f"probe:     {finding.seen.folder}")
    return clean("\n".join(lines))[:LONGEST]


FORMAT = Format("junit", render, "JUnit XML: a test for every shape")
