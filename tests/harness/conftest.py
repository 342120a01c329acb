"""Probes of real child processes: each test starts programs that crash, hang, flood or misbehave, and reads the
facts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness_probing import Run

from harness.guardian import Guardian
from harness.launcher import run_probe
from harness.records import Limits, ProbeFacts, ProbeRequest


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[], Path]:
    """A new probe folder at every call."""
    count = iter(range(1000))

    def make() -> Path:
        path = tmp_path / f"probe{next(count)}"
        path.mkdir()
        return path

    return make


@pytest.fixture(scope="session")
def guardian() -> Iterator[Guardian]:
    with Guardian() as started:
        yield started


@pytest.fixture
def run(folder: Callable[[], Path], guardian: Guardian) -> Run:
    """Run words as a `command` probe, with limits that keep a wrong test short."""

    def start(*argv: str, cancelled: Callable[[], bool] | None = None, **changes: Any) -> ProbeFacts:
        limits = Limits(**{"timeout_s": 20.0, "grace_s": 0.5, **changes.pop("limits", {})})
        target = {"kind": "command", "argv": list(argv), **changes.pop("target", {})}
        request = ProbeRequest(
            target, str(folder()), observer=changes.pop("observer", "plain"), limits=limits, **changes
        )
        return run_probe(request, guardian, cancelled)

    return start


@pytest.fixture
def run_python(run: Run) -> Run:
    """Run Python text as a `command` probe."""

    def start(source: str, *arguments: str, **changes: Any) -> ProbeFacts:
        return run(sys.executable, "-S", "-c", source, *arguments, **changes)

    return start
