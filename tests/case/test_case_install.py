"""Both kinds of install find the bundled cases from any folder; an editable one has no copy of them that could age."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import cudadiag

REPOSITORY = Path(cudadiag.__file__).resolve().parent.parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (REPOSITORY / "pyproject.toml").exists(), reason="needs the repository, to install it"),
]

ASK = """
import json
from cudadiag.case import all_cases, load, locate
path = locate("crash_from")
print(json.dumps({"path": str(path), "shapes": len(load(path).sweep), "cases": len(all_cases())}))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An empty virtual environment that borrows the packages, but not the .pth files, of the one the tests run in."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (_site_packages(folder) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def _site_packages(environment: Path) -> Path:
    return next(environment.glob("lib/python3*/site-packages"))


def _install(environment: Path, *what: str) -> None:
    python = str(environment / "bin" / "python")
    options = ["--no-deps", "--no-build-isolation", "--ignore-installed", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "--python", python, "install", *options, *what]
    done = subprocess.run(command, capture_output=True, text=True, env=_clean_environment(), check=False)
    assert done.returncode == 0, done.stderr


def _clean_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def _ask(environment: Path, folder: Path) -> dict[str, object]:
    command = [str(environment / "bin" / "python"), "-c", ASK]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=_clean_environment(), check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_wheel_brings_its_cases_along(environment: Path, tmp_path: Path) -> None:
    _install(environment, str(REPOSITORY))
    answer = _ask(environment, tmp_path)
    packaged = _site_packages(environment) / "cudadiag" / "cases"
    assert answer["path"] == str(packaged / "host" / "crash_from.yaml")
    assert answer["cases"] == len([path for path in (REPOSITORY / "cases").rglob("*.yaml") if _is_case(path)])
    assert int(str(answer["shapes"])) > 1


def test_an_editable_install_reads_the_checkout_and_has_no_copy(environment: Path, tmp_path: Path) -> None:
    pytest.importorskip("editables", reason="an editable build by hatchling needs it; it is in the extra `test`")
    _install(environment, "--editable", str(REPOSITORY))
    answer = _ask(environment, tmp_path)
    assert answer["path"] == str(REPOSITORY / "cases" / "host" / "crash_from.yaml")
    assert not (_site_packages(environment) / "cudadiag").exists()


def _is_case(path: Path) -> bool:
    return any(line.startswith("case:") for line in path.read_text(encoding="utf-8").splitlines())
