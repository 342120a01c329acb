"""200 tests, three of which poison their process: by an abort, by a sticky error, by a hang."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from isolation_runs import PLUGIN, Run, poison_suite, run_pytest

GUILTY = {"test_guilty_1", "test_guilty_2", "test_guilty_3"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("poison")
    poison_suite(folder)
    return folder


@pytest.fixture(scope="module")
def isolated(suite: Path) -> Run:
    return run_pytest(suite, "--cuda-timeout=3")


def test_exactly_the_three_guilty_fail_and_the_others_pass(isolated: Run) -> None:
    assert isolated.named("failed") == GUILTY
    assert len(isolated.named("passed")) == 197
    assert len(isolated.outcomes) == 200
    assert isolated.exit_code == 1


def test_each_guilty_test_names_its_fault_and_signature(isolated: Run) -> None:
    found = {name: (p.get("cuda_fault"), p.get("cuda_signature")) for name, p in isolated.properties.items() if p}
    assert set(found) == GUILTY
    assert found["test_guilty_1"][0] == "host-signal"
    assert (found["test_guilty_1"][1] or "").startswith("v1/fault/host-signal/SIGABRT/test_part_1.py:")
    assert found["test_guilty_2"] == ("poisoned-context", "v1/fault/poisoned-context/-/-/-/-")
    assert found["test_guilty_3"] == ("hang", "v1/hang/-/-")
    assert "poisoned its process" in isolated.details["test_guilty_2"]
    assert "test_part_3.py" in isolated.details["test_guilty_3"], "where it hung"


def test_only_four_processes_were_needed(isolated: Run) -> None:
    assert "4 test processes were started" in isolated.text


def passed_without_isolation(suite: Path, only: str) -> int:
    """How many of the 197 innocent tests pass in a plain run with one guilty test, until it ends or must be ended."""
    others = " or ".join(sorted(GUILTY - {only}))
    argv = [sys.executable, "-m", "pytest", "-v", "-p", "no:timeout", "-p", "no:cacheprovider", "-k", f"not ({others})"]
    argv += PLUGIN  # there, but not asked
    output = suite / "plain.txt"
    with output.open("wb") as file, subprocess.Popen(argv, cwd=suite, stdout=file, stderr=file) as plain:
        while plain.poll() is None and b"test_guilty_3 " not in output.read_bytes():
            time.sleep(0.1)  # until its end, or until it has begun the test that hangs
        plain.kill()
    lines = output.read_bytes().splitlines()
    return sum(b" PASSED" in line and b"guilty" not in line for line in lines)


@pytest.mark.parametrize(("guilty", "victims"), [("test_guilty_1", 123), ("test_guilty_2", 74), ("test_guilty_3", 25)])
def test_without_isolation_each_of_them_takes_innocent_tests_along(
    suite: Path, isolated: Run, guilty: str, victims: int
) -> None:
    lost = 197 - passed_without_isolation(suite, guilty)
    print(f"{guilty} without isolation: {lost} victims of 197; with it: {197 - len(isolated.named('passed'))}")
    assert lost == victims
    assert len(isolated.named("passed")) == 197
