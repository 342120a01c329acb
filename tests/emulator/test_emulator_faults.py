"""Planted faults as recorded on an H200: the same CUDA error, and a record with the line, the thread, the buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated import launch

from harness.devices.emulator import CudaError, EmulatedDevice, NotSupported

STORE = 'extern "C" __global__ void k(float* p, size_t index, float v) {\n if (threadIdx.x == 5)\n  p[index] = v;\n}'


def zeros(n: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(n, dtype)


def test_far_store_is_an_illegal_address_with_everything_named() -> None:
    ran = launch(STORE, "k", 1, 32, [("a", zeros(1024)), ("uint64", 1 << 33), ("float32", 1.0)])
    assert (ran.error.number, ran.error.cuda_name) == (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert ran.error.text == "an illegal memory access was encountered"
    (record,) = ran.records
    assert record["kind"] == "out-of-bounds"
    assert (record["kernel"], record["file"], record["line"]) == ("k", "/src/kernel.cu", 3)
    assert (record["block"], record["thread"]) == ([0, 0, 0], [5, 0, 0])
    assert (record["access"], record["space"], record["size"]) == ("write", "global", 4)
    near = record["allocation"]
    assert (near["name"], near["size"], near["side"], near["state"]) == ("a", 4096, "after", "live")
    assert near["distance"] == 4 * (1 << 33) - 4096 + 1


def test_off_by_one_is_found_in_the_exact_model_and_hidden_by_the_hardware_model() -> None:
    source = (
        'extern "C" __global__ void k(float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; '
        "if (i <= n) p[i] = i; }"
    )
    args = [("a", zeros(1000)), ("int32", 1000)]
    exact = launch(source, "k", 8, 256, args)
    assert exact.error.number == 700
    assert exact.records[0]["allocation"]["distance"] == 1
    assert (exact.records[0]["block"], exact.records[0]["thread"]) == ([3, 0, 0], [232, 0, 0])
    hidden = launch(source, "k", 8, 256, args, memory_model="hardware")
    assert hidden.error is None
    assert hidden.records == []


def test_hardware_model_corrupts_the_neighbour_silently() -> None:
    device = EmulatedDevice("hardware")
    first, second = device.allocate(512, "first"), device.allocate(512, "second")
    assert second == first + 512
    device.write(second, bytes(512))
    launch(STORE, "k", 1, 32, [("pointer", first), ("uint64", 130), ("float32", 1.0)], device=device)
    assert np.frombuffer(device.read(second, 512), np.float32)[2] == 1.0


@pytest.mark.parametrize(("pages", "fault"), [(4.5, False), (18.0, True)])
def test_hardware_model_faults_only_outside_mapped_pages(pages: float, fault: bool) -> None:
    """As measured: 36 bytes behind an allocation of 4.5 pages pass, behind one of 18 pages fault."""
    device = EmulatedDevice("hardware")
    nbytes = int(pages * (2 << 20))
    scores = device.allocate(nbytes, "scores")
    args = [("pointer", scores), ("uint64", nbytes // 4 + 8), ("float32", 1.0)]
    ran = launch(STORE, "k", 1, 32, args, device=device)
    assert (ran.error is not None) == fault


def test_null_pointer() -> None:
    ran = launch(STORE, "k", 1, 32, [("pointer", 0), ("uint64", 0), ("float32", 1.0)])
    assert ran.error.number == 700
    assert ran.records[0]["address"] == 0


def test_host_pointer() -> None:
    host = np.zeros(32, np.float32)
    ran = launch(STORE, "k", 1, 32, [("pointer", host.ctypes.data), ("uint64", 0), ("float32", 1.0)])
    assert ran.error.number == 700


@pytest.mark.parametrize("model", ["exact", "hardware"])
def test_use_after_free(model: str) -> None:
    device = EmulatedDevice(model)
    kept = device.allocate(256 << 20, "kept")
    device.free(kept)
    ran = launch(STORE, "k", 1, 32, [("pointer", kept), ("uint64", 3), ("float32", 1.0)], device=device)
    assert ran.error.number == 700
    record = ran.records[0]
    assert record["kind"] == "use-after-free"
    assert (record["allocation"]["name"], record["allocation"]["state"]) == ("kept", "freed")


def test_double_free_is_an_invalid_argument_and_not_sticky() -> None:
    device = EmulatedDevice()
    a = device.allocate(64, "a")
    device.free(a)
    with pytest.raises(CudaError) as caught:
        device.free(a)
    assert (caught.value.number, caught.value.call) == (1, "cuMemFree_v2")
    device.synchronise()


def test_misaligned_vector_load() -> None:
    source = (
        'extern "C" __global__ void k(const float* p, float4* out) { '
        "out[threadIdx.x] = *(const float4*)(p + 1 + 4 * threadIdx.x); }"
    )
    ran = launch(source, "k", 1, 32, [("p", zeros(256)), ("out", zeros(128))])
    assert (ran.error.number, ran.error.text) == (716, "misaligned address")
    assert ran.records[0]["kind"] == "misaligned-address"
    assert (ran.records[0]["access"], ran.records[0]["size"]) == ("read", 16)


SHARED = """extern "C" __global__ void k(float* out, int off) {
 extern __shared__ float s[]; s[threadIdx.x] = threadIdx.x; __syncthreads();
 s[threadIdx.x + off] = 1.f;
 __syncthreads(); out[threadIdx.x] = s[threadIdx.x]; }"""


@pytest.mark.parametrize("model", ["exact", "hardware"])
@pytest.mark.parametrize("off", [64, 1 << 20])
def test_shared_memory_out_of_range(model: str, off: int) -> None:
    ran = launch(SHARED, "k", 1, 128, [("out", zeros(128)), ("int32", off)], shared=512, memory_model=model)
    assert ran.error.number == 700
    record = ran.records[0]
    assert (record["space"], record["access"], record["line"]) == ("shared", "write", 3)


def test_overrun_between_shared_variables_is_found_only_by_the_exact_model() -> None:
    source = """extern "C" __global__ void k(float* out, int i) { __shared__ float a[32]; __shared__ float b[32];
      a[threadIdx.x] = 1; b[threadIdx.x] = 2; __syncthreads(); if (threadIdx.x == 0) a[i] = 7; __syncthreads();
      out[threadIdx.x] = a[threadIdx.x] + 10 * b[threadIdx.x]; }"""
    args = [("out", zeros(32)), ("int32", 33)]
    assert launch(source, "k", 1, 32, args, memory_model="hardware").error is None
    exact = launch(source, "k", 1, 32, args)
    assert exact.error.number == 700
    assert exact.records[0]["space"] == "shared"
    right = launch(source, "k", 1, 32, [("out", zeros(32)), ("int32", 3)])
    assert right.error is None
    assert right["out"][3] == 27


def test_assert_prints_what_cuda_prints(capsys: pytest.CaptureFixture[str]) -> None:
    source = (
        '#include <cassert>\nextern "C" __global__ void k(int n) { '
        'assert((int)threadIdx.x < n && "index within tree"); }'
    )
    ran = launch(source, "k", 1, 32, [("int32", 8)])
    assert (ran.error.number, ran.error.text) == (710, "device-side assert triggered")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 24
    tail = 'block: [0,0,0], thread: [8,0,0] Assertion `(int)threadIdx.x < n && "index within tree"` failed.'
    assert lines[0].startswith("/src/kernel.cu:2: void k(int): ")
    assert lines[0].endswith(tail)
    assert ran.records[0]["kind"] == "device-assert"
    assert ran.records[0]["line"] == 2


def test_trap_is_a_launch_failure() -> None:
    ran = launch(
        'extern "C" __global__ void k(int n) { if ((int)threadIdx.x >= n) __trap(); }', "k", 1, 32, [("int32", 8)]
    )
    assert (ran.error.number, ran.error.text) == (719, "unspecified launch failure")
    assert ran.records[0]["thread"] == [8, 0, 0]


TABLE = """
typedef float (*fn_t)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float thrice(float x) { return 3 * x; }
__device__ fn_t table_[2] = {twice, thrice};
extern "C" __global__ void entry(float* out, long off) { fn_t f = *(fn_t*)((char*)table_ + off);
  out[threadIdx.x] = f((float)threadIdx.x); }
