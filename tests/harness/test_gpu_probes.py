"""Probes on a real GPU: the kernel target through cuda.bindings, and what each observer leaves behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness_kernels import Bench
from harness_probing import stderr_of

from harness import nvml, sanitizer
from harness.launcher import run_probe
from harness.records import Limits, ProbeFacts, ProbeRequest

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> str:
    problem = nvml.problem()
    if problem is not None:
        pytest.skip(f"no GPU: {problem}")
    uuid = nvml.ask(lambda m: m.nvmlDeviceGetUUID(m.nvmlDeviceGetHandleByIndex(0)))
    if uuid is None:
        pytest.skip("no GPU: NVML lists none")
    return "cuda:" + (uuid.decode() if isinstance(uuid, bytes) else uuid)


Run = Callable[..., ProbeFacts]


@pytest.fixture
def bench(tmp_path: Path, folder: Callable[[], Path]) -> Bench:
    place = tmp_path / "case"
    place.mkdir()
    return Bench(place, folder)


@pytest.fixture
def run(bench: Bench, device: str) -> Run:
    def start(entry: str = "scale", n: int = 200, **changes: Any) -> ProbeFacts:
        how = {key: changes.pop(key) for key in ("observer", "timeout_s") if key in changes}
        return bench.run(bench.one(entry, n, **changes), device=device, **how)

    return start


def test_a_right_kernel_is_finished_equal_and_timed(run: Run) -> None:
    facts = run(timing={"launches": 20})
    assert facts.result.get("finished") is True, stderr_of(facts)
    assert facts.result["comparison"]["outputs"]["out"]["differing"] == 0
    assert 0.5 < facts.result["us_per_call"] < 1000
    assert facts.result["kernels"][0]["registers"] > 0
    assert facts.device_facts["device"] == "cuda"
    assert facts.device_facts["free_memory"] <= facts.device_facts["total_memory"]


def test_a_wrong_kernel_is_told_element_by_element(run: Run) -> None:
    compared = run("nearly").result["comparison"]["outputs"]["out"]
    assert (compared["differing"], compared["poison_left"], compared["first"]["index"]) == (4, 3, [7])


@pytest.mark.parametrize("observer", ["plain", "blocking"])
def test_an_illegal_access_is_700_wherever_it_is_noticed(run: Run, observer: str) -> None:
    facts = run("far_load", observer=observer)
    error = facts.result["error"]
    assert (error["number"], error["cuda_name"]) == (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert error["step"] in ("launch", "synchronise")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in Path(facts.driver_log or "").read_text()


def test_a_planted_instruction_is_met_on_its_path_only(run: Run) -> None:
    plant = {"kind": "illegal-instruction", "entry": "special_case", "marker": "// SPECIAL"}
    assert run("special_case", 8, plant=plant).result["error"]["number"] == 715
    assert run("special_case", 8).result["comparison"]["outputs"]["out"]["differing"] == 0
    assert run("special_case", 200, plant=plant).result["comparison"]["outputs"]["out"]["differing"] == 0


def test_the_driver_compiles_ptx_and_a_planted_instruction_is_not_in_it(run: Run) -> None:
    plant = {"kind": "illegal-instruction", "entry": "special_case", "marker": "// SPECIAL"}
    for entry, more in (("scale", {}), ("mangled", {}), ("special_case", {"plant": plant})):
        facts = run(entry, 8, compiler="driver", **more)
        assert facts.result.get("finished") is True, stderr_of(facts)
        assert facts.result["comparison"]["outputs"]["out"]["differing"] == 0
        assert facts.result["kernels"][0]["registers"] > 0


def test_memcheck_knows_lines_of_what_the_driver_compiled(run: Run, tool: sanitizer.Tool) -> None:
    facts = run("past_the_end", 64, observer="memcheck", compiler="driver")
    assert "past_the_end" in Path(facts.sanitizer_log or "").read_text()


def test_memory_that_is_never_freed_is_told_when_asked_for(bench: Bench, device: str, tool: sanitizer.Tool) -> None:
    target = bench.one()
    target["buffers"][0]["free"] = False
    for asked in (False, True):
        facts = bench.run(target, device=device, observer="memcheck", leak_check=asked)
        assert ("Leaked" in Path(facts.sanitizer_log or "").read_text()) is asked


def test_shared_memory_over_48_kb_is_opted_in_and_over_the_limit_refused(bench: Bench, device: str) -> None:
    def with_shared(floats: int) -> ProbeFacts:
        target = bench.one("scale", 64, "reverse")
        arguments = ["out", "inp", {"scalar": 64, "dtype": "int32"}]
        define = {"SHARED_FLOATS": floats, "EXTRA": 0}
        kernel = bench.kernel("reverse_big", arguments, grid=[1, 1, 1], shared=floats * 4, define=define)
        return bench.run(target | {"kernels": [kernel]}, device=device)

    assert with_shared(16_000).result["comparison"]["outputs"]["out"]["differing"] == 0
    assert with_shared(1_000_000).result["error"]["number"] == 1


def test_too_many_threads_are_refused_at_the_launch(bench: Bench, device: str) -> None:
    target = bench.one()
    target["kernels"][0]["block"] = [2048, 1, 1]
    error = bench.run(target, device=device).result["error"]
    assert (error["step"], error["number"], error["call"]) == ("launch", 1, "cuLaunchKernel")


@pytest.fixture
def tool() -> sanitizer.Tool:
    try:
        return sanitizer.find()
    except sanitizer.ToolMissing as problem:
        pytest.skip(str(problem))


def test_memcheck_names_the_line_and_tells_the_programs_own_end(run: Run, tool: sanitizer.Tool, bench: Bench) -> None:
    facts = run("past_the_end", observer="memcheck", timeout_s=60)
    assert facts.sanitizer_xml is not None, stderr_of(facts)
    line = next(i for i, text in enumerate(bench.source.read_text().splitlines(), 1) if "// STORE" in text)
    xml = Path(facts.sanitizer_xml).read_text()
    assert f"<line>{line}</line>" in xml
    assert f"<path>{bench.source}</path>" in xml
    assert "ERROR SUMMARY" in Path(facts.sanitizer_log or "").read_text()
    assert facts.inner_exit is not None
    assert facts.inner_exit["exit_code"] == 1
    assert facts.result["buffers"][1]["name"] == "out"


@pytest.mark.parametrize("observer", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_a_right_kernel_is_clean_under_every_tool(run: Run, tool: sanitizer.Tool, observer: str) -> None:
    facts = run(observer=observer, timeout_s=60)
    assert facts.result.get("finished") is True, stderr_of(facts)
    log = Path(facts.sanitizer_log or "").read_text()
    assert "SUMMARY: 0" in log, log
    assert facts.inner_exit is not None
    assert facts.inner_exit["exit_code"] == 0


def test_tools_run_side_by_side(bench: Bench, device: str, tool: sanitizer.Tool) -> None:
    found: list[ProbeFacts] = []

    def one() -> None:
        found.append(bench.run(bench.one("past_the_end"), device=device, observer="memcheck", timeout_s=90))

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(facts.sanitizer_xml and "out of bounds" in Path(facts.sanitizer_xml).read_text() for facts in found)


def test_a_core_file_is_kept_small(run: Run) -> None:
    facts = run("far_load", observer="coredump")
    assert facts.core is not None, stderr_of(facts)
    assert 0 < os.path.getsize(facts.core) < 50 << 20
    assert facts.signal == 6


def test_a_hung_kernel_gives_a_core_when_asked(run: Run) -> None:
    facts = run("spin", observer="coredump", timeout_s=8)
    assert facts.timed_out
    assert facts.core is not None, facts.launch["notes"]


LATE = """
import ctypes
from cuda.bindings import driver, nvrtc

