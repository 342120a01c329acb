"""Observers: what each sets, how it wraps; compute-sanitizer's options follow what the tool at hand knows."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness_probing import Run, stderr_of, stdout_of

from harness import sanitizer
from harness.coredump import CoreWatch
from harness.launcher import run_probe
from harness.observers import OBSERVERS, SCRUBBED
from harness.records import Limits, ProbeRequest

SHOW = "import os\nfor k in sorted(os.environ):\n    if k.startswith(('CUDA_', 'NV_')): print(k, os.environ[k])"


OLD_HELP = """NVIDIA (R) Compute Sanitizer
Version 2025.2.0.0 (build 1)
  -h [ --help ]            Produce this help message.
  --tool arg (=memcheck)   Set the tool to use.
  --xml                    XML
  --save arg               Save
  --log-file arg           Log
  --print-limit arg (=100) Limit
  --padding arg (=0)       Padding
"""


def shown(run: Run, observer: str) -> dict[str, str]:
    facts = run(sys.executable, "-c", SHOW, observer=observer)
    return dict(line.split(" ", 1) for line in stdout_of(facts).decode().splitlines())


def test_the_table_is_the_one_of_the_design() -> None:
    assert list(OBSERVERS) == ["plain", "blocking", "memcheck", "racecheck", "initcheck", "synccheck", "coredump"]
    for row in OBSERVERS.values():
        assert not (row.core and row.tool), "a core dump and a sanitizer never go together"
        assert set(row.environment) <= set(SCRUBBED), "what an observer sets is never inherited by another"


def test_plain_and_blocking(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("CUDA_", "NV_"))]:  # images of NVIDIA's set many
        monkeypatch.delenv(name)
    assert set(shown(run, "plain")) == {"CUDA_LOG_FILE"}
    blocking = shown(run, "blocking")
    assert blocking.pop("CUDA_LAUNCH_BLOCKING") == "1"
    assert set(blocking) == {"CUDA_LOG_FILE"}


def test_coredump_sets_small_files_in_the_probes_folder(run: Run) -> None:
    seen = shown(run, "coredump")
    folder = Path(seen["CUDA_LOG_FILE"]).parent
    assert Path(seen["CUDA_COREDUMP_FILE"]) == folder / "core_%p.nvcudmp"
    assert Path(seen["CUDA_COREDUMP_PIPE"]).parent == folder
    assert "skip_global_memory" in seen["CUDA_COREDUMP_GENERATION_FLAGS"]
    assert "skip_abort" not in seen["CUDA_COREDUMP_GENERATION_FLAGS"]
    assert seen["CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] == seen["CUDA_ENABLE_USER_TRIGGERED_COREDUMP"] == "1"
    assert "CUDA_LAUNCH_BLOCKING" not in seen


def test_the_driver_log_is_a_fact_even_when_empty(run: Run) -> None:
    facts = run("sh", "-c", 'echo "[E] Returning 700" >> "$CUDA_LOG_FILE"', observer="blocking")
    assert facts.driver_log is not None
    assert Path(facts.driver_log).read_text() == "[E] Returning 700\n"
    assert Path(run("true", observer="plain").driver_log or "/missing").read_text() == ""


def test_the_emulator_is_its_own_checker(run: Run) -> None:
    facts = run("true", observer="memcheck", device="emulator")
    assert (facts.launch["argv"], facts.sanitizer_log) == (["true"], None)


@pytest.fixture
def real_tool() -> sanitizer.Tool:
    try:
        return sanitizer.find()
    except sanitizer.ToolMissing as problem:
        pytest.skip(str(problem))


def test_the_real_tools_help_is_understood(real_tool: sanitizer.Tool) -> None:
    assert {"tool", "xml", "save", "log-file", "print-limit", "error-exitcode", "port"} <= real_tool.options
    assert "h" not in real_tool.options
    assert real_tool.version[0].isdigit()


@pytest.fixture
def working_tool(real_tool: sanitizer.Tool) -> sanitizer.Tool:
    """The real tool where it can start programs at all; without a driver its injected library does not load."""
    trial = [real_tool.path, "--require-cuda-init", "no", "--log-file", os.devnull, "echo", "started"]
    if b"started" not in subprocess.run(trial, capture_output=True, check=False).stdout:
        pytest.skip(f"{real_tool.path} cannot start a program here (no NVIDIA driver)")
    return real_tool


@pytest.mark.parametrize(("ending", "expected"), [("exit 7", {"exit_code": 7}), ("kill -6 $$", {"signal": 6})])
def test_a_programs_own_end_is_told_from_inside_the_real_tool(
    run: Run, working_tool: sanitizer.Tool, ending: str, expected: dict[str, int]
) -> None:
    """A program that never reaches CUDA: the tool says so in its log, and what it exits with means nothing."""
    facts = run("sh", "-c", f"echo out; {ending}", observer="memcheck")
    assert facts.inner_exit is not None
    assert {key: facts.inner_exit[key] for key in expected} == expected
    assert stdout_of(facts) == b"out\n", "the tool's own words go to its log"
    assert facts.sanitizer_log is not None
    assert b"COMPUTE-SANITIZER" in Path(facts.sanitizer_log).read_bytes()
    assert facts.launch["notes"][0].startswith("compute-sanitizer ")
    assert "CUDA_LAUNCH_BLOCKING" not in facts.launch["env"]


def test_a_hang_under_the_real_tool_leaves_nothing_behind(run: Run, working_tool: sanitizer.Tool) -> None:
    facts = run("sleep", "60", observer="memcheck", limits={"timeout_s": 2.0})
    assert facts.timed_out
    assert facts.survivors == ()
    assert facts.inner_exit is not None
    assert "exit_code" not in facts.inner_exit


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_the_real_tool_takes_every_option_given_to_it(run: Run, real_tool: sanitizer.Tool, tool: str) -> None:
    """Whatever else it can do here, it starts and writes its log where it was told to."""
    facts = run("true", observer=tool)
    assert facts.sanitizer_log is not None, (stdout_of(facts), stderr_of(facts))
    assert Path(facts.sanitizer_log).read_text().startswith("========= COMPUTE-SANITIZER")
    assert (stdout_of(facts), stderr_of(facts)) == (b"", b"")


STAND_IN = """#!{python} -S
import os, sys
if sys.argv[1:] == ["--help"]:
    print({help!r})
    sys.exit(0)
