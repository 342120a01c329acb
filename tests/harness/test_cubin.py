"""Machine code from the real NVRTC: compiled without a GPU, its line table read, an instruction overwritten."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices import compiler, cubin, interface

SOURCE = r"""
__device__ __noinline__ float helper(float x, int n) {
    float s = 0;
    for (int i = 0; i < n; i++)
        s += x * i;
    return s;
}
extern "C" __global__ void flat(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < 16) {
        for (int k = 0; k < n; k++)
            out[k * n + i] = in[i] / (k + 1);  // PLANT
        return;
    }
    out[i] = helper(in[i], n);  // ELSE
}
extern "C" __global__ void special_case(float* out, const float* in, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < 16) {
        for (int k = 0; k < n; k++) {
            __syncthreads();
            if (i == k) out[i] = in[i] * by;  // SPECIAL
        }
        return;
    }
    if (i < n) out[i] = in[i] * by;  // OTHERWISE
}
extern "C" __global__ void short_guard(int* p, int n) {
    int i = threadIdx.x;
    if (n > 5)
        p[i] = 3;  // SHORT
    __syncthreads();
    p[i + 100] = n;
}
__global__ void other(int* p) { p[threadIdx.x] = 3; }
__global__ void twin(int* p) { p[threadIdx.x] = 4; }
__global__ void twin(float* p) { p[threadIdx.x] = 4; }
"""
PATH = "/somewhere/else/kernels.cu"


def line_of(marker: str) -> int:
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if marker in line)


PLANT_LINE = line_of("// PLANT")
ARCHITECTURES = [(7, 5), (8, 0), (9, 0), (10, 0), (12, 0)]


@pytest.fixture(scope="module")
def codes() -> dict[tuple[int, int], bytes]:
    try:
        return {
            capability: compiler.compile_cubin(SOURCE, PATH, [], capability, interface)[0]
            for capability in ARCHITECTURES
        }
    except interface.NotSupported as problem:
        pytest.skip(str(problem))


Codes = dict[tuple[int, int], bytes]


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_functions_are_found_by_their_plain_names(codes: Codes, capability: tuple[int, int]) -> None:
    code = cubin.Cubin(codes[capability])
    assert cubin.find_function(code.functions(), "flat") == "flat"
    assert cubin.find_function(code.functions(), "other") == "_Z5otherPi"
    assert cubin.find_function(code.functions(), "twin") is None, "two overloads: neither is meant"
    assert cubin.find_function(code.functions(), "_Z4twinPf") == "_Z4twinPf"
    assert cubin.find_function(code.functions(), "helper") is None


def disassembly(code: bytes, place: Path) -> str:
    from cuda.pathfinder import find_nvidia_binary_utility

    tool = find_nvidia_binary_utility("nvdisasm")
    if tool is None:
        pytest.skip("nvdisasm is not installed: pip install 'cudadiag[sanitizer]'")
    (place / "code.cubin").write_bytes(code)
    return subprocess.run(
        [tool, "-g", "-c", str(place / "code.cubin")], capture_output=True, text=True, check=True
    ).stdout


def disassembled_lines(code: bytes, place: Path) -> dict[str, dict[int, int]]:
    """Function -> pc -> source line, as NVIDIA's own disassembler tells it."""
    text = disassembly(code, place)
    found: dict[str, dict[int, int]] = {}
    line = 0
    for row in text.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.(\w+)", row):
            rows = found.setdefault(section[1], {})
            line = 0
        elif place_of := re.search(r'//## File "[^"]*", line (\d+)', row):
            line = int(place_of[1])
        elif instruction := re.match(r"\s+/\*([0-9a-f]{4,})\*/", row):
            rows[int(instruction[1], 16)] = line
    return found


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_the_line_table_is_nvdisasms(codes: Codes, capability: tuple[int, int], tmp_path: Path) -> None:
    code = cubin.Cubin(codes[capability])
    expected = disassembled_lines(codes[capability], tmp_path)
    assert set(expected) == set(code.functions())
    for function, lines in expected.items():
        read = {pc: row[3] for row in code.lines(function) for pc in range(row[0], row[1], 16)}
        assert {pc: line for pc, line in lines.items() if line} == {pc: read[pc] for pc, line in lines.items() if line}
        assert {row[2] for row in code.lines(function)} == {PATH}


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_overwriting_changes_one_instruction(codes: Codes, capability: tuple[int, int]) -> None:
    code = cubin.Cubin(codes[capability])
    pc = code.effects_of_line("flat", PATH, PLANT_LINE)[0]
    assert PLANT_LINE in [line for begin, end, _, line in code.lines("flat") if begin <= pc < end]
    old = code.overwrite("flat", pc)
    section = code.section(".text.flat")
    assert section is not None
    before, after = codes[capability], bytes(code.data)
    place = section.offset + pc
    assert before[place : place + 16] == old != after[place : place + 16] == b"\xff" * 16
    assert (before[:place], before[place + 16 :]) == (after[:place], after[place + 16 :])


