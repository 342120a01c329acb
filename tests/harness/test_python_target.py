"""The `python` target: the user's function in the user's interpreter, whatever lies in the working folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness_probing import stderr_of, stdout_of

from harness.launcher import run_probe
from harness.records import Limits, ProbeFacts, ProbeRequest

BENCH = """
import os, sys, time
import helper

def fine(q, k=1):
    print("fine", q, k)
    return {"us_per_call": 12.5, "rows": helper.rows(q)}

def raises(q):
    raise helper.Broken("CUDA error: an illegal memory access was encountered (cudaErrorIllegalAddress)")

def leaves(q):
    sys.exit(q)

def vanishes(q):
    os._exit(q)

def dies(q):
    os.kill(os.getpid(), q)

def hangs(q):
    time.sleep(60)

def odd(q):
    return {1, 2}

def dies_at_exit(q):
    import atexit
    atexit.register(os.abort)

def counts(q):
    global seen
    seen = globals().get("seen", 0) + 1
    if seen == 3:
        raise RuntimeError("third")
    return seen

def chatters(q):
    sys.stdout.write("x" * 100000)
"""


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    place = tmp_path / "user"
    place.mkdir()
    (place / "bench.py").write_text(BENCH)
    (place / "helper.py").write_text(
        "class Broken(Exception):\n    error_code = 700\n\ndef rows(q):\n    return q * 2\n"
    )
    return place / "bench.py"


Call = Callable[..., ProbeFacts]


@pytest.fixture
def call(bench: Path, folder: Callable[[], Path]) -> Call:
    def start(function: str, *, interpreter: str | None = None, timeout_s: float = 20.0, **target: Any) -> ProbeFacts:
        body = {"kind": "python", "file": str(bench), "function": function, **target}
        limits = Limits(timeout_s=timeout_s, grace_s=0.3)
        request = ProbeRequest(body, str(folder()), cwd=str(bench.parent), interpreter=interpreter, limits=limits)
        return run_probe(request)

    return start


def steps(facts: ProbeFacts) -> list[str]:
    return [crumb.step for crumb in facts.breadcrumbs]


def test_a_function_that_returns_is_finished(call: Call) -> None:
    facts = call("fine", kwargs={"q": 9, "k": 2})
    assert (facts.exit_code, stdout_of(facts), stderr_of(facts)) == (0, b"fine 9 2\n", b"")
    assert steps(facts) == ["import", "launch", "synchronise", "finished"]
    assert facts.breadcrumbs[1].detail == {"kwargs": {"q": 9, "k": 2}}
    assert facts.result["finished"] is True
    assert facts.result["returned"] == {"us_per_call": 12.5, "rows": 18}
    assert facts.result["us_per_call"] == 12.5
    assert facts.result["synchronised"] == [], "CUDA was never touched"
    times = [crumb.at_s for crumb in facts.breadcrumbs]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] < facts.wall_s


def test_an_exception_is_described_and_shown_as_python_would(call: Call, bench: Path) -> None:
    facts = call("raises", kwargs={"q": 1})
    error = facts.result["error"]
    assert (facts.exit_code, facts.last_step) == (1, "launch")
    assert (error["type"], error["cuda_name"], error["number"]) == ("helper.Broken", "cudaErrorIllegalAddress", 700)
    assert error["step"] == "launch"
    lines = stderr_of(facts).decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{bench}", line '), "our own frames are not shown"
    assert lines[-1].startswith("helper.Broken: CUDA error")
    assert "finished" not in facts.result


@pytest.mark.parametrize(("function", "code"), [("leaves", 0), ("leaves", 3), ("vanishes", 0), ("vanishes", 4)])
def test_a_function_that_ends_the_process_is_not_finished(call: Call, function: str, code: int) -> None:
    facts = call(function, kwargs={"q": code})
    assert (facts.exit_code, facts.last_step) == (code, "launch")
    assert "finished" not in facts.result
    assert ("error" in facts.result) == (function == "leaves")


def test_a_fatal_signal_leaves_the_breadcrumb_and_the_python_stack(call: Call) -> None:
    facts = call("dies", kwargs={"q": int(signal.SIGSEGV)})
    assert (facts.signal, facts.last_step) == (signal.SIGSEGV, "launch")
    assert b"Fatal Python error: Segmentation fault" in stderr_of(facts)
    assert b"bench.py" in stderr_of(facts)


def test_a_hang_is_told_with_its_last_step(call: Call) -> None:
    facts = call("hangs", kwargs={"q": 1}, timeout_s=1.0)
    assert (facts.timed_out, facts.last_step) == (True, "launch")


def test_died_after_finish_shows_both(call: Call) -> None:
    facts = call("dies_at_exit", kwargs={"q": 1})
    assert (facts.signal, facts.last_step) == (signal.SIGABRT, "finished")
    assert facts.result["finished"] is True


def test_a_result_that_is_no_json_is_kept_as_text(call: Call) -> None:
    assert call("odd", kwargs={"q": 1}).result["returned"] == "{1, 2}"


def test_a_sequence_runs_in_one_process_with_a_crumb_for_each_shape(call: Call) -> None:
    wanted = [{"shape": {"q": q}, "kwargs": {"q": q}} for q in (1, 2, 3, 4)]
    facts = call("counts", steps=wanted)
    launches = [crumb.detail for crumb in facts.breadcrumbs if crumb.step == "launch"]
    assert [(at["step"], at["shape"]) for at in launches] == [(0, {"q": 1}), (1, {"q": 2}), (2, {"q": 3})]
    assert [step["returned"] for step in facts.result["steps"]] == [1, 2]
    assert facts.result["error"]["text"] == "third"


def test_a_missing_function_is_an_error_at_import(call: Call) -> None:
    facts = call("absent", kwargs={})
    assert facts.result["error"]["step"] == facts.last_step == "import"
    assert "absent" in facts.result["error"]["text"]


def test_an_import_error_of_the_users_file_is_an_error_at_import(call: Call, bench: Path) -> None:
    bench.write_text("import no_such_module_here\n")
    facts = call("fine", kwargs={"q": 1})
    assert (facts.result["error"]["type"], facts.last_step) == ("ModuleNotFoundError", "import")


@pytest.mark.parametrize("name", ["harness", "numpy", "json", "inspect", "traceback", "records", "child", "typing"])
def test_modules_beside_the_users_file_do_not_break_the_worker(call: Call, bench: Path, name: str) -> None:
    """Neither as ./NAME.py nor as a package ./NAME/ of the working folder."""
    (bench.parent / f"{name}.py").write_text("raise RuntimeError('the wrong module')\n")
    facts = call("fine", kwargs={"q": 9})
    assert facts.result.get("finished") is True, stderr_of(facts)
    (bench.parent / f"{name}.py").unlink()
    (bench.parent / name).mkdir()
    (bench.parent / name / "__init__.py").write_text("raise RuntimeError('the wrong package')\n")
    facts = call("fine", kwargs={"q": 9})
    assert facts.result.get("finished") is True, stderr_of(facts)


def test_our_modules_are_not_offered_under_the_users_names(call: Call, bench: Path) -> None:
    bench.write_text("import sys\ndef fine(q):\n    import records\n")
    facts = call("fine", kwargs={"q": 1})
    assert facts.result["error"]["type"] == "ModuleNotFoundError"


def test_a_file_in_a_package_may_import_its_neighbours(call: Call, bench: Path, folder: Callable[[], Path]) -> None:
    package = bench.parent / "pack" / "inner"
    package.mkdir(parents=True)
    for place in (package, package.parent):
        (place / "__init__.py").write_text("")
    (package.parent / "tool.py").write_text("VALUE = 7\n")
    (package / "job.py").write_text("from ..tool import VALUE\ndef value():\n    return VALUE, __name__\n")
    facts = call("value", file=str(package / "job.py"), kwargs={})
    assert facts.result["returned"] == [7, "pack.inner.job"]


def test_a_users_file_named_like_a_library_module_replaces_nothing(call: Call, bench: Path) -> None:
    named = bench.parent / "json.py"
    named.write_text("def fine():\n    import json\n    return json.dumps([1])\n")
    facts = call("fine", file=str(named), kwargs={})
    assert facts.result.get("returned") == "[1]", stderr_of(facts)


def test_output_is_not_held_back(call: Call) -> None:
    facts = call("chatters", kwargs={"q": 1})
    assert len(stdout_of(facts)) == 100000


def foreign_interpreters() -> list[str]:
    """Other Pythons (3.8 or newer) on PATH and in pyenv."""
    own = (sys.version_info.major, sys.version_info.minor)
    names = [f"python3.{minor}" for minor in range(8, 16) if (3, minor) != own]
    found = [path for name in names if (path := shutil.which(name))]
    pyenv = Path(sys.base_prefix).parent
    found += [str(path) for name in names for path in pyenv.glob(f"{name[6:]}.*/bin/python")]
    return sorted({path for path in found if works(path)})


def works(path: str) -> bool:
    return subprocess.run([path, "-c", "import ctypes"], capture_output=True, check=False).returncode == 0


def test_foreign_interpreters_without_cudadiag_run_the_target(call: Call) -> None:
    others = foreign_interpreters()
    if not others:
        pytest.skip("no other Python 3 (3.8 or newer) on PATH or in pyenv")
    for path in others:
        facts = call("fine", interpreter=path, kwargs={"q": 9})
        assert facts.result.get("finished") is True, (path, stderr_of(facts))
        assert call("raises", interpreter=path, kwargs={"q": 9}).result["error"]["number"] == 700


def test_an_interpreter_that_is_not_there_is_a_start_error(call: Call) -> None:
    assert call("fine", interpreter="/no/python", kwargs={}).start_error == "/no/python: No such file or directory"


def test_a_memory_limit_reaches_the_worker(bench: Path, folder: Callable[[], Path]) -> None:
    bench.write_text("def grow():\n    return len(bytearray(3 << 30))\n")
    target = {"kind": "python", "file": str(bench), "function": "grow", "kwargs": {}}
    facts = run_probe(ProbeRequest(target, str(folder()), limits=Limits(memory_bytes=1 << 30)))
    assert facts.result["error"]["type"] == "MemoryError"


TORCH = """
class cuda:
    @staticmethod
    def is_initialized():
        return IN_USE
"""


@pytest.mark.parametrize(
    ("in_use", "environment", "told"),
    [(True, {}, "torch"), (False, {}, None), (True, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, None)],
)
def test_a_caching_allocator_in_use_is_told(
    tmp_path: Path, folder: Callable[[], Path], in_use: bool, environment: dict[str, str], told: str | None
) -> None:
    """The package is a stand-in of that name: the real one weighs gigabytes, and only this question is asked of it."""
    (tmp_path / "torch.py").write_text(TORCH.replace("IN_USE", str(in_use)))
    (tmp_path / "user.py").write_text("import torch\n\ndef fine(q):\n    return q\n\ndef bad(q):\n    return 1 / 0\n")
    for function in ("fine", "bad"):
        target = {"kind": "python", "file": str(tmp_path / "user.py"), "function": function, "kwargs": {"q": 1}}
        facts = run_probe(ProbeRequest(target, str(folder()), env=environment, limits=Limits(30)))
        assert facts.result.get("caching_allocator") == told, stderr_of(facts)
        assert ("error" in facts.result) == (function == "bad")
