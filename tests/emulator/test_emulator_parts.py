"""The emulator's parts on their own: liveness, cache, objects, layout and scheduler, printf, device interface."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulated import launch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices import emulator, interface
from harness.devices.emulator import CompileError, EmulatedDevice, NotSupported, jit, layout, runtime_build
from harness.devices.emulator.cache import Cache, default_folder, key_of
from harness.devices.emulator.hostcalls import format_text
from harness.devices.emulator.liveness import live_after
from harness.devices.emulator.ptx import Instruction
from harness.devices.emulator.ptx_reader import parse

SAXPY = """extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }"""
PACKAGE = Path(emulator.__file__).parent


def test_registers_live_across_a_loop_and_a_guard() -> None:
    text = """.version 8.0
    .target sm_80
    .address_size 64
    .visible .entry k() { .reg .b32 %r<9>; .reg .pred %p<2>;
      mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 3;
      L: bar.sync 0;
      add.u32 %r1, %r1, %r2;
      @%p1 shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;
      setp.lt.u32 %p1, %r4, 9;
      @%p1 bra L;
      mov.u32 %r5, %r3; st.global.u32 [0], %r5; ret; }"""
    function = parse(text).functions["k"]
    points = [
        n for n, x in enumerate(function.body or ()) if isinstance(x, Instruction) and x.opcode in ("bar", "shfl")
    ]
    live = live_after(function, points)
    assert set(live[points[0]]) == {"%r1", "%r2", "%r3", "%r4", "%p1"}  # r4: a guarded destination keeps its value
    assert set(live[points[1]]) == {"%r1", "%r2", "%r3", "%r4"}


def test_the_shipped_scheduler_is_made_from_its_source() -> None:
    first = (PACKAGE / "runtime.ptx").read_text().split("\n", 1)[0]
    assert first == f"// sha256 {runtime_build.digest()}"


def test_context_round_trip() -> None:
    values = {name: n * 3 + 1 for n, (name, _) in enumerate(layout.CONTEXT_FIELDS)}
    packed = layout.pack_context(values)
    assert len(packed) == layout.CONTEXT_SIZE
    assert layout.unpack_context(packed) == values


def test_cache_keeps_and_survives_damage(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "folder")
    key = key_of("a", b"b")
    assert cache.get(key) is None
    cache.put(key, b"payload")
    assert cache.get(key) == b"payload"
    (entry,) = [p for p in tmp_path.rglob("*") if p.is_file()]
    for damage in (b"", b"x", entry.read_bytes()[:-1], entry.read_bytes() + b"x"):
        entry.write_bytes(damage)
        assert cache.get(key) is None
    assert key_of("ab", "c") != key_of("a", "bc")


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    cache.put(key_of("x"), b"data")
    assert cache.get(key_of("x")) is None


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDADIAG_CACHE", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own"
    monkeypatch.delenv("CUDADIAG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "cudadiag"


def test_second_device_takes_code_from_the_cache(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        device = EmulatedDevice(cache=tmp_path)
        found.append(device.kernel(device.compile(SAXPY, "/src/s.cu", []), "saxpy").from_cache)
    assert found == [False, True]
    for entry in tmp_path.rglob("*"):
        if entry.is_file():
            entry.write_bytes(b"damaged")
    device = EmulatedDevice(cache=tmp_path)
    assert not device.kernel(device.compile(SAXPY, "/src/s.cu", []), "saxpy").from_cache


def test_a_changed_header_is_not_served_from_the_cache(tmp_path: Path) -> None:
    header, path = tmp_path / "value.h", str(tmp_path / "k.cu")
    source = '#include "value.h"\nextern "C" __global__ void k(int* o) { *o = VALUE; }'
    seen = []
    for value in (3, 4):
        header.write_text(f"#define VALUE {value}\n")
        ran = launch(source, "k", 1, 1, [("o", np.zeros(1, np.int32))], path=path, cache=tmp_path / "cache")
        seen.append(int(ran["o"][0]))
    assert seen == [3, 4]


def test_a_missing_symbol_is_an_error_before_anything_runs() -> None:
    ir = (
        "declare i32 @no_such_function(i32)\ndefine i32 @f() {\n %r = call i32 @no_such_function(i32 1)\n ret i32 %r\n}"
    )
    image = jit.compile_ir(ir, jit.O0)
    assert jit.undefined_symbols(image) == ["no_such_function"]
    with pytest.raises(jit.LinkError, match="no_such_function"):
        jit.load(image)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda b: b"\x7fELF\x02" + b))
def test_any_bytes_as_an_object_give_symbols_or_an_error(data: bytes) -> None:
    try:
        assert isinstance(jit.undefined_symbols(data), list)
    except jit.LinkError:
        pass


def test_printf_arguments_are_aligned_as_cuda_passes_them() -> None:
    arguments = bytes([7, 0, 0, 0]) + bytes(4) + np.array([1.5]).tobytes() + np.array([-2, 9], np.int32).tobytes()
    printed, used = format_text(b"%d %.2f %hhd %u %%", 0, lambda a, n: arguments[a : a + n], lambda a: b"")
    assert (printed, used) == (b"7 1.50 -2 9 %", 4)


def test_the_device_speaks_the_interface() -> None:
    wanted = {n for n in vars(interface.Device) if not n.startswith("_")}
    assert wanted <= set(dir(EmulatedDevice))
    facts = EmulatedDevice("hardware").facts()
    assert facts["compute_capability"] == [8, 0]
    assert facts["memory_model"] == "hardware"
    assert facts["total_memory"] == 16 << 30


def test_loaded_by_file_path_and_nothing_heavy_before_it_is_needed() -> None:
    code = f"""
