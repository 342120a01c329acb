"""The ready workflows: their command lines are right, and the action's own step is run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from gate_kit import program

from cudadiag.cli.main import cli

ROOT = Path(__file__).parents[2]
CI = ROOT / "docs/how-to/ci"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
CODE = {0: "exit 0", 1: "kill -SEGV $$"}


def command_lines() -> list[tuple[str, list[str]]]:
    found = []
    for path in sorted(CI.iterdir()):
        for line in path.read_text().splitlines():
            match = re.search(r"(?:^|[\s'\"/])cudadiag (gate\b[^'\"]*)", line)
            if match and not line.lstrip().startswith(("#", "//")):
                found.append((path.name, shlex.split(re.sub(r"\$\{\{.*?\}\}", "1", match[1]))))
    return found


@pytest.mark.parametrize(("name", "words"), command_lines(), ids=lambda value: str(value)[:40])
def test_every_command_line_of_the_examples_is_one(name: str, words: list[str], tmp_path: Path) -> None:
    with click.Context(cli) as context:
        command = cli.get_command(context, words[0])
        assert command is not None
        rest = [str(tmp_path) if "*" in word else word for word in words[1:]]
        command.make_context(words[0], rest, parent=context)


def test_there_are_command_lines_in_each_example() -> None:
    assert {name for name, _ in command_lines()} == {"github-workflow.yml", "gitlab-ci.yml", "Jenkinsfile"}


@pytest.mark.parametrize("path", sorted(CI.glob("*.yml")) + sorted(CI.glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_workflow_gives_the_action_only_inputs_that_it_has() -> None:
    jobs = yaml.safe_load((CI / "github-workflow.yml").read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"] if "/cudadiag@" in step.get("uses", "")]
    assert len(steps) == 2
    for step in steps:
        assert set(step["with"]) <= set(ACTION["inputs"])


def test_no_input_is_pasted_into_a_script_and_each_is_used() -> None:
    used = set()
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        used |= set(re.findall(r"inputs\.([a-z-]+)", str(step["env"])))
        for name in step["env"]:
            assert f"${name}" in step["run"] or f"${{{name}" in step["run"], name
    assert used == set(ACTION["inputs"])


def run_step(folder: Path, **inputs: str) -> tuple[int, dict[str, str], str]:
    """The action's gate step as the runner would run it: exit status, outputs, log."""
    (step,) = [step for step in ACTION["runs"]["steps"] if step["id"] == "gate"]
    values: dict[str, Any] = {name: value["default"] for name, value in ACTION["inputs"].items()}
    values |= inputs
    expand = {
        name: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda m: values[m[1]], text)
        for name, text in step["env"].items()
    }
    output, summary = folder / "output", folder / "summary"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **expand, "PATH": path, "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines()) if output.exists() else {}
    return done.returncode, outputs, done.stdout + done.stderr


@pytest.mark.parametrize("code", [0, 1])
def test_the_action_ends_as_the_gate_does_and_writes_reports_and_summary(tmp_path: Path, code: int) -> None:
    for name in ("one", "two"):
        program(tmp_path, name, CODE[code])
    status, outputs, log = run_step(
        tmp_path, device="none", cases="one cases/two.yaml", budget="5m", arguments="--jobs 2"
    )
    assert (status, outputs["exit-code"]) == (code, str(code)), log
    assert ("::error " in log) is bool(code)
    assert (tmp_path / "summary").read_text().startswith("## cudadiag gate:")
    assert (tmp_path / "cudadiag-junit.xml").exists()
    assert (tmp_path / "cudadiag.sarif").exists()


def test_an_input_is_never_a_command(tmp_path: Path) -> None:
    program(tmp_path, "one", CODE[0])
    status, outputs, _ = run_step(tmp_path, device="none", cases="$(touch hacked) ; touch hacked", strict="true")
    assert (status, outputs["exit-code"]) == (2, "2")
    assert not (tmp_path / "hacked").exists()


def test_the_hook_checks_the_files_it_is_given(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program(tmp_path, "one", CODE[0])
    (tmp_path / "bad.yaml").write_text("case: bad\n")
    (tmp_path / "other.yaml").write_text("a: b\n")

    def call(*names: str) -> int:
        words = [sys.executable, "-m", *shlex.split(hook["entry"]), *names]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode

    assert call("cases/one.yaml", "other.yaml") == 0
    assert call("cases/one.yaml", "bad.yaml") == 2
