"""Tests with CuPy, Numba and Triton on a real GPU: what one of them poisons, the next must not pay for."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from harness import nvml

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(nvml.problem() is not None, reason=f"no GPU: {nvml.problem()}"),
]
ROOT = Path(__file__).parents[2]
SUITES = {
    "cupy": """
import cupy
def test_before():
    assert int(cupy.arange(10).sum()) == 45
def test_guilty():
    far = cupy.RawKernel('extern "C" __global__ void far(float* p) { p[1ull << 36] = 1.0f; }', "far")
    far((1,), (1,), (cupy.zeros(4, dtype=cupy.float32),))
    cupy.cuda.runtime.deviceSynchronize()
def test_after():
    assert int(cupy.arange(10).sum()) == 45
""",
    "numba": """
import numpy
from numba import cuda
@cuda.jit
def add(x, at):
    x[cuda.threadIdx.x + at] += 1
def total(at):
    d = cuda.to_device(numpy.zeros(32, numpy.float32))
    add[1, 32](d, at)
    cuda.synchronize()
    return d.copy_to_host().sum()
def test_before():
    assert total(0) == 32
def test_guilty():
    total(1 << 36)
def test_after():
    assert total(0) == 32
""",
    "triton": """
import torch, triton, triton.language as tl
@triton.jit
def copy(x, y, at, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(y + i + at, tl.load(x + i))
def copied(at):
    x = torch.arange(64, device="cuda", dtype=torch.float32)
    y = torch.zeros_like(x)
    copy[(1,)](x, y, at, 64)
    torch.cuda.synchronize()
    return torch.equal(x, y)
def test_before():
    assert copied(0)
def test_guilty():
    copied(1 << 36)
def test_after():
    assert copied(0)
""",
}


@pytest.mark.parametrize("framework", SUITES)
def test_only_the_guilty_test_fails(framework: str, tmp_path: Path) -> None:
    suite = tmp_path / f"test_{framework}_suite.py"
    suite.write_text(SUITES[framework])
    alone = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite), "-k", "before"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if alone.returncode != 0:
        pytest.skip(f"{framework} does not work here: {alone.stdout.strip().splitlines()[-1:]}")
    report = tmp_path / "junit.xml"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    argv = [sys.executable, "-m", "pytest", "-p", "cudadiag.pytest_plugin", f"--junitxml={report}", str(suite)]
    subprocess.run(
        [*argv, "-p", "no:cacheprovider", "--cuda-isolate=auto"],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    cases = list(ElementTree.parse(report).iter("testcase"))
    bad = {case.attrib["name"]: case for case in cases if any(c.tag in ("failure", "error") for c in case)}
    assert len(cases) == 3
    assert set(bad) == {"test_guilty"}
    properties = {one.attrib["name"]: one.attrib["value"] for one in bad["test_guilty"].iter("property")}
    assert properties.get("cuda_fault") in ("illegal-address", "invalid-address-space")
