"""Every kernel of every case compiles, with the macros its shapes give it, to what the two devices run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cases_kit import CASES, NAMES, case_named, is_kernel, kernel_steps

from harness.devices import cubin

nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

KERNELS = [name for name in NAMES if is_kernel(case_named(name))]


def compile_source(path: str, architecture: str, define: dict[str, Any]) -> tuple[bool, str, bytes]:
    """Whether NVRTC takes a source, what it says, and the code."""
    error, program = nvrtc.nvrtcCreateProgram(Path(path).read_bytes(), path.encode(), 0, [], [])
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS
    options = [f"-arch={architecture}", "-lineinfo", *(f"-D{name}={value}" for name, value in define.items())]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1])
    nvrtc.nvrtcGetProgramLog(program, log)
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        return False, log.decode(), b""
    real = architecture.startswith("sm_")
    size = (nvrtc.nvrtcGetCUBINSize if real else nvrtc.nvrtcGetPTXSize)(program)[1]
    code = bytes(size)
    (nvrtc.nvrtcGetCUBIN if real else nvrtc.nvrtcGetPTX)(program, code)
    return True, log.decode(), code


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("device", "architecture"), [("cuda:0", "sm_90"), ("emulator", "compute_80")])
def test_kernels_compile_and_hold_their_entries(name: str, device: str, architecture: str) -> None:
    case = case_named(name)
    modules: dict[str, set[str]] = {}
    for step in kernel_steps(case, device):
        for kernel in step["kernels"]:
            modules.setdefault(json.dumps([kernel["source"], kernel["define"]]), set()).add(kernel["entry"])
    assert len(modules) <= 6, "a macro must not change with the shape: each value is a compilation"
    for module, entries in modules.items():
        taken, log, code = compile_source(json.loads(module)[0], architecture, json.loads(module)[1])
        assert taken, log
        assert all(entry.encode() in code for entry in entries)


PLANTED = [name for name in KERNELS if case_named(name).plant]


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_a_planted_line_can_be_overwritten_on_every_architecture(name: str, architecture: str) -> None:
    case = case_named(name)
    target = case.request(case.sweep.shape(0), folder="/nowhere", device="cuda:0").target
    kernel, plant = target["kernels"][0], target["plant"]
    _, _, code = compile_source(kernel["source"], architecture, kernel["define"])
    lines = Path(kernel["source"]).read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if plant["marker"] in text)
    assert cubin.Cubin(code).effects_of_line(plant["entry"], kernel["source"], line)


def test_the_benchmark_program_compiles_without_a_warning(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("no nvcc here")
    source = CASES / "ddtree" / "bench_kernels.cu"
    command = [nvcc, "-arch=sm_90", "-DSCRATCH_LEN=4096", "-Xcompiler", "-Wall,-Wextra", "-o", "bench", str(source)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    usage = subprocess.run([tmp_path / "bench", "--prefix"], capture_output=True, text=True, check=False)
    assert usage.returncode == 64
    assert "usage" in usage.stderr
