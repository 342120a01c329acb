"""Machine code made in another way: what the harness is asked for, and what the emulated device says to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudadiag.case import from_command, load
from cudadiag.case.case import Case
from cudadiag.case.locate import find_case
from cudadiag.evidence import Expectations
from cudadiag.session.bench import CaseBench, ProbeChoices
from cudadiag.session.judging import Judging
from cudadiag.session.task import Build, Task
from harness.guardian import Guardian
from harness.launcher import run_probe
from harness.records import ProbeRequest


def request(case: Case, build: Build, tmp_path: Path, device: str = "cuda:GPU-0") -> ProbeRequest:
    with Guardian() as guardian:
        bench = CaseBench(case, ProbeChoices(), [device], guardian, Judging(Expectations()), tmp_path)
        return bench.request(Task(case.sweep.shape(0), 0, "test", build=build), device, tmp_path)


@pytest.fixture
def kernel() -> Case:
    return load(find_case("illegal_instruction").path)


def test_a_kernel_is_built_as_always_unless_asked(kernel: Case, tmp_path: Path) -> None:
    usual = request(kernel, Build.USUAL, tmp_path)
    assert "compiler" not in usual.target
    assert not any("O0" in option for option in usual.target["kernels"][0].get("options") or ())


def test_a_kernel_without_optimisation(kernel: Case, tmp_path: Path) -> None:
    target = request(kernel, Build.UNOPTIMISED, tmp_path).target
    assert target["kernels"][0]["options"][-1] == "--device-debug"
    assert "plant" in request(kernel, Build.USUAL, tmp_path).target
    assert "plant" not in target  # it is a fault of the usual machine code


def test_a_kernel_that_the_driver_compiles(kernel: Case, tmp_path: Path) -> None:
    asked = request(kernel, Build.BY_DRIVER, tmp_path)
    assert asked.target["compiler"] == "driver"
    assert asked.env["CUDA_CACHE_DISABLE"] == "1"


def test_a_program_is_told_to_take_its_ptx(tmp_path: Path) -> None:
    case = from_command([], ["true"], cwd=str(tmp_path))
    assert request(case, Build.BY_DRIVER, tmp_path, "none").env["CUDA_FORCE_PTX_JIT"] == "1"
    assert not request(case, Build.USUAL, tmp_path, "none").env


def test_the_emulated_device_has_no_driver_to_ask(kernel: Case, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    facts = run_probe(request(kernel, Build.BY_DRIVER, tmp_path, "emulator"))
    assert facts.result["error"]["type"] == "NotSupported"
    assert "no driver" in facts.result["error"]["text"]
