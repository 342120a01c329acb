"""What C++ on a device has beside arithmetic: calls, recursion, pointers, local arrays, printf, the heap."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import launch

RNG = np.random.default_rng(7)


def ints(n: int, low: int = -1000, high: int = 1000) -> np.ndarray:
    return RNG.integers(low, high, n).astype(np.int32)


def floats(n: int) -> np.ndarray:
    return RNG.standard_normal(n).astype(np.float32)


FUNCTIONS = """
struct P { float a; int b; double c; };
__device__ __noinline__ float poly(float x, int y, P p) { float r = x; for (int i = 0; i < y;
  ++i) r = r * p.a + p.b; return r + (float)p.c; }
__device__ __noinline__ P make(int i) { P p; p.a = i * 0.5f; p.b = i; p.c = i * 2.0; return p; }
__device__ __noinline__ float wsum(float v) { for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  __syncthreads(); return v; }
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
typedef float (*fp)(float);
__device__ float sq(float x) { return x * x; }
__device__ float cu(float x) { return x * x * x; }
__device__ fp tab[2] = {sq, cu};
__constant__ float coef[4] = {1, 2, 3, 4};
extern "C" __global__ void functions(const float* x, float* o, int n) {
  int i = threadIdx.x; P p = make(n + i % 3);
  float v = poly(x[i], n, p);
  o[i] = v; o[64 + i] = wsum(x[i]); o[128 + i] = fib(n + 5); o[192 + i] = tab[(n + i) & 1](x[i]);
    o[256 + i] = coef[i & 3];
}"""


def test_functions_direct_indirect_recursive_and_suspending() -> None:
    x = floats(64)
    ran = launch(FUNCTIONS, "functions", 1, 64, [("x", x), ("o", np.zeros(320, np.float32)), ("int32", 3)])
    assert ran.error is None
    o = ran["o"].reshape(5, 64)
    i = np.arange(64)
    k = (3 + i % 3).astype(np.float32)
    r = x.copy()
    for _ in range(3):
        r = (r.astype(np.float64) * (k * 0.5) + k).astype(np.float32)
    np.testing.assert_allclose(o[0], r + 2 * k, rtol=1e-5)
    np.testing.assert_allclose(o[1], np.repeat(x.reshape(2, 32).sum(1), 32), rtol=1e-3, atol=1e-5)
    assert (o[2] == 21).all()
    np.testing.assert_allclose(o[3], np.where((3 + i) & 1, x * x * x, x * x), rtol=1e-6)
    np.testing.assert_array_equal(o[4], np.array([1, 2, 3, 4], np.float32)[i & 3])


def test_recursion_that_suspends_at_every_level() -> None:
    source = """
    __device__ __noinline__ int down(int n, int v) {
      int local[4]; for (int i = 0; i < 4; ++i) local[i] = v + i;
      v = __shfl_xor_sync(~0u, v, 1);
      int r = n ? down(n - 1, v + n) : v;
      r += __shfl_xor_sync(~0u, local[(n + v) & 3], 2);
      return r;
    }
    extern "C" __global__ void k(int* o, int n) { o[threadIdx.x] = down(n, threadIdx.x * 10); }"""

    def down(n: int, v: np.ndarray) -> np.ndarray:
        lane = np.arange(32)
        local = v[None, :] + np.arange(4)[:, None]
        v = v[lane ^ 1]
        r = down(n - 1, v + n) if n else v
        picked = local[(n + v) & 3, lane]
        return r + picked[lane ^ 2]

    ran = launch(source, "k", 1, 32, [("o", np.zeros(32, np.int32)), ("int32", 5)])
    assert ran.error is None
    np.testing.assert_array_equal(ran["o"], down(5, np.arange(32) * 10))


def test_function_pointer_to_a_function_that_suspends() -> None:
    source = """
    typedef int (*fn)(int);
    __device__ __noinline__ int up(int v) { return __shfl_up_sync(~0u, v, 1); }
    __device__ __noinline__ int sum(int v) { return __reduce_add_sync(~0u, v); }
    __device__ fn table[2] = {up, sum};
    extern "C" __global__ void k(int* o, int which) { o[threadIdx.x] = table[which](threadIdx.x); }"""
    up = launch(source, "k", 1, 32, [("o", np.zeros(32, np.int32)), ("int32", 0)])
    total = launch(source, "k", 1, 32, [("o", np.zeros(32, np.int32)), ("int32", 1)])
    np.testing.assert_array_equal(up["o"], [0, *range(31)])
    np.testing.assert_array_equal(total["o"], 496)


def test_local_arrays_indexed_at_run_time() -> None:
    source = """
    extern "C" __global__ void k(const int* x, int* o) {
      int a[16]; for (int i = 0; i < 16; ++i) a[i] = x[i] * (threadIdx.x + 1);
      int* p = a; for (int i = 0; i < 16; ++i) { int j = x[i] & 15; int q = p[j]; p[j] = p[i]; p[i] = q; }
      __syncthreads();
      int s = 0; for (int i = 0; i < 16; ++i) s = s * 31 + a[i]; o[threadIdx.x] = s;
    }"""
    x = ints(16)

    def expected(t: int) -> int:
        a = [int(v) * (t + 1) for v in x]
        for i in range(16):
            j = int(x[i]) & 15
            a[i], a[j] = a[j], a[i]
        s = 0
        for v in a:
            s = (s * 31 + v) & 0xFFFFFFFF
        return s

    ran = launch(source, "k", 1, 64, [("x", x), ("o", np.zeros(64, np.int32))])
    assert ran.error is None
    np.testing.assert_array_equal(ran["o"].view(np.uint32), [expected(t) for t in range(64)])


def test_switches_in_a_loop() -> None:
    source = """
    extern "C" __global__ void k(const int* op, int* o, int n) {
      int v = threadIdx.x;
      #pragma unroll 1
      for (int i = 0; i < n; ++i) switch (op[i]) {
        case 0: v += i; break; case 1: v *= 3; break; case 2: v ^= i; break; case 3: v -= 7; break;
        case 4: v = v << 2; break; case 5: v = v / 3; break; case 6: v = v % 7; break; case 7: v = __popc(v); break;
        case 8: v = ~v; break; case 9: v = -v; break; default: v = 1; }
      o[threadIdx.x] = v;
    }"""
    op = ints(40, 0, 11)

    def one(v: int) -> int:
        for i, k in enumerate(op):
            sign = -1 if v < 0 else 1
            ones = bin(v & 0xFFFFFFFF).count("1")
            quotient, rest = sign * (abs(v) // 3), sign * (abs(v) % 7)
            v = (v + i, v * 3, v ^ i, v - 7, v << 2, quotient, rest, ones, ~v, -v, 1)[k]
            v = (v + (1 << 31)) % (1 << 32) - (1 << 31)
        return v

    ran = launch(source, "k", 1, 32, [("op", op), ("o", np.zeros(32, np.int32)), ("int32", 40)])
    assert ran.error is None
    np.testing.assert_array_equal(ran["o"], [one(t) for t in range(32)])


def test_printf_formats_as_cuda_does(capsys: pytest.CaptureFixture[str]) -> None:
    source = """
    #include <cstdio>
    extern "C" __global__ void k(int n, double d, const char* s) {
      if (threadIdx.x < 2)
        printf("t%d %5.2f|%-4d|%04x %llu %s %c %% %g\\n", threadIdx.x, d, n, n, 1ull << 40, "text", 'z', 1e-5);
    }"""
    ran = launch(source, "k", 1, 32, [("int32", 42), ("float64", 2.5), ("pointer", 0)])
    assert ran.error is None
    line = " 2.50|42  |002a 1099511627776 text z % 1e-05\n"
    assert capsys.readouterr().out == f"t0 {line}t1 {line}"


def test_device_malloc_and_free() -> None:
    source = """
    #include <cstdlib>
    extern "C" __global__ void k(int* o, int n) {
      int* p = (int*)malloc(n * sizeof(int));
      if (!p) { o[threadIdx.x] = -1; return; }
      for (int i = 0; i < n; ++i) p[i] = i * threadIdx.x;
      int s = 0; for (int i = 0; i < n; ++i) s += p[i];
      o[threadIdx.x] = s; free(p);
    }"""
    ran = launch(source, "k", 1, 32, [("o", np.zeros(32, np.int32)), ("int32", 10)])
    assert ran.error is None
    np.testing.assert_array_equal(ran["o"], 45 * np.arange(32))
    full = launch(source, "k", 1, 32, [("o", np.zeros(32, np.int32)), ("int32", 1 << 22)])
    np.testing.assert_array_equal(full["o"], -1)


def test_generic_pointers_to_every_space() -> None:
    source = """
    __device__ __noinline__ int sum(const int* p, int n) { int s = 0; for (int i = 0; i < n; ++i) s += p[i]; return s; }
    extern "C" __global__ void k(const int* g, int* o) {
      __shared__ int s[8]; int l[8];
      if (threadIdx.x < 8) s[threadIdx.x] = g[threadIdx.x] * 2;
      for (int i = 0; i < 8; ++i) l[i] = g[i] * 3 + threadIdx.x;
      __syncthreads();
      const int* p = threadIdx.x % 3 == 0 ? g : threadIdx.x % 3 == 1 ? s : l;
      o[threadIdx.x] = sum(p, 8); o[32 + threadIdx.x] = __isGlobal(p) + 2 * __isShared(p) + 4 * __isLocal(p);
    }"""
    g = ints(8)
    ran = launch(source, "k", 1, 32, [("g", g), ("o", np.zeros(64, np.int32))])
    assert ran.error is None
    t = np.arange(32)
    s = int(g.sum())
    np.testing.assert_array_equal(ran["o"][:32], np.select([t % 3 == 0, t % 3 == 1], [s, 2 * s], 3 * s + 8 * t))
    np.testing.assert_array_equal(ran["o"][32:], np.array([1, 2, 4])[t % 3])


def test_struct_parameters_by_value() -> None:
    source = """
    struct A { int n; float f[6]; double d; };
    extern "C" __global__ void k(A a, float* o, char c) { o[threadIdx.x] = a.f[threadIdx.x % a.n] + a.d + c; }"""
    packed = np.array([5], np.int32).tobytes() + np.arange(6, dtype=np.float32).tobytes() + bytes(4)
    packed += np.array([0.5]).tobytes()
    ran = launch(source, "k", 1, 32, [("struct", packed), ("o", np.zeros(32, np.float32)), ("int8", 3)])
    assert ran.error is None
    np.testing.assert_array_equal(ran["o"], np.arange(32) % 5 + 3.5)


def test_indexed_branches() -> None:
    ptx = """
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 o) {
      .reg .b32 %r<6>; .reg .b64 %rd<4>;
      ld.param.u64 %rd1, [o]; cvta.to.global.u64 %rd1, %rd1;
      mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3;
      table: .branchtargets A, B, C, B;
      brx.idx %r2, table;
      A: mov.u32 %r3, 10; bra D;
      B: mov.u32 %r3, 20; bra D;
      C: mov.u32 %r3, 30;
      D: mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3; ret;
    }"""
    ran = launch(ptx, "k", 1, 32, [("o", np.zeros(32, np.int32))], ptx=True)
    assert ran.error is None
    np.testing.assert_array_equal(ran["o"], np.array([10, 20, 30, 20])[np.arange(32) % 4])
