"""Ctrl-C, SIGTERM, SIGKILL: no process is left, no finished probe is lost, --resume ends with the same answer."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import COMMAND, Cli, environment, living

from cudadiag.store.ledger import read_ledger

LIMIT_S = 20.0


@pytest.fixture
def mark() -> Iterator[str]:
    """A word that all children of this test carry in their command line; none of them may outlive it."""
    word = f"mark{uuid.uuid4().hex[:12]}"
    yield word
    for process in living(word):
        process.kill()


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def ledger_lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob(".cudadiag/runs/*/ledger.jsonl"))


def wait_for(condition: object, what: str) -> None:
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if callable(condition) and condition():
            return
        time.sleep(0.02)
    pytest.fail(f"never came: {what}")


def slow_program(folder: Path, mark: str) -> tuple[str, ...]:
    """Fails from 6 on; each shape sleeps a little, shape 4 until the file `go` is there."""
    program = folder / "slow.sh"
    program.write_text(
        "#!/bin/sh\n"
        f": {mark}\n"
        'if [ "$1" = 4 ]; then while [ ! -e go ]; do sleep 0.05; done; fi\n'
        'if [ "$1" -ge 6 ]; then kill -ABRT $$; fi\n'
    )
    program.chmod(0o755)
    return ("bisect", "-P", "n=1..8", "--strategy", "linear", "--timeout", "60", "--", "./slow.sh", "{n}", mark)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all_processes_keeps_all_probes_and_prints_what_is_known(
    tmp_path: Path, mark: str, number: signal.Signals, code: int
) -> None:
    with start(tmp_path, *slow_program(tmp_path, mark)) as process:
        wait_for(lambda: ledger_lines(tmp_path) == 4, "three finished probes")
        wait_for(lambda: living(mark), "the fourth probe")
        process.send_signal(number)
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code
    assert not living(mark)
    assert b"--resume" in err
    assert b"3 finished probes are kept" in err
    assert out.startswith(b"first failing shape")
    (path,) = tmp_path.glob(".cudadiag/runs/*/ledger.jsonl")
    ledger = read_ledger(path)
    assert [p.shape["n"] for p in ledger.probes] == [1, 2, 3]
    assert ledger.notes[-1].kind == "interrupted"
    assert ledger.notes[-1].document["signal"] == number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_resumed_run_ends_with_the_answer_of_an_undisturbed_one(
    tmp_path: Path, mark: str, cli: Cli, number: signal.Signals
) -> None:
    with start(tmp_path, *slow_program(tmp_path, mark)) as process:
        wait_for(lambda: ledger_lines(tmp_path) == 4, "three finished probes")
        wait_for(lambda: living(mark), "the fourth probe")
        process.send_signal(number)
        process.communicate(timeout=LIMIT_S)
    wait_for(lambda: not living(mark), "the end of the probe that was under way")
    (tmp_path / "go").touch()
    resumed = cli("bisect", "--resume", "last", "--json", expect=1).document
    undisturbed = cli(*slow_program(tmp_path, mark)[:1], "--json", *slow_program(tmp_path, mark)[1:], expect=1).document
    assert resumed["answer"] == undisturbed["answer"]
    assert resumed["answer"]["first_shape"] == {"n": 6}
    assert [p["shape"] for p in resumed["probes"]] == [p["shape"] for p in undisturbed["probes"]]


def test_a_second_ctrl_c_ends_at_once_and_leaves_no_process(tmp_path: Path, mark: str) -> None:
    program = tmp_path / "stubborn.py"
    program.write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(300)\n"
    )
    with start(tmp_path, "run", "--timeout", "200", "--", "python3", "stubborn.py", mark) as process:
        wait_for(lambda: list(tmp_path.glob(".cudadiag/runs/*/probes/0001/stdout")), "the probe's folder")
        wait_for(
            lambda: any(p.stat().st_size for p in tmp_path.glob(".cudadiag/runs/*/probes/0001/stdout")), "its word"
        )
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert time.monotonic() - began < 1.5  # the ladder alone waits 2 s between SIGTERM and SIGKILL
    wait_for(lambda: not living(mark), "the end of the stubborn program")


def test_ctrl_c_at_the_terminal_reaches_probes_only_through_us(tmp_path: Path, mark: str) -> None:
    """The whole foreground group gets SIGINT; a probe is in a group of its own and is ended by us, not recorded."""
    with start(tmp_path, *slow_program(tmp_path, mark)) as process:
        wait_for(lambda: ledger_lines(tmp_path) == 4, "three finished probes")
        wait_for(lambda: living(mark), "the fourth probe")
        child = psutil.Process(living(mark)[-1].pid)
        assert os.getpgid(child.pid) != os.getpgid(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert not living(mark)