import importlib.util, sys
path = {str(PACKAGE)!r}
spec = importlib.util.spec_from_file_location("emu", path + "/__init__.py", submodule_search_locations=[path])
module = importlib.util.module_from_spec(spec); sys.modules["emu"] = module; spec.loader.exec_module(module)
device = module.EmulatedDevice()
assert device.allocate(100, "a")
heavy = [n for n in ("llvmlite", "cuda", "numpy", "harness", "cudadiag") if n in sys.modules]
assert not heavy, heavy
kernel = device.kernel(device.compile({SAXPY!r}, "/src/s.cu", []), "saxpy")
assert "harness" not in sys.modules and "cudadiag" not in sys.modules and "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


def test_a_compile_error_carries_nvrtcs_log() -> None:
    with pytest.raises(CompileError) as caught:
        EmulatedDevice(cache=False).compile("__global__ void k() { undeclared = 1; }", "/src/wrong.cu", [])
    assert "/src/wrong.cu(1)" in caught.value.log
    assert "undeclared" in caught.value.log


def test_kernels_by_plain_name_and_unknown_names() -> None:
    device = EmulatedDevice()
    module = device.compile(
        "namespace n { __global__ void inner(int*) {} } __global__ void plain(int*, float) {}", "/s.cu", []
    )
    assert device.kernel(module, "plain").entry.startswith("_Z5plain")
    assert device.kernel(module, "inner").entry.startswith("_ZN1n5inner")
    with pytest.raises(Exception, match="CUDA_ERROR_NOT_FOUND") as caught:
        device.kernel(module, "missing")
    assert caught.value.number == 500  # type: ignore[attr-defined]


@pytest.mark.parametrize("args", [[("int32", 1)], [("pointer", 0), ("float32", "x")], [("pointer", 0), ("int64", 5)]])
def test_arguments_that_do_not_fit_are_refused(args: list[Any]) -> None:
    with pytest.raises(NotSupported, match="k"):
        launch('extern "C" __global__ void k(int* o, int n) { *o = n; }', "k", 1, 1, args)


def test_zero_bytes_are_address_zero_and_copies_are_checked() -> None:
    device = EmulatedDevice()
    assert device.allocate(0, "nothing") == 0
    device.free(0)
    device.write(0, b"")
    a = device.allocate(10, "a")
    with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE"):
        device.read(a, 11)
    with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE"):
        device.write(a + 5, bytes(6))


def test_elapsed_time_is_in_microseconds() -> None:
    import time

    assert EmulatedDevice().elapsed_us(lambda: time.sleep(0.01)) == pytest.approx(10000, rel=2)


def test_launching_thousands_of_times_keeps_working() -> None:
    device = EmulatedDevice()
    kernel = device.kernel(device.compile(SAXPY, "/src/s.cu", []), "saxpy")
    x, y = device.allocate(400, "x"), device.allocate(400, "y")
    device.write(x, np.ones(100, np.float32).tobytes())
    device.write(y, np.zeros(100, np.float32).tobytes())
    for _ in range(2000):
        device.launch(
            kernel, (1, 1, 1), (128, 1, 1), 0, [("float32", 1.0), ("pointer", x), ("pointer", y), ("int32", 100)]
        )
    assert (np.frombuffer(device.read(y, 400), np.float32) == 2000).all()
    device.close()
