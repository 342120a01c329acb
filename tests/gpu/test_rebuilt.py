"""A program whose machine code is damaged and whose PTX is not, on a real GPU: the driver's own compiler shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import damage
import pytest

from harness import nvml, tools

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(nvml.problem() is not None, reason=f"no GPU: {nvml.problem()}"),
    pytest.mark.skipif(tools.find("nvcc") is None, reason="nvcc was not found"),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    capability = nvml.ask(lambda m: m.nvmlDeviceGetCudaComputeCapability(m.nvmlDeviceGetHandleByIndex(0)))
    return damage.build(tmp_path_factory.mktemp("damaged"), f"sm_{capability[0]}{capability[1]}")


def explanations(program: Path, folder: Path) -> dict[str, Any]:
    words = ["diagnose", "--all", "--json", "--store", str(folder / "store"), "--", str(program)]
    argv = [sys.executable, "-m", "cudadiag.cli.main", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    return {part["name"]: part for part in json.loads(done.stdout)["explanations"]}


def test_an_instruction_that_is_none_is_in_the_machine_code_only(programs: dict[str, Path], tmp_path: Path) -> None:
    found = explanations(programs["illegal"], tmp_path)["miscompile"]
    assert (found["status"], found["strength"]) == ("supported", "shown")
    assert "compiled by the driver from PTX it is right" in found["why"]


def test_a_store_that_is_left_out_is_suggested(programs: dict[str, Path], tmp_path: Path) -> None:
    found = explanations(programs["silent"], tmp_path)
    assert (found["miscompile"]["status"], found["miscompile"]["strength"]) == ("supported", "suggested")
    for rival in ("out-of-bounds", "barrier-misuse"):
        assert found[rival]["status"] == "refuted"
    for rival in ("race", "uninitialised"):  # only part of the memory was looked at, or all of it
        assert found[rival]["status"] in ("refuted", "untested")
