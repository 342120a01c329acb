"""Children leave nothing behind, and one that dies unasked is never overlooked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from isolation_runs import PLUGIN, ROOT, run_pytest

WAIT_S = 30.0
SLEEPS = (
    "import os, pathlib, pytest, time\n"
    "here = pathlib.Path(__file__).parent\n"
    "@pytest.fixture\ndef tidy():\n    yield\n    (here / 'tidied').touch()\n"
    "def test_sleeps(tidy):\n    (here / 'pid').write_text(str(os.getpid()))\n    time.sleep(3600)\n"
)


def until(what: object, limit_s: float = WAIT_S) -> bool:
    """Whether `what()` came true in time."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        if what():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def sleeping(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A running pytest and the pid of its child, which sleeps in a test."""
    (folder / "test_sleeps.py").write_text(SLEEPS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "pytest", *PLUGIN, "--cuda-isolate=auto", "-p", "no:timeout"]
    pid = folder / "pid"
    started = subprocess.Popen(
        argv, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert until(lambda: pid.exists() and pid.read_text())
    return started, int(pid.read_text())


def test_ctrl_c_ends_the_child_and_its_fixtures(tmp_path: Path) -> None:
    started, child = sleeping(tmp_path)
    started.send_signal(signal.SIGINT)
    text = started.communicate(timeout=WAIT_S)[0].decode()
    assert started.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in text
    assert until(lambda: gone(child))
    assert (tmp_path / "tidied").exists()


def test_a_killed_parent_takes_its_child_along(tmp_path: Path) -> None:
    started, child = sleeping(tmp_path)
    started.kill()
    started.communicate(timeout=WAIT_S)
    assert until(lambda: gone(child))


def test_a_hung_test_takes_its_own_children_along(tmp_path: Path) -> None:
    (tmp_path / "test_hangs.py").write_text(
        "import pathlib, subprocess, time\ndef test_hangs():\n"
        "    p = subprocess.Popen(['sleep', '3600'])\n"
        "    pathlib.Path(__file__).with_name('pid').write_text(str(p.pid))\n    time.sleep(3600)\n"
    )
    run = run_pytest(tmp_path, "--cuda-timeout=2")
    assert run.outcomes == {"test_hangs": "failed"}
    assert until(lambda: gone(int((tmp_path / "pid").read_text())))


def test_a_child_that_dies_at_its_end_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_end.py").write_text("import atexit, os\ndef test_a(): atexit.register(os.abort)\n")
    run = run_pytest(tmp_path)
    assert run.outcomes == {"test_a": "passed"}
    assert run.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "a test process died of signal 6 at its end, after test_end.py::test_a" in run.text


def test_no_folder_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "test_few.py").write_text("import os\ndef test_a(): pass\ndef test_b(): os.abort()\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    run = run_pytest(tmp_path, env={"TMPDIR": str(scratch)})
    assert run.outcomes == {"test_a": "passed", "test_b": "failed"}
    assert [path.name for path in scratch.iterdir() if path.name.startswith("cudadiag")] == []
