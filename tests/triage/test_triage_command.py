"""The command itself, as a child process: inputs, exit codes, the document against its schema, groups, history."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from triage_fixtures import log_fixtures

from cudadiag.cli.main import run_cli
from cudadiag.report.schemas import json_schema

LOGS = {fixture.name: fixture.data for fixture in log_fixtures()}
FAULT, REFUSED, CLEAN = LOGS["ggml"], LOGS["client-refused"], LOGS["clean"]


def triage(folder: Path, *words: str, stdin: bytes = b"", command: str = "triage") -> tuple[int, str, str]:
    """One call of the command line in this process: exit code, stdout, stderr."""
    out, err, standard = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_cli([command, *words])
    finally:
        sys.stdin = standard
    return code, out.getvalue(), err.getvalue()


def child(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """The same in a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k not in ("CUDADIAG_STORE", "FORCE_COLOR")}
    command = [sys.executable, "-m", "cudadiag", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=60, env=environment)


def document(folder: Path, *words: str, stdin: bytes = b"") -> dict[str, Any]:
    code, out, err = triage(folder, *words, "--json", stdin=stdin)
    found: dict[str, Any] = json.loads(out)
    jsonschema.validate(found, json_schema("triage"))
    assert found["exit_code"] == code, err
    return found


def test_the_command_as_a_process(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(FAULT)
    done = child(tmp_path, "triage", "a.log", "--json")
    assert (done.returncode, done.stderr) == (1, b"")
    assert json.loads(done.stdout)["fault"]["number"] == 700


def test_a_fault_ends_with_1_and_is_told_in_the_first_lines(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(FAULT)
    code, out, _ = triage(tmp_path, "a.log")
    assert code == 1
    assert out.splitlines()[0] == "fault: illegal-address, cudaErrorIllegalAddress (700)"
    assert "by cudaStreamSynchronize" in out
    assert "compute-sanitizer" in out


@pytest.mark.parametrize(("data", "code"), [(REFUSED, 3), (CLEAN, 0), (b"", 0)])
def test_exit_codes_of_what_names_no_fault(tmp_path: Path, data: bytes, code: int) -> None:
    assert triage(tmp_path, "-", stdin=data)[0] == code


def test_wrong_use_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words in (("missing.log",), ("empty",), ("--each", "--together", "x"), ("--case", "no_such_case", "-")):
        code, _, err = triage(tmp_path, *words)
        assert code == 2, words
        assert err.startswith(("cudadiag: ", "no case", "Usage:")) or "no_such_case" in err, err


def test_stdin_is_read_where_no_file_is_given(tmp_path: Path) -> None:
    assert document(tmp_path, stdin=FAULT)["fault"]["number"] == 700


def test_a_packed_log(tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(FAULT))
    assert document(tmp_path, "a.log.gz")["fault"]["noticed"]["call"] == "cudaStreamSynchronize"


def test_several_files_are_one_incident(tmp_path: Path) -> None:
    (tmp_path / "client.log").write_bytes(REFUSED)
    (tmp_path / "server.log").write_bytes(FAULT)
    found = document(tmp_path, "client.log", "server.log")
    assert found["verdict"] == "fault"
    assert found["log"] == "server.log"
    assert {row["log"] for row in found["folded"] if row["relation"] == "cascade"} == {"client.log", "server.log"}
    assert found["clusters"] == []


def test_a_folder_is_grouped_by_signature(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, data in {
        "a": FAULT,
        "b": FAULT + b"\n" * 50,
        "c": LOGS["torch-misaligned"],
        "d": REFUSED,
        "e": CLEAN,
    }.items():
        (folder / f"{name}.log").write_bytes(data)
    found = document(tmp_path, "logs")
    groups = [(row["count"], row["verdict"], Path(row["face"]).name) for row in found["clusters"]]
    assert groups == [
        (2, "fault", "a.log"), (1, "fault", "c.log"), (1, "cause-not-in-log", "d.log"), (1, "nothing-wrong", "e.log"),
    ]  # fmt: skip
    assert all(row["severity_reason"] and row["oldest"] <= row["newest"] for row in found["clusters"])
    assert found["verdict"] == "fault"
    assert len(found["logs"]) == 5
    assert found["clusters"][1]["notes"] == [
        "not v1/fault/memory-access/-: kind misaligned-address against illegal-address"
    ]
    assert found["clusters"][0]["notes"] == [
        "no log knows the kernel: these may be several bugs (memcheck or a core dump tells)"
    ]


def test_streams_of_one_run_belong_together(tmp_path: Path) -> None:
    (tmp_path / "bench_out.txt").write_bytes(CLEAN)
    (tmp_path / "bench_err.txt").write_bytes(FAULT)
    (tmp_path / "other.txt").write_bytes(LOGS["file"])
    assert [row["verdict"] for row in document(tmp_path, ".", "--each")["logs"]] == ["fault", "not-a-crash"]
    assert len(document(tmp_path, ".", "--together")["logs"]) == 1


def test_people_merge_signatures(tmp_path: Path) -> None:
    for name in ("misaligned-record", "memcheck-old-wording-commas"):
        (tmp_path / f"{name}.log").write_bytes(LOGS[name])
    keys = [row["key"] for row in document(tmp_path, ".")["logs"]]
    assert len(document(tmp_path, ".")["clusters"]) == 2
    store = tmp_path / ".cudadiag"
    store.mkdir()
    merge = "version: 1\nmerge:\n  - name: vector loads\n    signatures:\n" + "".join(
        f"      - '{key}'\n" for key in keys
    )
    (store / "signatures.yaml").write_text(merge)
    assert [row["group"] for row in document(tmp_path, ".")["clusters"]] == ["vector loads"]


BENCH = b"""cuda an illegal memory access was encountered @38
== verify_attn ==
streams  q_len  prefix      us/call
     1      9     256        539.3
     1     33    4096      23186.3
"""


def test_the_shape_after_the_last_finished_row(tmp_path: Path) -> None:
    (tmp_path / "bench.txt").write_bytes(BENCH)
    table = document(tmp_path, "--case", "verify_attn", "bench.txt")["table"]
    assert table["last_row"]["prefix"] == 4096
    assert table["next_shape"] == {"streams": 4, "q_len": 9, "prefix": 256}
    assert document(tmp_path, "bench.txt")["table"]["next_shape"] is None


def test_a_row_that_is_no_shape_of_the_case_is_said(tmp_path: Path) -> None:
    (tmp_path / "bench.txt").write_bytes(BENCH.replace(b"33    4096", b"34    4096"))
    table = document(tmp_path, "--case", "verify_attn", "bench.txt")["table"]
    assert table["next_shape"] is None
    assert "no shape of the sweep" in table["note"]


def test_every_verdict_has_something_to_do_next(tmp_path: Path) -> None:
    for name in (
        "ggml",
        "client-refused",
        "port",
        "xid79",
        "torch-close",
        "nccl-timeout-alone",
        "oomkilled",
        "segfault-plain",
    ):
        steps = document(tmp_path, stdin=LOGS[name])["next"]
        assert steps, name
        assert all(step["do"] and step["why"] and step["command"] and step["source"] for step in steps), name


def test_history_counts_recorded_logs_and_own_runs(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(LOGS["memcheck-new"])
    assert triage(tmp_path, "--record", "a.log")[0] == 1
    run = child(tmp_path, "run", "-P", "n=3", "--", "sh", "-c", "echo cuda misaligned address; exit 2")
    assert run.returncode == 1, run.stderr
    code, out, _ = triage(tmp_path, "--json", command="history")
    groups = {row["group"]: row for row in json.loads(out)["groups"]}
    assert code == 0
    assert groups["v1/fault/memory-access/verify_attn"]["count"] == 1
    assert [row["verdict"] for row in groups.values()] == ["fault", "fault"]
    jsonschema.validate(json.loads(out), json_schema("history"))
    rebuilt = triage(tmp_path, "--rebuild", "--json", command="history")[1]
    assert json.loads(rebuilt) == json.loads(out)
    (tmp_path / ".cudadiag" / "index.db").write_bytes(b"not a database" * 100)
    assert json.loads(triage(tmp_path, "--json", command="history")[1]) == json.loads(out)
    assert "verify_attn" in triage(tmp_path, "verify_attn", command="history")[1]
    assert triage(tmp_path, "no_such_kernel", command="history")[0] == 2


def test_an_own_run_is_read_as_logs(tmp_path: Path) -> None:
    child(tmp_path, "sweep", "-P", "n=1,2,3", "--", "sh", "-c", "test {n} != 2 || exit 3")
    found = document(tmp_path, ".cudadiag")
    assert [(row["verdict"], row["kind"]) for row in found["logs"]] == [("host", "host-exit")]
    assert "n=2" in found["logs"][0]["name"]


def test_a_bad_ledger_below_a_folder_is_left_out_and_told(tmp_path: Path) -> None:
    run = tmp_path / "d" / ".cudadiag" / "runs" / "x"
    run.mkdir(parents=True)
    (run / "ledger.jsonl").touch()
    code, out, err = triage(tmp_path, "d")
    assert (code, out) == (3, "")
    assert "nothing could be read" in err
    (tmp_path / "d" / "a.log").write_bytes(FAULT)
    code, out, err = triage(tmp_path, "d")
    assert code == 1
    assert "cudaErrorIllegalAddress" in out
    assert err.startswith("cudadiag: left out: ")
    assert "ledger.jsonl" in err
    assert triage(tmp_path, "d/.cudadiag/runs/x/ledger.jsonl")[0] == 2, "what the user names is not left out"


def test_what_is_clearly_no_log_is_left_out_with_counts(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_bytes(FAULT)
    (folder / "kernel.cu").write_bytes(FAULT)
    (folder / "bench").write_bytes(Path(sys.executable).resolve().read_bytes()[:8192])
    (folder / "core.1").write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\4\0" + bytes(100))
    (folder / "data").write_bytes(bytes(range(256)) * 16)
    (folder / "utf16").write_bytes(FAULT.decode().encode("utf-16"))
    (folder / "rotated").write_bytes(bytes(5000) + FAULT)
    (folder / "b.log.gz").write_bytes(gzip.compress(FAULT))
    code, out, err = triage(tmp_path, "logs", "--json")
    names = sorted(Path(row["name"]).name for row in json.loads(out)["logs"])
    assert code == 1
    assert names == ["a.log", "b.log.gz", "core.1", "rotated", "utf16"]
    start, _, kinds = err.strip().partition("no logs: ")
    assert start == "cudadiag: left out as "
    assert sorted(kinds.split(", ")) == ["1 binary file", "1 executable", "1 source file"]
    assert triage(tmp_path, "logs/kernel.cu")[0] == 1, "what the user names is read"


def test_a_sign_of_life_every_couple_of_seconds() -> None:
    from cudadiag.report.ticking import ticking

    err, enough = io.StringIO(), threading.Event()
    count = iter(range(100))

    def words() -> str:
        number = next(count)
        if number == 2:
            enough.set()
        return f"step {number}"

    with contextlib.redirect_stderr(err):
        with ticking(words, 0.01):
            assert enough.wait(10)
        told = err.getvalue()
    assert told.startswith("cudadiag: step 0\ncudadiag: step 1\ncudadiag: step 2\n")
    assert "\x1b" not in told
