"""Bad input, bad places, full disks: exit 2 or 3 with a message that says what to change, never a traceback."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import COMMAND, Cli, environment

CASE = """\
case: demo
target:
  command: ["true", "{n}"]
sweep:
  n: [1, 2]
"""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("case: demo\ntarget: {command: [true\n", "broken.yaml:3:"),
        ("case: demo\ntarget: {command: ['true']}\nsweeps: {n: [1]}\n", "broken.yaml:3:1: "),
        ("case: demo\ntarget: {command: ['true']}\nsweep: {n: [1, 1]}\n", "broken.yaml:3:"),
        ("case: demo\ntarget: {command: ['true', '{m}']}\nsweep: {n: [1]}\n", "broken.yaml:2:"),
        ("case: demo\ntarget: {command: ['true']}\nsweep: {n: [no]}\n", "broken.yaml:3:"),
        ("\x00\x01", "broken.yaml:1:"),
        ("", "broken.yaml:1:"),
    ],
)
def test_a_wrong_case_file_is_told_with_its_line_and_column(cli: Cli, tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "broken.yaml").write_text(text)
    done = cli("bisect", "broken.yaml", expect=2)
    assert place in done.err
    assert not done.out
    assert not (tmp_path / ".cudadiag").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bisect",), "nothing to run"),
        (("bisect", "no_such_case"), "no case 'no_such_case'"),
        (("bisect", "missing.yaml"), "no case file missing.yaml"),
        (("bisect", "demo.yaml", "--", "true"), "take one"),
        (("bisect", "demo.yaml", "-P", "m=1"), "-P m"),
        (("bisect", "demo.yaml", "-P", "n"), "-P n"),
        (("bisect", "--", "echo", "{"), None),
        (("bisect", "-P", "n=1", "--", "echo", "{"), "the command"),
        (("bisect", "-P", "n=1", "--"), "no command"),
        (("bisect", "--observer", "wishful", "--", "true"), "wishful"),
        (("bisect", "--timeout", "0", "--", "true"), "--timeout"),
        (("bisect", "--device", "gpu", "--", "true"), "--device gpu"),
        (("run", "--jobs", "0", "--", "true"), "--jobs"),
        (("explain", "last"), "no run"),
        (("cases", "no_such_case"), "no_such_case"),
        (("frobnicate",), "No such command"),
        (("doctor", "--", "true"), "takes no program"),
        (("init", "a b"), "a b"),
    ],
)
def test_wrong_use_says_what_is_wrong(cli: Cli, tmp_path: Path, words: tuple[str, ...], message: str | None) -> None:
    (tmp_path / "demo.yaml").write_text(CASE)
    done = cli(*words, expect=2 if message else 0)
    assert (message or "") in done.err


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="a GPU is here")
def test_a_gpu_that_is_not_there_is_undecided(cli: Cli) -> None:
    assert "no NVIDIA driver" in cli("run", "--device", "cuda:0", "--", "true", expect=3).err


def test_a_kernel_cannot_run_on_no_device(cli: Cli) -> None:
    done = cli(
        "run", "verify_attn", "--device", "none", "-P", "streams=1", "-P", "q_len=9", "-P", "prefix=256", expect=2
    )
    assert "--device none" in done.err


def test_a_store_that_cannot_be_made_is_undecided_and_names_the_option(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = cli("run", "--store", "file/x", "--", "true", expect=3)
    assert "--store" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_undecided(cli: Cli, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "cannot make the run folder" in cli("run", "--", "true", expect=3).err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_an_output_that_cannot_be_written_is_undecided(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "cases", "--json"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 3
    assert b"cannot write the output: No space left" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_a_reader_that_leaves_ends_us_quietly(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as pipe:
        done = subprocess.run(
            [*COMMAND, "schema", "bisect"], cwd=tmp_path, stdout=pipe, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 141
    assert done.stderr == b""


def limited() -> None:
    """Files of this child and of its children may grow to 16 KB: what a full disk looks like."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 10, 16 << 10))


