"""Runs pytest on a folder of generated tests in a process of its own and reads what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

PLUGIN = ("-p", "cudadiag.pytest_plugin", "-p", "no:hypothesispytest")
"""Without Hypothesis's plugin: it imports all of Hypothesis at the end of every run."""
LIMIT_S = 150.0
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Run:
    """`outcomes`: test name (with its parameters) to passed, failed, error, skipped, as the JUnit file says."""

    exit_code: int
    text: str
    outcomes: dict[str, str]
    details: dict[str, str]
    properties: dict[str, dict[str, str]]

    def named(self, outcome: str) -> set[str]:
        return {name for name, one in self.outcomes.items() if one == outcome}


def run_pytest(folder: Path, *words: str, isolate: str | None = "auto", env: dict[str, str] | None = None) -> Run:
    """pytest in `folder` with the plugin; `isolate` None leaves its option out. pytest-timeout would only be in the
    way of the hangs here."""
    report = folder / "junit.xml"
    report.unlink(missing_ok=True)
    option = [] if isolate is None else [f"--cuda-isolate={isolate}"]
    argv = [sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:timeout", f"--junitxml={report}", *option, *words]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "CUDADIAG_"))}
    kept["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])
    done = subprocess.run(
        argv, cwd=folder, env={**kept, **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    return _read(report, done.returncode, done.stdout.decode(errors="replace"))


def _read(report: Path, exit_code: int, text: str) -> Run:
    outcomes, details, properties = {}, {}, {}
    cases = ElementTree.parse(report).iterfind(".//testcase[@name]") if report.exists() else ()
    for case in cases:
        name = case.attrib["name"]
        found = [child for child in case if child.tag in ("failure", "error", "skipped")]
        words = {"failure": "failed", "error": "error", "skipped": "skipped"}
        outcomes[name] = words[found[0].tag] if found else "passed"
        details[name] = "\n".join(f"{child.attrib.get('message', '')}\n{child.text or ''}" for child in found)
        properties[name] = {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
    return Run(exit_code, text, outcomes, details, properties)


FAKE_DEVICE = '''
"""A device whose error is sticky: once it is sick, every use of it fails until the process ends."""
SICK = []

def launch():
    if SICK:
        raise RuntimeError(f"fake device error: {SICK[0]}")

def break_it(): SICK.append("an illegal memory access was encountered")
def health(): return SICK[0] if SICK else None
'''


def poison_suite(folder: Path) -> None:
    """200 tests in four files, all of which use the fake device; three poison their process."""
    (folder / "fake_device.py").write_text(FAKE_DEVICE)
    (folder / "pytest.ini").write_text("[pytest]\ncuda_health = fake_device:health\n")
    for number, guilty in enumerate(("", "os.abort()", "fake_device.break_it()", "time.sleep(3600)")):
        count = 49 if guilty else 50
        words = (
            "import os, time, pytest, fake_device\n"
            "@pytest.fixture(scope='module')\ndef table():\n    fake_device.launch()\n    yield [1, 2, 3]\n"
            f"@pytest.mark.parametrize('n', range({count // 2}))\n"
            f"def test_before_{number}(n, table):\n    fake_device.launch()\n    assert table[n % 3] == n % 3 + 1\n"
        )
        if guilty:
            words += f"def test_guilty_{number}(table):\n    fake_device.launch()\n    {guilty}\n"
        words += (
            f"@pytest.mark.parametrize('n', range({count - count // 2}))\n"
            f"def test_after_{number}(n, table):\n    fake_device.launch()\n    assert table[n % 3] == n % 3 + 1\n"
        )
        (folder / f"test_part_{number}.py").write_text(words)