program = sys.argv[sys.argv.index({python!r}):]
os.closerange(3, 100)
status = os.spawnv(os.P_WAIT, program[0], program)
sys.exit({own_exit})
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tool that starts its program as the real one does, closes every descriptor, and lies about the exit status."""
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(STAND_IN.format(python=sys.executable, help=OLD_HELP, own_exit=0))
    tool.chmod(0o755)
    monkeypatch.setattr(sanitizer, "_locate", lambda: str(tool))
    yield
    sanitizer._ask.cache_clear()


@pytest.mark.parametrize(
    ("ending", "expected"), [("exit 0", {"exit_code": 0}), ("exit 7", {"exit_code": 7}), ("kill -6 $$", {"signal": 6})]
)
@pytest.mark.usefixtures("stand_in")
def test_the_programs_own_end_is_told_whatever_the_tool_says(run: Run, ending: str, expected: dict[str, int]) -> None:
    facts = run("sh", "-c", f"echo out; {ending}", observer="memcheck")
    assert facts.exit_code == 0, "the tool's own"
    assert facts.inner_exit is not None
    assert {key: value for key, value in facts.inner_exit.items() if key != "pid"} == expected
    assert stdout_of(facts) == b"out\n"


@pytest.mark.usefixtures("stand_in")
def test_breadcrumbs_reach_us_when_a_tool_closed_the_descriptor(tmp_path: Path, folder: Callable[[], Path]) -> None:
    (tmp_path / "job.py").write_text("def work():\n    return 5\n")
    target = {"kind": "python", "file": str(tmp_path / "job.py"), "function": "work", "kwargs": {}}
    facts = run_probe(ProbeRequest(target, str(folder()), observer="memcheck", limits=Limits(20)))
    assert [crumb.step for crumb in facts.breadcrumbs] == ["import", "launch", "synchronise", "finished"]
    assert facts.result["returned"] == 5


@pytest.fixture
def old_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Stands in for a compute-sanitizer of another version: prints the given help, then records its own words."""

    def install(help_text: str) -> Path:
        (tmp_path / "help.txt").write_text(help_text)
        tool = tmp_path / "compute-sanitizer"
        tool.write_text(f'#!/bin/sh\n[ "$1" = --help ] && exec cat {tmp_path}/help.txt\nprintf "%s\\n" "$@"\n')
        tool.chmod(0o755)
        monkeypatch.setattr(sanitizer, "_locate", lambda: str(tool))
        return tool

    yield install
    sanitizer._ask.cache_clear()


def test_only_options_that_the_tool_lists_are_used(run: Run, old_tool: Callable[[str], Path]) -> None:
    old_tool(OLD_HELP)
    facts = run("my program", "--its-option", observer="memcheck")
    words = stdout_of(facts).decode().splitlines()
    options = [word for word in words[: words.index("-I")] if word.startswith("--")]
    assert options == ["--tool", "--log-file", "--save", "--xml", "--print-limit", "--padding"]
    assert words[-2:] == ["my program", "--its-option"]
    assert any("lacks: " in note and "--strip-paths" in note for note in facts.launch["notes"])


