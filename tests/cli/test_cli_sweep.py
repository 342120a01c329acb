"""`cudadiag sweep`: a row for every shape, whatever happens to its neighbours."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from conftest import Cli

from cudadiag.report.schemas import json_schema
from cudadiag.store.ledger import read_ledger

CRASHES = "test $(({m} * {n})) -gt 8 && kill -ABRT $$; echo {m} {n}"


def test_what_was_measured_before_and_after_a_crash_is_kept(cli: Cli) -> None:
    done = cli("sweep", "-P", "m=1,4", "-P", "n=1,2,4", "--", "sh", "-c", CRASHES, expect=1)
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["m", "n", "seconds", "outcome"]
    assert [(r[0], r[1], r[3]) for r in rows[1:]] == [
        ("1", "1", "pass"),
        ("1", "2", "pass"),
        ("1", "4", "pass"),
        ("4", "1", "pass"),
        ("4", "2", "pass"),
        ("4", "4", "fault"),
    ]
    assert "6 of 6 shapes run: 5 pass, 1 fault" in done.err
    assert "first failing shape: m=4 n=4, probe 6" in done.err


def test_rows_come_in_sweep_order_also_side_by_side(cli: Cli) -> None:
    done = cli("sweep", "-P", "n=5..1:-1", "--jobs", "4", "--", "sh", "-c", "sleep 0.0{n}", expect=0)
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["5", "4", "3", "2", "1"]


def test_conditions_and_patterns_work_without_a_file(cli: Cli) -> None:
    words = ("-P", "m=1,2,3", "-P", "n=1,2,3", "--where", "m * n <= 3", "--success", "^sum [0-2]$", "--derive", "s=m+n")
    done = cli("sweep", *words, "--", "sh", "-c", "echo sum $(({m} * {n} + {m} + {n} - 3))", expect=1)
    rows = [line.split() for line in done.out.splitlines()[1:]]
    assert [(r[0], r[1], r[3]) for r in rows] == [
        ("1", "1", "pass"),
        ("1", "2", "pass"),
        ("1", "3", "wrong"),
        ("2", "1", "pass"),
        ("3", "1", "wrong"),
    ]
    assert cli("sweep", "crash_from", "--where", "rows * columns < 512", "--json").document["shapes"] < 42


def test_a_bundled_case_runs_by_name_from_any_folder(cli: Cli) -> None:
    done = cli("sweep", "crash_from", "-P", "rows=8,16", "-P", "columns=256,512", expect=1)
    assert "(bundled)" in done.err
    assert [line.split()[3] for line in done.out.splitlines()[1:]] == ["pass", "pass", "pass", "fault"]


def test_json_obeys_its_schema(cli: Cli) -> None:
    done = cli("sweep", "--json", "-P", "n=1..3", "--repeat", "2", "--", "sh", "-c", "exit {n}", expect=1)
    jsonschema.Draft202012Validator(json_schema("sweep")).validate(done.document)
    assert done.document["counts"] == {"fault": 6}
    assert [p["shape"]["n"] for p in done.document["probes"]] == [1, 1, 2, 2, 3, 3]


def test_a_hopeless_sweep_is_given_up_with_the_reason(cli: Cli) -> None:
    done = cli("sweep", "-P", "n=1..500", "--", "./no_such_program{n * 0}", "{n}", expect=3)
    assert len(done.out.splitlines()) == 7
    assert "given up" in done.err


def test_some_unresolved_shapes_leave_the_sweep_undecided(cli: Cli, tmp_path: Path) -> None:
    program = tmp_path / "p2"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = cli("sweep", "-P", "n=1,2", "--", "./p{n}", expect=3)
    assert [line.split()[2] for line in done.out.splitlines()[1:]] == ["unresolved", "pass"]


def test_a_sweep_can_be_explained_afterwards(cli: Cli) -> None:
    cli("sweep", "-P", "n=1..12", "--", "sh", "-c", "test {n} -lt 7", expect=1)
    done = cli("explain", "--json", expect=1)
    assert done.document["answer"]["first_shape"] == {"n": 7}
    assert done.document["answer"]["claim"] == "proven"
    assert len(done.document["probes"]) == 12


def test_a_resumed_sweep_runs_only_what_is_missing(cli: Cli, tmp_path: Path) -> None:
    cli("sweep", "-P", "n=1..6", "--", "sh", "-c", "echo {n} >> seen", expect=0)
    (run,) = (tmp_path / ".cudadiag/runs").iterdir()
    path = run / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:50])
    done = cli("sweep", "--resume", "last", expect=0)
    assert "cut off" in done.err
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["1", "2", "3", "4", "5", "6"]
    assert (tmp_path / "seen").read_text().split() == ["1", "2", "3", "4", "5", "6", "4", "5", "6"]
    assert (run / "ledger.torn").read_bytes() == lines[4][:50] + b"\n"
    ledger = read_ledger(path)
    assert [p.shape["n"] for p in ledger.probes] == [1, 2, 3, 4, 5, 6]
    assert ledger.notes[0].kind == "resumed"


def test_resuming_a_changed_program_is_refused_and_names_it(cli: Cli, tmp_path: Path) -> None:
    program = tmp_path / "bench"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    cli("sweep", "-P", "n=1,2", "--", "./bench", "{n}", expect=0)
    program.write_text("#!/bin/sh\nexit 1\n")
    done = cli("sweep", "--resume", "last", expect=2)
    assert "bench changed" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sweep", "--resume", "last", "--observer", "plain"), "observer is 'plain' now and was 'blocking'"),
        (("sweep", "--resume", "last", "-P", "n=1"), "params is"),
        (("bisect", "--resume", "last"), "made by `cudadiag sweep`"),
        (("sweep", "--resume", "nothing"), "no run 'nothing'"),
    ],
)
def test_resuming_with_another_question_is_refused(cli: Cli, words: tuple[str, ...], message: str) -> None:
    cli("sweep", "-P", "n=1,2", "--", "true", expect=0)
    assert message in cli(*words, expect=2).err


def test_every_line_of_a_real_ledger_obeys_the_schema(cli: Cli, tmp_path: Path) -> None:
    cli("sweep", "-P", "n=1,2", "--", "sh", "-c", "echo Error: CUDA error 700 >&2; exit {n}", expect=1)
    schema = json.loads((Path(__file__).parents[2] / "cudadiag/store/ledger.schema.json").read_text())
    (run,) = (tmp_path / ".cudadiag/runs").iterdir()
    lines = (run / "ledger.jsonl").read_text().splitlines()
    assert len(lines) == 3
    for line in lines:
        jsonschema.Draft202012Validator(schema).validate(json.loads(line))


KEEPS = """
import os
kept = []
def grow(n):
    kept.append(n)
    if len(kept) == 4:
        os.abort()
    return len(kept)
"""
IN_ONE = """
case: keeps
isolation: sequence
target:
  python: {function: "keeps.py:grow", args: {n: n}}
sweep:
  n: {from: 1, to: 6, step: 1}
"""


def test_a_case_in_sequence_runs_in_one_process_and_goes_on_after_a_crash(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "keeps.py").write_text(KEEPS)
    (tmp_path / "keeps.yaml").write_text(IN_ONE)
    done = cli("sweep", str(tmp_path / "keeps.yaml"), expect=1)
    assert [line.split()[2] for line in done.out.splitlines()[1:]] == ["pass", "pass", "pass", "fault", "pass", "pass"]
    assert "host-signal, SIGABRT (6) (probe 1)" in done.out
    assert "6 of 6 shapes run: 5 pass, 1 fault" in done.err
    assert "first failing shape: n=4, probe 1" in done.err
    assert "shapes ran after each other in 2 processes" in done.err
    again = cli("sweep", str(tmp_path / "keeps.yaml"), "--repeat", "2", "--json", expect=1).document
    assert (again["counts"], again["shapes_run"]) == ({"pass": 10, "fault": 2}, 6)
    assert [row["index"] for row in again["probes"] if row["outcome"] == "fault"] == [3, 3]