extern "C" __global__ void raw(float* out, unsigned long long raw) { fn_t f = (fn_t)raw;
  out[threadIdx.x] = f((float)threadIdx.x); }
"""


def test_function_pointers() -> None:
    right = launch(TABLE, "entry", 1, 32, [("out", zeros(32)), ("int64", 8)])
    assert right.error is None
    np.testing.assert_array_equal(right["out"], 3 * np.arange(32))
    beyond = launch(TABLE, "entry", 1, 32, [("out", zeros(32)), ("int64", 16)])
    assert beyond.error.number == 700
    assert beyond.records[0]["allocation"]["name"] == "table_"
    hardware = launch(TABLE, "entry", 1, 32, [("out", zeros(32)), ("int64", 16)], memory_model="hardware")
    assert hardware.error.number == 718
    odd = launch(TABLE, "raw", 1, 32, [("out", zeros(32)), ("uint64", 7)])
    assert odd.error.number == 716
    low = launch(TABLE, "raw", 1, 32, [("out", zeros(32)), ("uint64", 0x100000)])
    assert (low.error.number, low.records[0]["kind"]) == (718, "invalid-pc")


def test_stack_overflow() -> None:
    source = """__device__ __noinline__ int deep(int n, volatile int* p) { int big[64]; for (int i = 0;
      i < 64; ++i) big[i] = p[i & 3] + n;
      int r = n <= 0 ? 0 : deep(n - 1, p); for (int i = 0; i < 64; ++i) r += big[i]; return r; }
      extern "C" __global__ void k(int* p, int n) { p[0] = deep(n, p); }"""
    shallow = launch(source, "k", 1, 1, [("p", zeros(8, np.int32)), ("int32", 2)])
    assert shallow.error is None
    ran = launch(source, "k", 1, 1, [("p", zeros(8, np.int32)), ("int32", 1000000)])
    assert ran.error.number == 700
    assert ran.records[0]["kind"] == "hardware-stack"


@pytest.mark.parametrize("suspends", [False, True])
def test_endless_recursion_without_locals(suspends: bool) -> None:
    exchange = "n += __shfl_xor_sync(~0u, n, 1);" if suspends else ""
    source = f"""__device__ __noinline__ int down(int n) {{ {exchange} return n == 7 ? 1 : down(n + 2) * n + 1; }}
      extern "C" __global__ void k(int* p, int n) {{ p[threadIdx.x] = down(n); }}"""
    ran = launch(source, "k", 1, 32, [("p", zeros(32, np.int32)), ("int32", 0)])
    assert ran.error.number == 700
    assert ran.records[0]["kind"] == "hardware-stack"


def test_local_array_out_of_range() -> None:
    source = """extern "C" __global__ void k(int* o, int i) { int a[8]; for (int j = 0; j < 8; ++j) a[j] = o[j];
      a[i] = 5; int s = 0; for (int j = 0; j < 8; ++j) s += a[j]; o[0] = s + a[i & 7]; }"""
    ran = launch(source, "k", 1, 1, [("o", zeros(8, np.int32)), ("int32", 100)])
    assert ran.error.number == 700
    assert ran.records[0]["space"] == "local"


def test_device_heap_exhausted_and_bad_free() -> None:
    source = 'extern "C" __global__ void k(size_t n) { float* q = (float*)malloc(n); q[threadIdx.x] = 1.f; }'
    ran = launch(source, "k", 1, 32, [("uint64", 1 << 36)])
    assert ran.error.number == 700
    bad = launch('extern "C" __global__ void k(int* p) { free(p); }', "k", 1, 1, [("p", zeros(4, np.int32))])
    assert bad.error.number == 719


def test_int32_overflow_of_an_index() -> None:
    source = (
        'extern "C" __global__ void k(float* p, int rows, int cols) { '
        "int r = blockIdx.x * blockDim.x + threadIdx.x; if (r < rows) p[r * cols] = 1.f; }"
    )
    device = EmulatedDevice()
    p = device.allocate(40000 * 60000 * 4, "p")
    ran = launch(source, "k", 157, 256, [("pointer", p), ("int32", 40000), ("int32", 60000)], device=device)
    assert ran.error.number == 700
    assert ran.records[0]["allocation"]["side"] == "before"


def test_planted_illegal_instruction() -> None:
    source = (
        'extern "C" __global__ void k(int* o, int n) {\n int v = o[threadIdx.x];\n if (n > 5)\n  v = v * 3 + '
        "1;\n o[threadIdx.x] = v;\n}"
    )
    plant = {"kind": "illegal-instruction", "entry": "k", "line": 5}
    ran = launch(source, "k", 1, 32, [("o", zeros(32, np.int32)), ("int32", 7)], plant=plant)
    assert (ran.error.number, ran.error.text) == (715, "an illegal instruction was encountered")
    assert (ran.records[0]["kind"], ran.records[0]["line"]) == ("illegal-instruction", 5)


LIMITS = [
    ((1, 1, 1), (2048, 1, 1), 0, "Block Dimension X of 2048 exceeds maximum value of 1024"),
    ((1, 70000, 1), (32, 1, 1), 0, "Grid Dimension Y of 70000 exceeds maximum value of 65535"),
    ((0, 1, 1), (32, 1, 1), 0, "Grid Dimension X of 0"),
    ((1, 1, 1), (64, 64, 1), 0, "4096 exceeds maximum value of 1024"),
    (
        (1, 1, 1),
        (32, 1, 1),
        300 * 1024,
        "Requested dynamic shared memory size of 307200 bytes exceeds maximum dynamic shared memory size of",
    ),
]


@pytest.mark.parametrize(("grid", "block", "shared", "words"), LIMITS)
def test_launch_limits_with_the_drivers_words(
    grid: Any, block: Any, shared: int, words: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "driver.log"
    monkeypatch.setenv("CUDA_LOG_FILE", str(log))
    ran = launch(STORE, "k", grid, block, [("a", zeros(8)), ("uint64", 0), ("float32", 1.0)], shared=shared)
    assert (ran.error.number, ran.error.text, ran.error.call) == (1, "invalid argument", "cuLaunchKernel")
    assert ran.records == []
    ran.device.synchronise()  # not sticky
    text = log.read_text()
    assert words in text
    assert "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernel" in text


def test_a_fault_breaks_the_context_for_every_later_call(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "driver.log"
    monkeypatch.setenv("CUDA_LOG_FILE", str(log))
    device = EmulatedDevice(observer="plain")
    kernel = device.kernel(device.compile(STORE, "/src/k.cu", []), "k")
    a = device.allocate(64, "a")
    args = [("pointer", a), ("uint64", 1 << 33), ("float32", 1.0)]
    device.launch(kernel, (1, 1, 1), (32, 1, 1), 0, args)  # returns: a launch is asynchronous
    calls = [
        (device.synchronise, "cuCtxSynchronize"),
        (lambda: device.allocate(64, "b"), "cuMemAlloc_v2"),
        (lambda: device.read(a, 4), "cuMemcpyDtoH_v2"),
        (lambda: device.launch(kernel, (1, 1, 1), (32, 1, 1), 0, args), "cuLaunchKernel"),
    ]
    for call, name in calls:
        with pytest.raises(CudaError) as caught:
            call()
        assert (caught.value.number, caught.value.call) == (700, name)
    lines = log.read_text().splitlines()
    assert lines[0].endswith("Returning 700 (CUDA_ERROR_ILLEGAL_ADDRESS) from cuCtxSynchronize_v2")
    assert lines[1].endswith("Sticky error detected")


def test_out_of_memory() -> None:
    device = EmulatedDevice(device_bytes=1 << 30)
    device.allocate(1 << 29, "half")
    with pytest.raises(CudaError) as caught:
        device.allocate((1 << 29) + 1, "rest")
    assert (caught.value.number, caught.value.text) == (2, "out of memory")
    device.allocate(1 << 20, "small")


def test_the_inlining_chain_is_kept_innermost_first() -> None:
    source = """__device__ __forceinline__ void put(float* p, int i) {
  p[i] = 1.f;
}
extern "C" __global__ void k(float* p, int i) {
  put(p, i);
}"""
    ran = launch(source, "k", 1, 1, [("p", zeros(4)), ("int32", 4)])
    frames = ran.records[0]["frames"]
    assert [f["line"] for f in frames] == [2, 5]
    assert "put" in frames[0]["function"]
    assert ran.records[0]["line"] == 2


def test_the_first_fault_in_block_order_is_reported_with_several_workers() -> None:
    source = (
        'extern "C" __global__ void k(int* p) { if (blockIdx.x >= 37) p[1000 + blockIdx.x] = 1; '
        "else p[blockIdx.x % 8] = 2; }"
    )
    for _ in range(5):
        ran = launch(source, "k", 4000, 64, [("p", zeros(8, np.int32))], workers=2)
        assert ran.records[0]["block"] == [37, 0, 0]


def test_an_underrun_as_long_as_the_buffer_does_not_reach_the_one_before() -> None:
    device = EmulatedDevice()
    device.allocate(1 << 20, "small")
    large = device.allocate(64 << 20, "large")
    for index in (-(64 << 20) // 4, (128 << 20) // 4 - 1):
        fresh = EmulatedDevice()
        fresh.memory = device.memory
        args = [("pointer", large), ("uint64", index % (1 << 64)), ("float32", 1.0)]
        ran = launch(STORE, "k", 1, 32, args, device=fresh)
        assert ran.error.number == 700


def test_grid_wide_synchronisation_is_refused_not_guessed() -> None:
    source = """
    #include <cooperative_groups.h>
    extern "C" __global__ void k(int* o) { cooperative_groups::this_grid().sync(); o[0] = 1; }"""
    with pytest.raises(NotSupported, match="envreg"):
        launch(source, "k", 2, 32, [("o", zeros(1, np.int32))])