def test_padding_is_for_memcheck_only(run: Run, old_tool: Callable[[str], Path]) -> None:
    old_tool(OLD_HELP)
    assert "--padding" not in stdout_of(run("p", observer="racecheck")).decode()


def test_the_help_is_read_again_when_the_tool_changes(run: Run, old_tool: Callable[[str], Path]) -> None:
    tool = old_tool(OLD_HELP)
    assert "padding" in sanitizer.find().options
    old_tool(OLD_HELP.replace("--padding", "--guarding"))
    os.utime(tool, ns=(1, 1))
    assert "padding" not in sanitizer.find().options


def test_a_tool_that_says_nonsense_is_a_start_error(run: Run, old_tool: Callable[[str], Path]) -> None:
    old_tool("error while loading shared libraries: libx.so")
    facts = run("true", observer="memcheck")
    assert facts.start_error is not None
    assert "does not look like compute-sanitizer" in facts.start_error


def test_a_missing_tool_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizer, "_locate", lambda: None)
    facts = run("true", observer="memcheck")
    assert facts.start_error is not None
    assert "pip install 'cudadiag[sanitizer]'" in facts.start_error


def test_inner_tells_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    inner = Path(sanitizer.__file__).with_name("inner.py")
    ended = subprocess.run([sys.executable, str(inner), str(tmp_path / "s.json"), "/no/program"], check=False)
    assert ended.returncode == 127
    assert json.loads((tmp_path / "s.json").read_text()) == {"start_error": "/no/program: No such file or directory"}


CORE_WRITER = """
import os, sys, time
core = os.environ["CUDA_COREDUMP_FILE"].replace("%p", str(os.getpid()))
with open(core, "wb", buffering=0) as file:
    for _ in range(12):
        file.write(b"x" * 1000)
        time.sleep(0.2)
os.abort()
"""


def test_a_growing_core_file_is_waited_for_beyond_the_limit(run: Run) -> None:
    """Stands in for a driver that writes its dump slowly: 2.4 s with a limit of 1 s."""
    facts = run(sys.executable, "-c", CORE_WRITER, observer="coredump", limits={"timeout_s": 1.0})
    assert (facts.signal, facts.timed_out, facts.killed_by_us) == (6, False, None)
    assert facts.core is not None
    assert Path(facts.core).stat().st_size == 12000


PIPE_READER = """
import os, time
pipe = os.environ["CUDA_COREDUMP_PIPE"].replace("%p", str(os.getpid()))
os.mkfifo(pipe)
with open(pipe, "rb") as file:
    file.read(1)
with open(os.environ["CUDA_COREDUMP_FILE"].replace("%p", "7"), "wb") as core:
    core.write(b"the spinning kernel")
time.sleep(60)
"""


def test_a_hung_kernel_is_asked_for_a_core_through_the_pipe(run: Run) -> None:
    """Stands in for a driver with user-triggered dumps: it reads a byte, writes the core, and the program hangs on."""
    facts = run(sys.executable, "-c", PIPE_READER, observer="coredump", limits={"timeout_s": 1.0})
    assert facts.timed_out
    assert facts.core is not None
    assert Path(facts.core).read_bytes() == b"the spinning kernel"
    assert not [path for path in Path(facts.folder).iterdir() if stat.S_ISFIFO(path.stat().st_mode)]


def test_a_hang_before_cuda_says_that_no_dump_could_be_asked_for(run: Run) -> None:
    begun = time.monotonic()
    facts = run("sleep", "60", observer="coredump", limits={"timeout_s": 0.5})
    assert (facts.timed_out, facts.core) == (True, None)
    assert any("no core-dump pipe" in note for note in facts.launch["notes"])
    assert time.monotonic() - begun < 5


def test_a_pipe_that_nobody_reads_does_not_hang_us(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "corepipe_1")
    assert CoreWatch(tmp_path).trigger(0.0) == "core-dump pipe corepipe_1: nobody reads it"


def test_probes_under_the_real_tool_run_side_by_side(working_tool: sanitizer.Tool, folder: Callable[[], Path]) -> None:
    ends: list[object] = []

    def one(place: Path, code: int) -> None:
        target = {"kind": "command", "argv": ["sh", "-c", f"exit {code}"]}
        facts = run_probe(ProbeRequest(target, str(place), observer="memcheck", limits=Limits(20)))
        ends.append((facts.inner_exit or {}).get("exit_code"))

    threads = [threading.Thread(target=one, args=(folder(), code)) for code in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, ends)) == ["1", "2", "3"]