def instructions(code: bytes, place: Path) -> dict[str, list[tuple[int, str, str, int | None]]]:
    """Function -> (pc, predicate, words, pc of the label it names), by NVIDIA's own disassembler."""
    text = disassembly(code, place)
    found: dict[str, list[tuple[int, str, str, int | None]]] = {}
    for section in re.split(r"\n\s*\.section\s+\.text\.", text)[1:]:
        labels: dict[str, int] = {}
        waiting: list[str] = []
        rows = []
        for row in section.splitlines():
            if label := re.match(r"\s*(\.L_x_\d+):", row):
                waiting.append(label[1])
            elif word := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+)?\s*(\S.*?)\s*;", row):
                pc = int(word[1], 16)
                labels.update(dict.fromkeys(waiting, pc))
                waiting.clear()
                rows.append((pc, word[2] or "", word[3]))
        name = section[: section.index(",")]
        target = {pc: re.search(r"`\((\.L_x_\d+)\)", words) for pc, _, words in rows}
        found[name] = [(pc, p, w, labels[t[1]] if (t := target[pc]) else None) for pc, p, w in rows]
    return found


def ways(rows: list[tuple[int, str, str, int | None]]) -> dict[int, list[int]]:
    """Where each instruction can lead: a small reading of the branches."""
    last = rows[-1][0]
    found = {}
    for pc, predicate, words, label in rows:
        ends = re.match(r"(EXIT|RET|BRA|BRX|JMP)\b", words) is not None
        follows = [] if (ends and not predicate and " P" not in words) or pc == last else [pc + 16]
        found[pc] = follows + ([label] if words.startswith("BRA") and label is not None else [])
    return found


def reached(start: int, edges: dict[int, list[int]], without: set[int]) -> set[int]:
    """Every pc on a way from `start` that passes through none of `without`."""
    seen: set[int] = set()
    ahead = [start]
    while ahead:
        pc = ahead.pop()
        if pc not in seen and pc not in without:
            seen.add(pc)
            ahead += edges[pc]
    return seen


@pytest.mark.parametrize("capability", ARCHITECTURES)
@pytest.mark.parametrize(("entry", "marker"), [("flat", "// PLANT"), ("special_case", "// SPECIAL")])
def test_the_lines_path_and_no_other_meets_the_planted_instructions(
    codes: Codes, capability: tuple[int, int], entry: str, marker: str, tmp_path: Path
) -> None:
    """No turn of the line's loop, however it was unrolled, goes by them; the other path does not come near them."""
    code = cubin.Cubin(codes[capability])
    planted = set(code.effects_of_line(entry, PATH, line_of(marker)))
    edges = ways(instructions(codes[capability], tmp_path)[entry])
    free = reached(0, edges, planted)
    idle = {pc for pc, after in edges.items() if after == [pc]}  # the branch to itself after every kernel's end
    for pc in free - idle:
        assert not any(pc in reached(after, edges, planted) for after in edges[pc]), f"a loop at {pc:#x} goes by them"
    other = line_of("// ELSE" if entry == "flat" else "// OTHERWISE")
    stores = code.effects_of_line(entry, PATH, other)
    assert set(stores) <= free
    assert all(not planted & reached(pc, edges, set()) for pc in stores), "the paths come together again"


def test_a_guard_that_became_a_predicate_is_refused(codes: Codes) -> None:
    """Threads that do not run the line pass over such an instruction, and would meet what is written over it."""
    code = cubin.Cubin(codes[9, 0])
    with pytest.raises(cubin.BadCubin, match="is guarded by a predicate in short_guard"):
        code.effects_of_line("short_guard", PATH, line_of("// SHORT"))