def test_a_disk_that_fills_up_keeps_the_finished_probes_and_says_how_to_go_on(tmp_path: Path, cli: Cli) -> None:
    words = ["sweep", "-P", "n=1..120", "--", "true", "{n}"]
    done = subprocess.run(
        [*COMMAND, *words], cwd=tmp_path, env=environment(), capture_output=True, check=False, preexec_fn=limited
    )
    assert done.returncode == 3, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"--resume" in done.stderr
    assert b"File too large" in done.stderr
    kept = cli("explain", "--json").document["probes"]
    assert len(kept) > 3
    resumed = cli("sweep", "--resume", "last", "--json", expect=0).document
    assert [p["shape"]["n"] for p in resumed["probes"]] == list(range(1, 121))
    assert resumed["probes"][: len(kept)] == kept


def test_our_own_bug_ends_with_70_and_what_to_report(tmp_path: Path) -> None:
    script = (
        "import sys, cudadiag.cli.main as m, cudadiag.session.plans as p\n"
        "def broken(self, history): raise ZeroDivisionError('planted')\n"
        "p.OneShape.next = broken\n"
        "sys.exit(m.run_cli(['run', '--', 'true']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 70
    assert b"a bug of cudadiag's own: ZeroDivisionError: planted" in done.stderr
    assert b"Please report it" in done.stderr
    assert b"in broken" in done.stderr


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e300", "soon"])
def test_a_time_limit_is_a_finite_time(cli: Cli, tmp_path: Path, value: str) -> None:
    done = cli("bisect", "--timeout", value, "-P", "n=1", "--", "true", expect=2)
    assert "--timeout" in done.err
    assert value in done.err
    assert "--timeout" in cli("gate", "--timeout", value, "--device", "none", "crash_from", expect=2).err
    assert not (tmp_path / ".cudadiag").exists()


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_closed_stream_is_no_bug(tmp_path: Path, stream: str) -> None:
    line = f'exec "$@" {stream}>&-'
    words = ["sh", "-c", line, "sh", *COMMAND, "sweep", "-P", "n=1,2", "--", "sh", "-c", "test {n} = 1"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, check=False, timeout=60)
    assert done.returncode == 1


def test_a_misspelt_command_gets_a_suggestion(cli: Cli) -> None:
    assert "No such command 'bisct': did you mean 'bisect'?" in cli("bisct", expect=2).err
    assert "`cudadiag --help` lists them" in cli("zzzzzz", expect=2).err


def test_a_condition_that_fails_names_the_option(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "demo.yaml").write_text(CASE)
    for words in (("-P", "n=1", "--", "true"), ("demo.yaml",)):
        own = [words[0]] if words[0] == "demo.yaml" else list(words[:2])
        done = cli("sweep", *own, "--where", "1 // 0 == n", *words[len(own) :], expect=2)
        assert "cudadiag: --where: division by zero at n=1" in done.err


def test_a_folder_that_is_named_like_a_case_is_told_as_such(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "demo.yaml").mkdir()
    assert "no case file demo.yaml: it is there, but is no file" in cli("sweep", "demo.yaml", expect=2).err


def test_lookup_reads_a_pasted_line_of_the_kernel_log(cli: Cli) -> None:
    line = "[ 12.3] NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=bench"
    assert cli("lookup", line, expect=0).out.startswith("Xid 31: MMU fault")
    line = "RuntimeError: CUDA error: an illegal memory access was encountered (rank 3)"
    assert cli("lookup", line, expect=0).out.startswith("700: cudaErrorIllegalAddress")
    assert "Xid 31" in cli("lookup", "blorp", expect=2).err


def test_a_run_that_a_full_disk_ends_says_what_it_has(tmp_path: Path) -> None:
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

    words = ("sweep", "-P", "n=1..30:+1", "--", "true", "{n}")
    done = subprocess.run(
        [*COMMAND, *words], cwd=tmp_path, env=environment(), preexec_fn=small_files, capture_output=True, timeout=60
    )
    err = done.stderr.decode()
    assert done.returncode == 3, err
    assert "finished probe" in err
    assert "cudadiag: ended early: " in err
    assert "`cudadiag explain " in err
    assert "all earlier probes are kept" in err


@pytest.mark.parametrize("query", ["0", "error 0", "cudaSuccess", "CUDA_SUCCESS", "no error"])
def test_lookup_knows_success(cli: Cli, query: str) -> None:
    assert cli("lookup", query, expect=0).out.startswith("0: cudaSuccess / CUDA_SUCCESS")
    assert [row["name"] for row in cli("lookup", query, "--json", expect=0).document["entries"]] == ["cudaSuccess"]
