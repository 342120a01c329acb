"""How a probe's program ended is told as it was: exit codes, signals, time limits, interrupts, what cannot be
started."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from harness_probing import Run, stderr_of, stdout_of


def fatal_signals() -> list[int]:
    """Every signal whose default action ends a process."""
    harmless = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
    stopping = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
    return sorted(int(number) for number in signal.valid_signals() if number not in harmless | stopping)


@pytest.mark.parametrize("code", [0, 1, 2, 7, 77, 126, 127, 128, 134, 139, 255])
def test_exit_code_is_told_exactly(run: Run, code: int) -> None:
    facts = run("sh", "-c", f"exit {code}")
    assert (facts.exit_code, facts.signal, facts.killed_by_us) == (code, None, None)


@pytest.mark.parametrize("number", fatal_signals())
def test_death_by_every_signal_is_told_as_a_signal(run_python: Run, number: int) -> None:
    source = (
        "import os, signal, sys\nn = int(sys.argv[1])\ntry: signal.signal(n, signal.SIG_DFL)\nexcept OSError: pass\n"
    )
    facts = run_python(source + "os.kill(os.getpid(), n)\nimport time; time.sleep(5)", str(number))
    assert (facts.exit_code, facts.signal, facts.killed_by_us, facts.timed_out) == (None, number, None, False)


def test_output_before_an_abort_is_kept(run_python: Run) -> None:
    facts = run_python("import os\nprint('last words', end='')\nos.abort()")
    assert facts.signal == signal.SIGABRT
    assert stdout_of(facts) == b"last words"
    assert b"Fatal Python error: Aborted" in stderr_of(facts), "faulthandler is on for Python programs"


def test_stdout_of_a_c_program_is_not_lost_at_an_abort(run: Run) -> None:
    """`awk` writes through stdio; a block-buffered stdout would be lost when it is killed."""
    facts = run("awk", 'BEGIN { print "row 1"; system("kill -9 $PPID") }')
    if facts.launch["notes"]:
        pytest.skip(str(facts.launch["notes"]))
    assert facts.signal == signal.SIGKILL
    assert stdout_of(facts) == b"row 1\n"


def test_a_hang_is_ended_at_the_time_limit(run: Run) -> None:
    begun = time.monotonic()
    facts = run("sleep", "60", limits={"timeout_s": 0.4})
    assert facts.timed_out
    assert facts.signal == signal.SIGTERM
    assert facts.killed_by_us == "still running at the time limit of 0.4 s"
    assert 0.4 <= facts.wall_s < 2
    assert time.monotonic() - begun < 3


def test_a_child_that_ignores_sigterm_is_killed(run_python: Run) -> None:
    source = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready')\nwhile True: time.sleep(1)"
    facts = run_python(source, limits={"timeout_s": 0.5, "grace_s": 0.3})
    assert (facts.signal, facts.timed_out, facts.survivors) == (signal.SIGKILL, True, ())
    assert stdout_of(facts) == b"ready\n"


def test_a_child_that_cleans_up_at_sigterm_may_finish(run_python: Run) -> None:
    source = "import signal, sys, time\nsignal.signal(15, lambda *_: (print('saved'), sys.exit(4)))\ntime.sleep(60)"
    facts = run_python(source, limits={"timeout_s": 0.5, "grace_s": 5})
    assert (facts.exit_code, facts.timed_out) == (4, True)
    assert stdout_of(facts) == b"saved\n"


def test_a_stopped_child_is_ended_too(run: Run) -> None:
    facts = run("sh", "-c", "kill -STOP $$", limits={"timeout_s": 0.4, "grace_s": 0.3})
    assert facts.timed_out
    assert facts.signal == signal.SIGKILL


def test_an_interrupt_ends_the_probe_and_says_so(run: Run) -> None:
    begun = time.monotonic()
    facts = run("sleep", "60", cancelled=lambda: time.monotonic() - begun > 0.3)
    assert (facts.killed_by_us, facts.timed_out, facts.signal) == ("interrupted", False, signal.SIGTERM)
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["no-such-program-here"], "no-such-program-here: No such file or directory"),
        (["/"], "/: Permission denied"),
        (["true", "null\0byte"], "embedded null byte"),
    ],
)
def test_what_cannot_be_started_says_why(run: Run, argv: list[str], said: str) -> None:
    facts = run(*argv)
    assert facts.start_error == said
    assert (facts.exit_code, facts.signal) == (None, None)


def test_a_missing_working_folder_is_named(run: Run) -> None:
    facts = run("true", cwd="/no/such/folder")
    assert facts.start_error == "/no/such/folder: No such file or directory"


def test_stdin_is_empty(run: Run) -> None:
    facts = run("sh", "-c", "cat; echo end")
    assert (facts.exit_code, stdout_of(facts)) == (0, b"end\n")


def test_the_program_has_a_session_and_group_of_its_own(run_python: Run) -> None:
    facts = run_python("import os\nprint(os.getsid(0) == os.getpgid(0) == os.getpid())")
    assert stdout_of(facts) == b"True\n"


def test_dangerous_variables_are_scrubbed(run_python: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_WAITS_ON_EXCEPTION", "1")
    monkeypatch.setenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1")
    facts = run_python(
        "import os\nprint(sorted(k for k in os.environ if k.startswith('CUDA_')))",
        env={"CUDA_COREDUMP_FILE": "/tmp/x", "CUDA_LAUNCH_BLOCKING": "1"},
    )
    assert stdout_of(facts) == b"['CUDA_LOG_FILE']\n"
    assert {"CUDA_DEVICE_WAITS_ON_EXCEPTION", "CUDA_LAUNCH_BLOCKING"} <= set(facts.launch["unset"])


def test_the_case_environment_reaches_the_program(run: Run) -> None:
    facts = run("sh", "-c", "echo $FLAVOUR $PYTHONUNBUFFERED", env={"FLAVOUR": "mild", "PYTHONUNBUFFERED": "0"})
    assert stdout_of(facts) == b"mild 0\n"


def test_peak_host_memory_is_that_of_the_program(run_python: Run) -> None:
    facts = run_python("block = b'x' * (300 << 20)\nimport time; time.sleep(0.3)")
    assert facts.peak_host_bytes is not None
    assert 300 << 20 < facts.peak_host_bytes < 400 << 20


def test_a_memory_limit_stops_the_program_itself(run_python: Run) -> None:
    source = "import time; time.sleep(0.2)\nblock = bytearray(3 << 30)"
    facts = run_python(source, limits={"memory_bytes": 1 << 30})
    assert facts.exit_code == 1
    assert b"MemoryError" in stderr_of(facts)


def test_no_core_file_is_left_in_the_working_folder(run_python: Run, tmp_path: Any) -> None:
    facts = run_python("import os; os.abort()", cwd=str(tmp_path))
    assert facts.signal == signal.SIGABRT
    assert not [name for name in os.listdir(tmp_path) if "core" in name]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target": {"kind": "wizard"}}, "unknown kind of target: 'wizard'"),
        ({"target": {"argv": []}}, "the command is empty"),
        ({"observer": "valgrind"}, "unknown observer: 'valgrind'; known are plain, "),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(run: Run, changes: dict[str, Any], said: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ValueError, match=said):
        run("true", **changes)
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_descriptor_is_left_open(run: Run) -> None:
    run("true")  # the guardian and the modules are there now
    before = sorted(os.listdir("/proc/self/fd"))
    run("true")
    run("no-such-program")
    run("sh", "-c", "sleep 5 &", limits={"grace_s": 0.1})
    run("sleep", "5", limits={"timeout_s": 0.1})
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_ctrl_c_in_the_probes_own_thread_leaves_no_process(run_python: Run) -> None:
    def interrupt() -> bool:
        raise KeyboardInterrupt

    mark = f"sleeper-{os.getpid()}"
    with pytest.raises(KeyboardInterrupt):
        run_python("import time; time.sleep(60)", mark, cancelled=interrupt)
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and mark in command_line(pid)]
    assert left == []


def command_line(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""