@pytest.mark.parametrize(("function", "pc"), [("flat", 8), ("flat", -16), ("flat", 1 << 20), ("absent", 0)])
def test_what_cannot_be_overwritten_is_refused(codes: Codes, function: str, pc: int) -> None:
    with pytest.raises(cubin.BadCubin, match=f"no instruction at {pc:#x} in {function}"):
        cubin.Cubin(codes[9, 0]).overwrite(function, pc)


def test_a_line_without_code_is_refused(codes: Codes) -> None:
    with pytest.raises(cubin.BadCubin, match=r"line 1 of kernels\.cu has no machine code in flat"):
        cubin.Cubin(codes[9, 0]).effects_of_line("flat", PATH, 1)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_files_are_refused_not_misread(codes: Codes, data: st.DataObject) -> None:
    """Truncated or with bytes changed: a BadCubin, or an answer, never another exception and never a hang."""
    code = bytearray(codes[9, 0])
    for _ in range(data.draw(st.integers(0, 8))):
        code[data.draw(st.integers(0, len(code) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(code)), st.integers(0, len(code))))
    try:
        damaged = cubin.Cubin(bytes(code[:cut]))
        for function in damaged.functions():
            damaged.lines(function)
    except cubin.BadCubin:
        pass


def test_the_compilers_log_is_told_whole() -> None:
    with pytest.raises(interface.CompileError) as refused:
        compiler.compile_cubin("__global__ void f() { x = 1; }", PATH, [], (9, 0), interface)
    assert refused.value.log.startswith(f'{PATH}(1): error: identifier "x" is undefined')


def test_an_unknown_architecture_is_not_supported() -> None:
    with pytest.raises(interface.NotSupported, match="does not compile for sm_35, only sm_75"):
        compiler.compile_cubin("__global__ void f() {}", PATH, [], (3, 5), interface)


def test_an_unknown_option_is_a_compile_error() -> None:
    with pytest.raises(interface.CompileError, match="--nonsense"):
        compiler.compile_cubin("__global__ void f() {}", PATH, ["--nonsense"], (9, 0), interface)


def test_ptx_only_is_refused() -> None:
    with pytest.raises(interface.CompileError, match="use -arch=sm_NN"):
        compiler.compile_cubin("__global__ void f() {}", PATH, ["-arch=compute_90"], (9, 0), interface)


def test_toolkit_headers_are_found() -> None:
    body = "__global__ void f(__half* p) { p[0] = __float2half(1.f); }"
    source = f"#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n{body}"
    if not any(os.path.isdir(os.path.join(folder, "crt")) for folder in compiler.header_folders()):
        pytest.skip("no CUDA headers here: pip install 'cudadiag[kernel]'")
    assert compiler.compile_cubin(source, PATH, [], (9, 0), interface)[0][:4] == b"\x7fELF"


def test_host_headers_may_be_included_as_on_the_emulated_device() -> None:
    source = "#include <cmath>\n#include <cstdint>\n#include <stdio.h>\n__global__ void f(float* p) { *p = sqrtf(*p); }"
    assert compiler.compile_cubin(source, PATH, [], (9, 0), interface)[0][:4] == b"\x7fELF"


def test_ptx_names_its_kernels_as_the_driver_knows_them_and_the_architecture_becomes_a_virtual_one() -> None:
    ptx, _ = compiler.compile_ptx(SOURCE, PATH, ["-arch=sm_90a"], (9, 0), interface)
    assert b".target sm_90a" in ptx
    assert b".loc" in ptx
    assert set(cubin.ptx_kernels(ptx)) >= {"flat", "_Z5otherPi"}
    assert ptx.endswith(b"\0")


def test_without_optimisation_the_code_is_larger_and_has_lines_of_its_own() -> None:
    usual, _ = compiler.compile_cubin(SOURCE, PATH, [], (9, 0), interface)
    plain, log = compiler.compile_cubin(SOURCE, PATH, ["--device-debug"], (9, 0), interface)
    assert len(plain) > len(usual)
    assert "Conflicting" not in log
    assert cubin.Cubin(plain).lines("flat")
