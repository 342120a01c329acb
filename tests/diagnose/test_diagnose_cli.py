"""`sanitize` and `diagnose` as commands: real processes, on the host and on the emulated device."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cudadiag.report.schemas import json_schema

EMULATED = pytest.mark.skipif(find_spec("llvmlite") is None, reason="the emulated device needs llvmlite")
NO_GPU = pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="says what happens where there is no GPU")
OOB = "out-of-bounds"

DDTREE = {  # case -> shape (None: it is looked for), the true explanation, what else is true
    "verify_attn": ("streams=1,q_len=9,prefix=4096", OOB, {"buffer-mismatch", "noticed-late"}),
    "tree_flat": ("budget=8,streams=1", "miscompile", {"noticed-late"}),
    "commit_none": ("streams=1,nodes=9,accepted=0", OOB, {"noticed-late"}),
    "decode_loop": ("prompt=16,generated=178", OOB, {"buffer-mismatch", "noticed-late"}),
    "leaky_sweep": (None, "memory-exhausted", {"carried-over"}),
}


def call(folder: Path, *words: str, expect: int) -> subprocess.CompletedProcess[str]:
    dropped = ("NO_COLOR", "FORCE_COLOR", "CUDADIAG_STORE", "CUDA_VISIBLE_DEVICES")
    done = subprocess.run(
        [sys.executable, "-m", "cudadiag", *words],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key not in dropped},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback (most recent call last)" not in done.stderr
    return done


def document(folder: Path, *words: str, expect: int) -> dict[str, Any]:
    command, *rest = words
    data = json.loads(call(folder, command, "--json", *rest, expect=expect).stdout)
    assert isinstance(data, dict)
    return data


def with_status(found: dict[str, Any], status: str) -> set[str]:
    return {part["name"] for part in found["explanations"] if part["status"] == status}


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """A bundled case diagnosed once on the emulated device: the folder of its run, and what came out."""

    @functools.cache
    def diagnosed(name: str) -> tuple[Path, dict[str, Any]]:
        folder, shape = tmp_path_factory.mktemp(name), DDTREE[name][0]
        words = ["diagnose", name, "--device", "emulator", *(["--shape", shape] if shape else [])]
        return folder, document(folder, *words, expect=1)

    return diagnosed


@EMULATED
@pytest.mark.parametrize("name", DDTREE)
def test_the_true_explanation_of_a_bundled_case_is_supported_on_the_emulated_device(name: str, bundled: Any) -> None:
    _, true, also = DDTREE[name]
    folder, found = bundled(name)
    assert found["cause"] == true
    assert with_status(found, "supported") == {true, *also}
    # What the emulated device cannot check is said, not refuted; nor is a number that wraps on the way to an index.
    unchecked = {"race", "uninitialised", "barrier-misuse", "miscompile", "integer-overflow"}
    assert with_status(found, "untested") <= unchecked
    again = document(folder, "explain", "last", expect=1)
    assert again["explanations"] == found["explanations"]
    assert again["agreement"] == found["agreement"]
    jsonschema.validate(found, json_schema("diagnose"))


@EMULATED
def test_the_hypotheses_of_a_crash_at_a_synchronisation_are_answered_one_by_one(bundled: Any) -> None:
    """A mask that does not match, memory that runs out, a stale error: it is another buffer, the rest is refuted."""
    by_name = {part["name"]: part for part in bundled("verify_attn")[1]["explanations"]}
    assert "`scores`" in by_name["buffer-mismatch"]["why"]
    assert "no overrun of q, kv, vis or out was recorded" in by_name["buffer-mismatch"]["why"]
    assert by_name["memory-exhausted"]["status"] == "refuted"
    assert "of 16.0 GiB free" in by_name["memory-exhausted"]["why"]
    assert by_name["carried-over"]["status"] == "refuted"
    assert by_name["carried-over"]["probes"]
    assert by_name["launch-limit"]["status"] == "refuted"
    assert "within the limits" in by_name["launch-limit"]["why"]


@EMULATED
def test_a_sweep_that_leaks_says_how_much_a_shape_leaves_behind(bundled: Any) -> None:
    text = call(bundled("leaky_sweep")[0], "explain", "last", expect=1).stdout
    assert "out of memory for `workspace`" in text
    assert "free memory falls by 1.0 GiB a shape" in text
    assert "it passes alone and fails after 15 others: memory that they did not free" in text


@EMULATED
def test_sanitize_names_the_buffer_the_row_and_the_line(tmp_path: Path) -> None:
    shape = "streams=1,q_len=9,prefix=4096"
    text = call(tmp_path, "sanitize", "verify_attn", "--device", "emulator", "--shape", shape, expect=1).stdout
    assert "right at the end of `scores` (row 17)" in text
    assert "block_scores[static_cast<size_t>(row0 + row) * pitch + key] =" in text
    assert "found by plain and blocking" in text
    assert "the emulated device checks every memory access itself" in text


@EMULATED
def test_sanitize_takes_the_failing_shape_of_the_newest_run_and_says_so(tmp_path: Path) -> None:
    shape = ["-P", "streams=4", "-P", "nodes=9", "-P", "accepted=0"]
    call(tmp_path, "run", "commit_none", "--device", "emulator", *shape, expect=1)
    found = document(tmp_path, "sanitize", "commit_none", "--device", "emulator", expect=1)
    assert found["subject"]["shape"] == {"streams": 4, "nodes": 9, "accepted": 0}
    assert found["subject"]["origin"].startswith("the failing shape of the run ")
    assert {probe["purpose"] for probe in found["probes"]} == {"sanitize"}
    jsonschema.validate(found, json_schema("sanitize"))
    assert found["agreement"]["where"] == "4 bytes before the start of `path` (row 0)"


@EMULATED
def test_a_shape_that_passes_is_said_to_pass(tmp_path: Path) -> None:
    shape = "streams=1,nodes=9,accepted=1"
    found = document(tmp_path, "sanitize", "commit_none", "--device", "emulator", "--shape", shape, expect=0)
    assert found["agreement"]["outcome"] == "pass"
    assert found["agreement"]["fault"] is None


def test_a_host_program_that_dies_is_diagnosed_from_a_search_of_its_own(tmp_path: Path) -> None:
    few = ["-P", "rows=1,16,64", "-P", "columns=16,256,512"]
    found = document(tmp_path, "diagnose", "crash_from", "--device", "none", *few, expect=1)
    assert found["subject"]["shape"] == {"rows": 16, "columns": 512}
    assert found["subject"]["rules"][0].startswith("fault where ")
    assert found["cause"] == "host-program"
    assert with_status(found, "supported") == {"host-program"}
    why = {part["name"]: part["why"] for part in found["explanations"]}
    untested = with_status(found, "untested")  # nobody looked: a program may use CUDA where there is a device
    assert "race" in untested
    assert {why[name] for name in untested} == {"no CUDA device is in use here"}
    assert "not tested: no CUDA device is in use here" in found["sureness"]
    assert "in fresh processes" in why["hardware-or-chance"]
    again = document(tmp_path, "diagnose", "--resume", "last", expect=1)  # finished: nothing more is run
    assert again["probes"] == found["probes"]
    assert again["explanations"] == found["explanations"]


def test_a_host_program_that_hangs_is_told_from_one_that_dies(tmp_path: Path) -> None:
    found = document(tmp_path, "diagnose", "hang_odd", "--device", "none", "--shape", "workers=3", expect=1)
    assert with_status(found, "supported") == {"host-program", "endless-wait"}
    assert found["next_step"].startswith("raise --timeout, or look where it stands (py-spy dump, gdb -p)")


def test_a_flaky_program_is_said_to_be_flaky(tmp_path: Path) -> None:
    (tmp_path / "flaky").write_text("#!/bin/sh\necho x >> seen\ntest $(wc -l < seen) -ne 2 && exit 3\nexit 0\n")
    (tmp_path / "flaky").chmod(0o755)
    found = document(tmp_path, "diagnose", "--device", "none", "--", "./flaky", expect=1)
    by_name = {part["name"]: part for part in found["explanations"]}
    assert by_name["hardware-or-chance"]["status"] == "supported"
    assert "differs from run to run: 2 of 3 failed" in by_name["hardware-or-chance"]["why"]
    assert "2 of 3 failed in runs alike: measure the rate first (cudadiag run --repeat 100)" in found["next_step"]


def test_a_program_that_passes_needs_no_diagnosis(tmp_path: Path) -> None:
    found = document(tmp_path, "diagnose", "--device", "none", "--", "true", expect=0)
    assert found["cause"] is None
    assert found["sureness"] == "the shape did not fail here (0 of 3 failed)"


@NO_GPU
def test_sanitize_without_a_device_says_what_is_missing(tmp_path: Path) -> None:
    done = call(tmp_path, "sanitize", "--", "true", expect=3)
    assert "compute-sanitizer needs a CUDA device" in done.stderr
    assert not (tmp_path / ".cudadiag").exists()
    done = call(tmp_path, "sanitize", "tree_flat", "--device", "emulator", "--observer", "racecheck", expect=3)
    assert "the emulated device checks memory accesses only" in done.stderr


@EMULATED
@pytest.mark.parametrize("command", ["diagnose", "sanitize"])
def test_a_case_whose_observer_is_not_to_be_had_is_not_judged_by_another(command: str, tmp_path: Path) -> None:
    done = call(tmp_path, command, "race", "--device", "emulator", expect=3)
    assert "judged under racecheck: the emulated device checks memory accesses only" in done.stderr
    assert not (tmp_path / ".cudadiag").exists()


@EMULATED
def test_a_shape_that_could_not_be_judged_supports_and_refutes_nothing(tmp_path: Path) -> None:
    words = ["--device", "emulator", "--shape", "streams=1,q_len=9,prefix=256", "--timeout", "0.01"]
    found = document(tmp_path, "diagnose", "verify_attn", *words, expect=3)
    assert with_status(found, "untested") == {part["name"] for part in found["explanations"]}
    assert found["sureness"].startswith("nothing is known: ")
    assert len(found["probes"]) == 1


def test_the_shape_of_a_diagnosis_is_taken_up_by_the_next_command(tmp_path: Path) -> None:
    words = ["crash_from", "--device", "none", "-P", "rows=1,16,64", "-P", "columns=16,256,512"]
    first = document(tmp_path, "diagnose", *words, expect=1)
    document(tmp_path, "diagnose", "crash_from", "--device", "none", "--shape", "rows=16,columns=512", expect=1)
    again = document(tmp_path, "diagnose", *words, expect=1)
    assert again["subject"]["origin"] == f"the first failing shape of the run {first['info']['run']}"
    assert len(again["probes"]) == 3


def test_a_program_that_fails_by_itself_is_shown_with_its_last_words_and_what_it_left(tmp_path: Path) -> None:
    script = "sleep 30 & echo 'no such tree' >&2; exit 3"
    done = call(tmp_path, "diagnose", "--device", "none", "--", "sh", "-c", script, expect=1)
    assert "      no such tree\n" in done.stdout
    assert "still ran when the program ended, and was ended by cudadiag: sleep" in done.stdout


def test_a_search_that_ran_every_shape_says_that_nothing_is_wrong(tmp_path: Path) -> None:
    words = ["--device", "none", "-P", "n=1..3", "--", "sh", "-c", "test {n} -gt 0"]
    assert call(tmp_path, "diagnose", *words, expect=0).stdout == "no failing shape was found under blocking\n"


def test_resume_takes_no_other_shape_and_a_parameter_is_named_once(tmp_path: Path) -> None:
    done = call(tmp_path, "diagnose", "--resume", "last", "--shape", "n=3", expect=2)
    assert "--resume takes the shape from the run" in done.stderr
    done = call(tmp_path, "diagnose", "-P", "n=1..8", "--shape", "n=3", "--", "true", expect=2)
    assert "--shape n=3: -P gives it too" in done.stderr


@pytest.mark.parametrize("text", ["streams", "streams=", "=1"])
def test_a_shape_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    done = call(tmp_path, "sanitize", "verify_attn", "--device", "none", "--shape", text, expect=2)
    assert "is not NAME=VALUE" in done.stderr


def test_half_a_shape_names_the_parameter_that_is_missing(tmp_path: Path) -> None:
    words = ["diagnose", "crash_from", "--device", "none", "--shape", "rows=16"]
    assert "no value for columns" in call(tmp_path, *words, expect=2).stderr


@EMULATED
def test_what_earlier_shapes_leave_behind_is_found_in_one_process(tmp_path: Path) -> None:
    found = document(tmp_path, "diagnose", "use_after_free", "--device", "emulator", expect=1)
    assert found["subject"]["sequence"] == [0, 1]
    assert found["cause"] == OOB
    assert with_status(found, "supported") == {OOB, "carried-over", "noticed-late"}
    why = {part["name"]: part["why"] for part in found["explanations"]}
    assert why["carried-over"] == "it passes alone and fails after 1 other: what they left"


def test_a_python_target_runs_as_it_is_even_where_the_emulated_device_is_named(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("def work(n):\n    if n > 3:\n        raise ValueError(n)\n")
    (tmp_path / "job.yaml").write_text("case: job\ntarget:\n  python: job.py:work\nsweep:\n  n: [3, 4]\n")
    words = ["diagnose", "job.yaml", "--device", "emulator", "--shape", "n=4"]
    found = document(tmp_path, *words, expect=1)
    assert with_status(found, "supported") == {"host-program"}
    why = next(part["why"] for part in found["explanations"] if part["name"] == "host-program")
    assert why.count("job.py:3") == 1
    assert "job.py:3: the traceback is in its stderr" in found["next_step"]
