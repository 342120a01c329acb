"""A repository of five cases, gated for real: command targets, kernels on the emulated device, shards, budgets."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
from gate_kit import BAD, GOOD, gate, kernel, program

from cudadiag.gate.baseline import read_baseline
from cudadiag.report.schemas import json_schema
from cudadiag.store.folders import Store
from cudadiag.store.ledger import read_ledger

FINE = "exit 0"
CRASH = "test $1 -lt 5 || kill -SEGV $$\n"
WHY = ("--reason", "scratch too small", "--owner", "mb", "--issue", "https://example.org/7")
NEEDS_EMULATOR = pytest.mark.skipif(not find_spec("llvmlite"), reason="needs the emulated device (llvmlite)")


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """Five cases that pass."""
    for name in ("one", "two", "three", "four", "five"):
        program(tmp_path, name, FINE)
    return tmp_path


def test_clean_then_new_then_known_then_fixed_then_clean(five: Path) -> None:
    """The life of a crash, from the first run to the last."""
    assert gate(five, expect=0).lines == []
    program(five, "three", CRASH)
    red = gate(five, expect=1)
    assert [row[0] for row in red.lines] == ["new"]
    assert "three: died of SIGSEGV" in red.lines[0][1]
    assert "n=5" in red.lines[0][1], "where it begins, not only where it was met"
    gate(five, "--update", expect=1)
    assert not (five / "cudadiag-baseline.yaml").exists(), "nothing is tolerated without a reason"
    gate(five, "--update", *WHY, expect=0)
    for _ in range(2):
        assert [row[0] for row in gate(five, expect=0).lines] == ["known"]
    program(five, "three", FINE)
    assert [row[0] for row in gate(five, expect=0).lines] == ["fixed"]
    assert gate(five, "--strict", expect=1).lines[0][0] == "fixed"
    gate(five, "--update", expect=0)
    assert gate(five, "--strict", expect=0).lines == []
    assert read_baseline(five / "cudadiag-baseline.yaml").entries == ()


def test_expired_is_said_on_a_line_of_its_own(five: Path) -> None:
    program(five, "three", CRASH)
    gate(five, "--update", *WHY, "--expires", "2020-01-31", expect=0)
    done = gate(five, expect=0)
    assert [row[0] for row in done.lines] == ["expired", "known"]
    assert "2020-01-31" in done.out
    gate(five, "--strict", expect=1)


def test_changed_is_red_and_update_takes_the_new_signature(five: Path) -> None:
    program(five, "three", CRASH)
    gate(five, "--update", *WHY, expect=0)
    program(five, "three", "test $1 -lt 5 || kill -ABRT $$\n")
    done = gate(five, expect=1)
    assert [row[0] for row in done.lines] == ["changed"]
    assert "SIGABRT" in done.out
    gate(five, "--update", expect=0)
    assert [row[0] for row in gate(five, expect=0).lines] == ["known"]


def test_a_case_that_is_gone_has_vanished(five: Path) -> None:
    program(five, "three", CRASH)
    gate(five, "--update", *WHY, expect=0)
    (five / "cases/three.yaml").unlink()
    assert [row[0] for row in gate(five, expect=0).lines] == ["vanished"]
    assert gate(five, "one", expect=0).lines == [], "cases that were named say nothing about others"


def test_a_crash_in_three_of_ten_runs_is_never_red_or_fixed(five: Path) -> None:
    """A few real runs of what the simulation does a hundred times. /dev/urandom is the dice."""
    program(five, "three", "test $1 -lt 5 || test $(od -An -N1 -tu1 /dev/urandom) -gt 76 || kill -SEGV $$\n")
    (five / "cudadiag-baseline.yaml").write_text(
        "version: 1\nknown:\n  - {case: three, rule: n >= 5, signature: v1/fault/host-signal/SIGSEGV, reason: r, "
        "owner: o, issue: i, expires: 2099-01-01, rate: 0.3}\n"
    )
    for _ in range(5):
        done = gate(five, "three", expect=0)
        assert done.lines[0][0] in ("flaky", "known"), done.out


@pytest.mark.parametrize("device", [None, "auto", "cuda:0", "cuda"])
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU here")
def test_a_missing_gpu_is_three_and_nothing_is_run_elsewhere(five: Path, device: str | None) -> None:
    kernel(five, "scale", GOOD)
    done = gate(five, device=device, expect=3)
    assert {row[0] for row in done.lines} == {"undecided"}
    assert "no NVIDIA driver" in done.out
    assert not (five / ".cudadiag/runs").exists()


def test_wrong_use_is_two_before_anything_is_run(five: Path) -> None:
    (five / "cases/bad.yaml").write_text("case: bad\nsweep: {n: [1]}\n")
    done = gate(five, expect=2)
    assert done.err.startswith("cases/bad.yaml:1:1: ")
    (five / "cases/bad.yaml").unlink()
    for words in (("--budget", "soon"), ("--shard", "9/8"), ("-o", "pdf=x"), ("-o", "junit"), ("nothing",)):
        assert gate(five, *words, expect=2).out == ""
    (five / "cudadiag-baseline.yaml").write_text("version: 1\nknown: [{case: x}]\n")
    assert "cudadiag-baseline.yaml:2: known.1" in gate(five, expect=2).err
    assert not (five / ".cudadiag/runs").exists()


def test_no_cases_is_two(tmp_path: Path) -> None:
    assert "no cases" in gate(tmp_path, expect=2).err


@NEEDS_EMULATOR
def test_kernels_on_the_emulated_device_with_programs_beside_them(tmp_path: Path) -> None:
    for name in ("k1", "k2"):
        kernel(tmp_path, name, GOOD)
    program(tmp_path, "p1", FINE)
    assert gate(tmp_path, device="emulator", expect=0).lines == []
    kernel(tmp_path, "k2", BAD)
    done = gate(tmp_path, "k2", "-o", "sarif=s.sarif", "-o", "github", device="emulator", expect=1)
    assert [row[0] for row in done.lines] == ["new"]
    assert "k2: " in done.lines[0][1]
    assert "::error file=cases/k2.cu,line=5,title=new%3A k2::" in done.out
    (result,) = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("cases/k2.cu", 5)
    gate(tmp_path, "k2", "--update", *WHY, device="emulator", expect=0)
    assert [row[0] for row in gate(tmp_path, device="emulator", expect=0).lines] == ["known"]
    (entry,) = read_baseline(tmp_path / "cudadiag-baseline.yaml").entries
    assert (entry.device, entry.signatures) == ("emulator", ("v1/fault/memory-access/fill",))


@NEEDS_EMULATOR
def test_a_case_for_another_device_is_left_out_and_said(tmp_path: Path) -> None:
    kernel(tmp_path, "k1", GOOD)
    path = tmp_path / "cases/k1.yaml"
    path.write_text(path.read_text() + "requires: {device: cuda}\n")
    program(tmp_path, "p1", FINE)
    done = gate(tmp_path, device="emulator", expect=0)
    assert done.lines == [("left-out", "k1: the case needs a cuda device, this is emulator")]
    gate(tmp_path, "k1", device="emulator", expect=3)


def test_a_build_that_fails_is_undecided_and_the_others_run(five: Path) -> None:
    path = five / "cases/two.yaml"
    path.write_text(path.read_text() + "build: 'false'\n")
    done = gate(five, expect=3)
    assert [row[0] for row in done.lines] == ["undecided"]
    assert "two: the case's build failed" in done.out
    assert "4 cases" not in done.out


def test_shards_together_run_each_shape_once_and_are_decided_together(five: Path) -> None:
    program(five, "three", CRASH)
    codes = [gate(five, "--shard", f"{k}/3", "--store", f"s{k}").code for k in (1, 2, 3)]
    assert 1 in codes
    merged = gate(five, "merge", "s1", "s2", "s3", "-o", "junit=all.xml", "--json", expect=1)
    document = json.loads(merged.out)
    assert [f["status"] for f in document["findings"]] == ["new"]
    whole = json.loads(gate(five, "--json", "--store", "whole", expect=1).out)
    assert {c["case"]: len(c["shapes"]) for c in document["cases"]} == {
        c["case"]: len(c["shapes"]) for c in whole["cases"]
    }
    joined = [read_ledger(run.ledger) for run in Store(five / ".cudadiag").runs()]
    assert sorted(ledger.run.case_name for ledger in joined) == ["five", "four", "one", "three", "two"]
    assert all([p.number for p in ledger.probes] == list(range(1, len(ledger.probes) + 1)) for ledger in joined)


def test_a_missing_or_unfinished_shard_is_undecided(five: Path) -> None:
    for k in (1, 2):
        gate(five, "--shard", f"{k}/3", "--store", f"s{k}", expect=0)
    done = gate(five, "merge", "s1", "s2", expect=3)
    assert done.lines == [("undecided", "shard 3/3: its record is not among those given")]
    gate(five, "--shard", "3/3", "--store", "s3", expect=0)
    gate(five, "merge", "s1", "s2", "s3", expect=0)
    (record,) = (five / "s3").glob("gates/*/gate.json")
    record.write_text(record.read_text().replace('"finished": true', '"finished": false'))
    assert "ended before it had finished" in gate(five, "merge", "s1", "s2", "s3", expect=3).out


def test_shards_of_different_sources_are_not_mixed(five: Path) -> None:
    gate(five, "--shard", "1/2", "--store", "s1", expect=0)
    for name in ("one", "two", "three", "four", "five"):
        program(five, name, "true")
    gate(five, "--shard", "2/2", "--store", "s2", expect=0)
    assert "differ between the shards" in gate(five, "merge", "s1", "s2", expect=2).err


def test_a_budget_runs_what_failed_before_and_leaves_the_rest_out(five: Path) -> None:
    for name in ("one", "two", "three", "four", "five"):
        program(five, name, "sleep 0.3; exit 0")
    program(five, "four", "sleep 0.3; test $1 -lt 8 || kill -SEGV $$")
    gate(five, expect=1)
    done = gate(five, "--budget", "1s", "--json", expect=1)
    document = json.loads(done.out)
    counts = {case["case"]: sum(shape["runs"] for shape in case["shapes"]) for case in document["cases"]}
    assert counts["four"] >= 1
    assert document["counts"]["left-out"] >= 1
    assert document["wall_s"] < 10
    (left,) = [c for c in document["cases"] if c["case"] == "one"]
    assert {shape["state"] for shape in left["shapes"]} <= {"left-out", "passed"}


def test_a_changed_source_moves_its_case_to_the_front(five: Path) -> None:
    gate(five, expect=0)
    program(five, "two", "true")
    document = json.loads(gate(five, "--json", expect=0).out)
    changed = {case["case"]: case["sources_changed"] for case in document["cases"]}
    assert changed == {"one": False, "two": True, "three": False, "four": False, "five": False}
    two = next(case for case in document["cases"] if case["case"] == "two")
    assert all("changed sources" in shape["why"] for shape in two["shapes"])


def test_repeat_runs_each_shape_so_often_and_says_what_that_finds(five: Path) -> None:
    done = gate(five, "one", "--repeat", "3", "--json", expect=0)
    document = json.loads(done.out)
    assert {shape["runs"] for shape in document["cases"][0]["shapes"]} == {3}
    assert "0.3 of runs 0.66" in document["power"]


def test_the_document_obeys_its_schema(five: Path) -> None:
    program(five, "three", CRASH)
    done = gate(five, "--json", "-o", "github", expect=1)
    assert "::error" in done.err, "stdout is for the document"
    jsonschema.Draft202012Validator(json_schema("gate")).validate(json.loads(done.out))


def test_two_cases_of_one_name_are_told_apart(five: Path) -> None:
    shutil.copytree(five / "cases", five / "cases/more")
    program(five, "three", CRASH)
    done = gate(five, "--update", *WHY, expect=0)
    assert "./three: died of SIGSEGV" in done.out
    assert [row[0] for row in gate(five, expect=0).lines] == ["known"]


def test_cases_check_names_the_place_and_passes_over_what_is_no_case(five: Path) -> None:
    import subprocess

    from gate_kit import COMMAND

    (five / "other.yaml").write_text("just: data\n")
    (five / "bad.yaml").write_text("case: bad\nsweep: {n: [1]}\n")

    def check(*files: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "cases", "--check", *files], cwd=five, capture_output=True, text=True, check=False
        )

    assert check("cases/one.yaml", "other.yaml").returncode == 0
    done = check("cases/one.yaml", "bad.yaml")
    assert (done.returncode, "bad.yaml:1:1: " in done.stdout) == (2, True)
    assert check("gone.yaml").returncode == 2
