"""What is wrong with a case or a program is told before the first probe, or costs its own shape only."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from conftest import Cli

from cudadiag.report.schemas import json_schema

DIVIDES = """case: div
target:
  command: ["sh", "-c", "exit 0", "{8 // (n - 2)}"]
sweep:
  n: [1, 2, 3]
"""
PYTHON = """case: steps
target:
  python: {function: steps.py:call, args: {m: "8 // (n - 2)"}}
isolation: sequence
sweep:
  n: [1, 2, 3, 4]
"""


def outcomes(out: str) -> dict[str, str]:
    rows = [line.split() for line in out.splitlines()[1:]]
    return {row[0]: row[2] for row in rows}


def runs(folder: Path) -> list[Path]:
    return list((folder / ".cudadiag" / "runs").glob("*")) if (folder / ".cudadiag").exists() else []


def test_an_expression_that_fails_at_one_shape_costs_that_shape(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "div.yaml").write_text(DIVIDES)
    done = cli("sweep", "./div.yaml", expect=3)
    assert outcomes(done.out) == {"1": "pass", "2": "unresolved", "3": "pass"}
    assert "div.yaml:3:39: division by zero at n=2" in done.out
    again = cli("bisect", "./div.yaml", expect=3)
    assert "run                  2 of 3 shapes" in again.out


def test_an_expression_that_fails_at_one_shape_costs_that_shape_of_a_sequence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "steps.yaml").write_text(PYTHON)
    (tmp_path / "steps.py").write_text("def call(m): return m\n")
    done = cli("sweep", "./steps.yaml", expect=3)
    assert outcomes(done.out) == {"1": "pass", "2": "unresolved", "3": "pass", "4": "pass"}, done.out + done.err
    assert "division by zero at n=2" in done.out


@pytest.mark.parametrize("words", [("sweep", "./div.yaml", "-P", "n=2"), ("run", "./div.yaml", "-P", "n=2")])
def test_an_expression_that_fails_at_every_shape_ends_before_the_first_probe(
    cli: Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "div.yaml").write_text(DIVIDES)
    done = cli(*words, expect=2)
    assert done.err.startswith("div.yaml:3:39: division by zero at n=2")
    assert not runs(tmp_path)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("./benhc", ("no program ./benhc", "did you mean ./bench?")),
        ("pyhton3", ("no program pyhton3 on the PATH", "python3")),
        ("bench", ("no program bench on the PATH", "did you mean ./bench?")),
        ("./data.txt", ("cannot run ./data.txt: it is not executable", "chmod +x data.txt")),
        ("./folder", ("cannot run ./folder: it is a folder", "")),
        ("/no/such/folder/x", ("no program /no/such/folder/x", "")),
    ],
)
def test_a_program_that_does_not_exist_ends_before_the_first_probe(
    cli: Cli, tmp_path: Path, program: str, said: tuple[str, ...]
) -> None:
    (tmp_path / "bench").write_text("#!/bin/sh\n")
    (tmp_path / "bench").chmod(0o755)
    (tmp_path / "data.txt").touch()
    (tmp_path / "folder").mkdir()
    for command in ("run", "sweep", "bisect", "sanitize", "diagnose"):
        done = cli(command, "-P", "n=1", "--", program, "{n}", expect=2)
        assert all(words in done.err for words in said), done.err
    assert not runs(tmp_path)
    cli("run", "--", "./bench", expect=0)


def test_a_program_that_some_shapes_lack_costs_those(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "b2").write_text("#!/bin/sh\n")
    (tmp_path / "b2").chmod(0o755)
    done = cli("sweep", "-P", "n=1,2", "--", "./b{n}", expect=3)
    assert outcomes(done.out) == {"1": "unresolved", "2": "pass"}


def test_a_source_that_does_not_compile_ends_a_sweep_early(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    (tmp_path / "bad.cu").write_text('extern "C" __global__ void k(int n, float* out) { out[0] = oops; }\n')
    (tmp_path / "bad.yaml").write_text(
        "case: bad\ntarget:\n  kernel:\n    source: bad.cu\n    entry: k\n    grid: 1\n    block: 32\n    args:\n"
        "      - {scalar: n, dtype: int32}\n      - {out: o, dtype: float32, shape: [1]}\n"
        "sweep:\n  n: {from: 1, to: 40, step: 1}\n"
    )
    done = cli("sweep", "./bad.yaml", "--device", "emulator", expect=3)
    assert len(done.out.splitlines()) == 1 + 6
    assert "given up: the kernel did not compile: " in done.err
    assert 'identifier "oops" is undefined' in done.err


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (("bisect", "no_such_case", "--json"), 2, "no_such_case", None),
        (("bisect", "--json", "--nonsense"), 2, "No such option", None),
        (("run", "--json", "-P", "n=1", "--", "./nope", "{n}"), 2, "no program ./nope", "looked for from"),
        (("run", "--json", "--device", "cuda:77", "--", "true"), 3, None, None),
        (
            ("bisect", "--json", "--git-bisect", "-P", "n=1", "--", "./nope"),
            125,
            "no program ./nope",
            "looked for from",
        ),
        (("triage", "--json", "no.log"), 2, "cannot read no.log", None),
    ],
)
def test_with_json_an_error_is_a_document_too(
    cli: Cli, words: tuple[str, ...], code: int, message: str | None, hint: str | None
) -> None:
    done = cli(*words, expect=code)
    jsonschema.Draft202012Validator(json_schema("error")).validate(done.document)
    error = done.document["error"]
    assert (done.document["exit_code"], error["exit"]) == (code, code)
    assert (message or "") in error["message"]
    assert (hint or "") in (error["hint"] or "")
    assert error["message"].splitlines()[0] in done.err, "people are told the same"


def test_a_program_s_own_json_option_is_not_ours(cli: Cli) -> None:
    assert cli("run", "-P", "n=1", "--", "./nope", "--json", expect=2).out == ""
