"""Until it is asked for, the plugin is not there: it imports nothing, and it takes no name from the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

from isolation_runs import ROOT, run_pytest

HEAVY = ("harness", "pydantic", "numpy", "click", "cudadiag.evidence", "subprocess", "ctypes")


def test_loading_it_imports_nothing_but_itself() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import cudadiag.pytest_plugin; "
        "print(sorted(set(sys.modules) - before))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "['cudadiag', 'cudadiag.pytest_plugin']"


def test_the_entry_point_names_the_plugin() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    (name, value), *more = points.items()
    assert not more
    assert hasattr(EntryPoint(name, value, "pytest11").load(), "pytest_addoption")


def test_not_asked_it_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").write_text(
        "import pytest, sys\n@pytest.mark.cuda_isolate('each', timeout=1)\ndef test_here(request):\n"
        "    assert not hasattr(request.config, 'workerinput')\n"
        f"    assert not [name for name in sys.modules if name in {HEAVY[:1]!r}]\n"
    )
    run = run_pytest(tmp_path, "--strict-markers", isolate=None)
    assert run.outcomes == {"test_here": "passed"}
    assert "cuda isolation" not in run.text


def test_a_package_harness_of_the_tests_is_theirs(tmp_path: Path) -> None:
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "__init__.py").write_text("NAME = 'theirs'\n")
    (tmp_path / "conftest.py").write_text("import harness\nassert harness.NAME == 'theirs'\n")
    (tmp_path / "test_theirs.py").write_text(
        "import harness, os\ndef test_theirs(): assert harness.NAME == 'theirs'\ndef test_dies(): os.abort()\n"
        "def test_after(): import harness as again; assert again.NAME == 'theirs'\n"
    )
    run = run_pytest(tmp_path)
    assert run.outcomes == {"test_theirs": "passed", "test_dies": "failed", "test_after": "passed"}
    assert run.properties["test_dies"]["cuda_fault"] == "host-signal"


def test_collect_only_collects_here(tmp_path: Path) -> None:
    (tmp_path / "test_few.py").write_text("def test_a(): pass\n")
    run = run_pytest(tmp_path, "--collect-only", "-q")
    assert "test_few.py::test_a" in run.text