SOURCE = b'extern "C" __global__ void bad(float* p) { p[1ll << 33] = 1; }'

def good(*answer):
    assert int(answer[0]) == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]

def launch():
    good(*driver.cuInit(0))
    device = good(*driver.cuDeviceGet(0))
    good(*driver.cuCtxSetCurrent(good(*driver.cuDevicePrimaryCtxRetain(device))))
    kinds = driver.CUdevice_attribute
    major = good(*driver.cuDeviceGetAttribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = good(*driver.cuDeviceGetAttribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    program = good(*nvrtc.nvrtcCreateProgram(SOURCE, b"late.cu", 0, [], []))
    good(*nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=sm_%d%d" % (major, minor)]))
    code = bytearray(good(*nvrtc.nvrtcGetCUBINSize(program)))
    good(*nvrtc.nvrtcGetCUBIN(program, code))
    kernel = good(*driver.cuModuleGetFunction(good(*driver.cuModuleLoadData(bytes(code))), b"bad"))
    memory = ctypes.c_uint64(int(good(*driver.cuMemAlloc(512))))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    good(*driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(arguments), 0))
    return "launched, and nobody looked"
"""


def test_a_fault_that_a_python_program_never_looked_for_is_caught(tmp_path: Path, device: str, folder: Any) -> None:
    (tmp_path / "late.py").write_text(LATE)
    target = {"kind": "python", "file": str(tmp_path / "late.py"), "function": "launch", "kwargs": {}}
    request = ProbeRequest(target, str(folder()), observer="plain", device=device, limits=Limits(60))
    error = run_probe(request).result["error"]
    assert (error["step"], error["number"], error["call"]) == ("synchronise", 700, "cuCtxSynchronize")


def test_a_program_sees_its_own_device_only(device: str, folder: Any) -> None:
    target = {"kind": "command", "argv": ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]}
    facts = run_probe(ProbeRequest(target, str(folder()), device=device))
    assert facts.stdout is not None
    assert Path(facts.stdout.path).read_text().strip() == device.partition(":")[2]
