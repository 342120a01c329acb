"""The host cases with any Python: they do what their heads say, without CUDA and without this package."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from cases_kit import case_named, probed

from cudadiag.evidence import Expectations, judge
from cudadiag.model import FaultKind, Outcome, Verdict
from cudadiag.session.judging import Judging


def verdict(name: str, shape: dict[str, int], folder: Path) -> Verdict:
    case = case_named(name)
    facts = probed(case, shape, folder, device="none")
    expected = Expectations(success=case.success, on_device=False)
    return judge(facts, Judging(expected).reading(facts), expected)


@pytest.mark.parametrize(("rows", "columns"), [(1, 16), (8, 512), (64, 64)])
def test_crash_from_passes_up_to_its_size(rows: int, columns: int, tmp_path: Path) -> None:
    assert verdict("crash_from", {"rows": rows, "columns": columns}, tmp_path / "p").outcome is Outcome.PASS


@pytest.mark.parametrize(("rows", "columns"), [(16, 512), (64, 128)])
def test_crash_from_dies_of_a_signal_beyond_it(rows: int, columns: int, tmp_path: Path) -> None:
    found = verdict("crash_from", {"rows": rows, "columns": columns}, tmp_path / "p")
    assert found.outcome is Outcome.FAULT
    assert found.fault is not None
    assert found.fault.kind is FaultKind.HOST_SIGNAL


def test_hang_odd_hangs_on_odd_sizes_only(tmp_path: Path) -> None:
    assert verdict("hang_odd", {"workers": 8}, tmp_path / "even").outcome is Outcome.PASS
    assert verdict("hang_odd", {"workers": 3}, tmp_path / "odd").outcome is Outcome.HANG


def test_the_programs_run_by_themselves() -> None:
    folder = case_named("crash_from").folder
    crash = ["python3", "-S", "crash_from.py", "--rows", "64", "--columns", "512"]
    died = subprocess.run(crash, cwd=folder, capture_output=True, check=False)
    assert died.returncode == -signal.SIGSEGV
    pairs = ["python3", "-S", "hang_odd.py", "--workers", "4"]
    even = subprocess.run(pairs, cwd=folder, capture_output=True, text=True, timeout=20, check=True)
    assert "exchanged, checksum 6" in even.stdout
