"""200 PyTorch tests on a real GPU, three of which poison the context by real faults: only these three may fail.

PYTHONPATH=$PWD python3 -m pytest tests/gpu/test_isolation_torch.py -s
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 100.0
GUILTY = {"test_index_out_of_range", "test_far_store", "test_passes_but_poisons"}
HEAD = '''
import ctypes, pytest, torch

SOURCE = """
__global__ void far_store(float *p) { p[1ull << 36] = 1.0f; }
"""

def launch_far_store():
    """The store of the kernel far_store, on the context that PyTorch uses, without waiting for it."""
    from cuda.bindings import driver, nvrtc
    capability = torch.cuda.get_device_capability()
    torch.zeros(1, device="cuda")
    program = nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"far_store.cu", 0, None, None)[1]
    option = f"--gpu-architecture=sm_{capability[0]}{capability[1]}".encode()
    assert nvrtc.nvrtcCompileProgram(program, 1, [option])[0] == 0
    size = nvrtc.nvrtcGetCUBINSize(program)[1]
    binary = b" " * size
    nvrtc.nvrtcGetCUBIN(program, binary)
    module = driver.cuModuleLoadData(binary)[1]
    kernel = driver.cuModuleGetFunction(module, b"_Z9far_storePf")[1]
    memory = torch.zeros(4, device="cuda")
    values = ((memory.data_ptr(),), (ctypes.c_void_p,))
    assert driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, values, 0)[0] == 0

@pytest.fixture(scope="module")
def table():
    return torch.arange(64, device="cuda")
'''
INNOCENT = """
@pytest.mark.parametrize("n", range({count}))
def test_{name}(n, table):
    assert int((table + n).sum().item()) == 64 * n + 2016
"""
GUILTY_TESTS = (
    """
def test_index_out_of_range(table):
    index = torch.full((4,), 1 << 20, device="cuda")
    print((table[index] + 1).sum().item())
""",
    """
def test_far_store(table):
    launch_far_store()
    torch.cuda.synchronize()
""",
    """
def test_passes_but_poisons(table):
    launch_far_store()
""",
)


def _has_gpu() -> bool:
    return importlib.util.find_spec("torch") is not None and shutil.which("nvidia-smi") is not None


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not _has_gpu(), reason="needs PyTorch and an NVIDIA GPU"),
]


def make_suite(folder: Path) -> None:
    """200 tests: 50 sound ones, then three files with a guilty test in the middle of 49 others."""
    (folder / "test_part_0.py").write_text(HEAD + INNOCENT.format(name="sound_0", count=50))
    for number, guilty in enumerate(GUILTY_TESTS, start=1):
        before = INNOCENT.format(name=f"before_{number}", count=24)
        after = INNOCENT.format(name=f"after_{number}", count=25)
        (folder / f"test_part_{number}.py").write_text(HEAD + before + guilty + after)


def outcomes(folder: Path, *words: str) -> tuple[dict[str, str], dict[str, dict[str, str]], str]:
    """Outcome and properties of each test, and what pytest printed."""
    report = folder / "junit.xml"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    argv = [sys.executable, "-m", "pytest", "-p", "cudadiag.pytest_plugin", f"--junitxml={report}", *words]
    argv += ["-p", "no:cacheprovider"]
    done = subprocess.run(
        argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )  # fmt: skip
    found, properties = {}, {}
    for case in ElementTree.parse(report).iter("testcase"):
        bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found[case.attrib["name"]] = bad[0] if bad else "passed"
        properties[case.attrib["name"]] = {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
    return found, properties, done.stdout


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch")
    make_suite(folder)
    return folder


def test_only_the_three_guilty_tests_fail(suite: Path) -> None:
    found, properties, text = outcomes(suite, "--cuda-isolate=auto", "--cuda-timeout=60")
    print(text[-6000:])
    assert {name for name, outcome in found.items() if outcome != "passed"} == GUILTY
    assert list(found.values()).count("passed") == 197
    faults = {name: properties[name].get("cuda_fault") for name in GUILTY}
    print(faults)
    assert faults["test_index_out_of_range"] == "device-assert"
    far = {"illegal-address", "invalid-address-space"}  # which one depends on what lies at that distance
    assert faults["test_far_store"] in far
    assert faults["test_passes_but_poisons"] in far
    assert "4 test processes were started" in text


def test_without_isolation_the_faults_take_innocent_tests_along(suite: Path) -> None:
    found, _, text = outcomes(suite)
    victims = {name for name, outcome in found.items() if outcome != "passed"} - GUILTY
    print(text[-1500:])
    print(f"victims without isolation: {len(victims)} of 197; with it: 0")
    assert len(victims) > 100


def test_memcheck_accuses_the_marked_test(tmp_path: Path) -> None:
    marked = "\n@pytest.mark.cuda_sanitize\ndef test_stray():\n    launch_far_store()\n    torch.cuda.synchronize()\n"
    sound = "\n@pytest.mark.cuda_sanitize\ndef test_sound():\n    assert int(torch.ones(8, device='cuda').sum()) == 8\n"
    (tmp_path / "test_marked.py").write_text(HEAD + marked + sound)
    environment = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    os.environ.update(environment)
    try:
        found, properties, text = outcomes(tmp_path, "--cuda-sanitize=memcheck", "--cuda-timeout=60")
    finally:
        for name in environment:
            del os.environ[name]
    print(text[-6000:])
    assert found == {"test_stray": "failure", "test_sound": "passed"}
    assert properties["test_stray"]["cuda_fault"] == "out-of-bounds"
    assert "far_store" in text
