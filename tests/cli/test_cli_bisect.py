"""`cudadiag bisect` end to end: the answer first, right, sure, and the same after a resume."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from conftest import Cli

from cudadiag.report.schemas import json_schema

PREFIX = ("-P", "q_len=9,17,33", "-P", "prefix=256..8192:x2")
DIES = "test $(({q_len} + {prefix})) -le 4096 || kill -SEGV $$"


def test_the_first_five_lines_are_the_answer(cli: Cli) -> None:
    done = cli("bisect", *PREFIX, "--strategy", "linear", "--", "sh", "-c", DIES, expect=1)
    lines = done.out.splitlines()
    heads = [line[:21].strip() for line in lines[:5]]
    assert heads == ["first failing shape", "rule", "claim", "fault", "confirmed"]
    assert "q_len=9 prefix=4096" in lines[0]
    assert "shape 5 of 18, probe 5" in lines[0]
    assert "proven" in lines[2]
    assert "SIGSEGV" in lines[3]
    assert lines[4].split()[1:4] == ["failed", "in", lines[4].split()[3]]


@pytest.mark.parametrize("strategy", ["linear", "bisect", "exhaustive", "auto"])
def test_every_strategy_finds_it_and_says_how_sure_it_is(cli: Cli, strategy: str) -> None:
    axes = ("-P", "q_len=9", "-P", "prefix=256..16384:x2")  # plain bisection is right where all after the first fail
    done = cli("bisect", *axes, "--strategy", strategy, "--json", "--", "sh", "-c", DIES, expect=1)
    answer = done.document["answer"]
    assert answer["first_shape"] == {"q_len": 9, "prefix": 4096}
    assert answer["claim"] == ("assumed" if strategy == "bisect" else "proven")
    assert done.document["fault"]["name"] == "SIGSEGV"


def test_json_obeys_its_schema_and_every_number_names_a_probe(cli: Cli) -> None:
    done = cli("bisect", *PREFIX, "--json", "--", "sh", "-c", DIES, expect=1)
    document = done.document
    jsonschema.Draft202012Validator(json_schema("bisect")).validate(document)
    probes = {probe["probe"]: probe for probe in document["probes"]}
    first = probes[document["first_probe"]]
    assert first["shape"] == document["answer"]["first_shape"]
    for number in document["confirmation"]["probes"]:
        assert probes[number]["shape"] == document["answer"]["first_shape"]
    assert Path(first["folder"]).is_dir()


def test_nothing_failing_ends_with_0_only_if_everything_was_run(cli: Cli) -> None:
    assert "none" in cli("bisect", "-P", "n=1..5", "--", "true", expect=0).out
    done = cli("bisect", "-P", "n=1..5", "--max-probes", "2", "--", "true", expect=3)
    assert "2 of 5" in done.out
    cli("bisect", "-P", "n=1..5", "--max-probes", "2", "--partial-ok", "--", "true", expect=0)


def test_jobs_side_by_side_give_the_same_answer(cli: Cli) -> None:
    answers = []
    for jobs in ("1", "4"):
        done = cli("bisect", *PREFIX, "--strategy", "exhaustive", "--jobs", jobs, "--json", "--", "sh", "-c", DIES)
        answers.append((done.document["answer"]["first_shape"], done.document["answer"]["claim"]))
    assert answers[0] == answers[1]


def test_the_safe_list_has_what_was_run_and_nothing_guessed(cli: Cli, tmp_path: Path) -> None:
    cli("bisect", "-P", "n=1..9", "--strategy", "linear", "--write-safe", "safe.json", "--", "test", "{n}", "-lt", "4")
    safe = json.loads((tmp_path / "safe.json").read_text())
    assert [shape["n"] for shape in safe["good"]] == [1, 2, 3]
    assert {"n": 4} in safe["bad"]
    assert {shape["n"] for shape in safe["good"] + safe["bad"] + safe["unknown"]} == set(range(1, 10))


EVERY_OTHER = "c=$(cat c || echo 0); echo $((c+1)) > c; test {n} -lt 5 || test $((c%2)) = 0 || kill -SEGV $$"


def test_a_flaky_fault_is_told_shape_by_shape_and_a_few_passes_are_no_pass(cli: Cli, tmp_path: Path) -> None:
    options = ("-P", "n=1..8", "--max-probes", "24", "--write-safe", "safe.json")
    done = cli("bisect", *options, "--", "sh", "-c", EVERY_OTHER, expect=1)
    document = json.loads(cli("explain", "--json", expect=1).out)
    answer, probes = document["answer"], document["probes"]
    assert answer["rate"]["flaky"]
    for each in answer["rate"]["each"]:
        outcomes = [p["outcome"] for p in probes if p["index"] == each["shape"]]
        assert (each["fails"], each["runs"]) == (outcomes.count("fault"), len(outcomes))
        assert f"    {each['fails']} of {each['runs']}  n={each['shape'] + 1}\n" in done.out
    few = {index + 1 for index in answer["passed_too_seldom"]}
    assert few
    assert ", only passed, in too few runs to say" in done.out
    unknown = {shape["n"] for shape in json.loads((tmp_path / "safe.json").read_text())["unknown"]}
    assert few <= unknown


def test_a_program_that_is_not_there_at_one_shape_is_tried_once_and_the_shape_is_unknown(
    cli: Cli, tmp_path: Path
) -> None:
    for n in (1, 2, 4):
        (tmp_path / f"bench{n}").write_text("#!/bin/sh\n")
        (tmp_path / f"bench{n}").chmod(0o755)
    done = cli("bisect", "-P", "n=1..4", "--json", "--", "./bench{n}", expect=3)
    missing = [p for p in done.document["probes"] if p["shape"]["n"] == 3]
    assert [p["outcome"] for p in missing] == ["unresolved"]
    assert done.document["answer"]["counts"]["unknown"] == 1


def test_repeats_that_all_failed_come_with_what_they_prove(cli: Cli) -> None:
    done = cli("bisect", *PREFIX, "--strategy", "linear", "--repeat", "4", "--max-probes", "9", "--", "sh", "-c", DIES)
    assert re.search(r"failed in 4 of 4 fresh processes, alone .*: rate above 47 % with 95 % confidence", done.out)


def test_probes_do_not_inherit_the_one_thread_that_the_search_takes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    cli("bisect", "-P", "n=1..2", "--", "sh", "-c", 'test -z "$OPENBLAS_NUM_THREADS"', expect=0)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    cli("bisect", "-P", "n=1..2", "--", "sh", "-c", 'test "$OPENBLAS_NUM_THREADS" = 3', expect=0)


def test_a_wrong_place_for_the_safe_list_is_told_before_anything_runs(cli: Cli, tmp_path: Path) -> None:
    done = cli("bisect", "-P", "n=1", "--write-safe", "no/such/safe.json", "--", "touch", "ran", expect=2)
    assert "no/such/safe.json" in done.err
    assert not (tmp_path / "ran").exists()


def test_explain_gives_the_same_answer_without_running_anything(cli: Cli, tmp_path: Path) -> None:
    script = f"echo x >> ran; {DIES}"
    before = cli("bisect", *PREFIX, "--json", "--", "sh", "-c", script, expect=1).document
    ran = (tmp_path / "ran").read_text()
    after = cli("explain", "--json", expect=1).document
    assert after["answer"] == before["answer"]
    assert (tmp_path / "ran").read_text() == ran


def test_explain_judges_from_the_ledger_alone_when_the_files_are_gone(cli: Cli, tmp_path: Path) -> None:
    script = "test {n} -lt 3 || {{ echo 'CUDA error: an illegal memory access was encountered' >&2; exit 1; }}"
    before = cli("bisect", "-P", "n=1..4", "--json", "--", "sh", "-c", script, expect=1).document
    for folder in (tmp_path / ".cudadiag/runs").glob("*/probes/*/*"):
        folder.unlink()
    after = cli("explain", "--json", expect=1).document
    assert after["answer"] == before["answer"]
    assert after["fault"] == before["fault"]
    assert after["fault"]["number"] == 700


def test_a_hang_is_found_as_such(cli: Cli) -> None:
    words = ("--timeout", "1.5", "--strategy", "linear", "--max-probes", "4", "--json", "-P", "n=1..4")
    done = cli("bisect", *words, "--", "sh", "-c", "test {n} -ne 3 || sleep 60", expect=1)
    assert done.document["answer"]["first_shape"] == {"n": 3}
    assert done.document["answer"]["first_outcome"] == "hang"


def test_a_rule_without_a_condition_and_one_that_is_a_guess_are_told_as_such(cli: Cli) -> None:
    always = cli("bisect", "-P", "n=1", "--", "false", expect=1).out
    assert "fault whatever the shape\n" in always
    assert "0 of 0 fresh" not in always
    guess = cli("bisect", "-P", "n=1..40", "--max-probes", "1", "--", "false", expect=1).out
    assert "(not settled: see below)" in guess.splitlines()[1]
