"""Kernels of every family, run on the emulated device and compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import launch

from harness.devices.emulator import NotSupported

RNG = np.random.default_rng(7)


def ints(n: int, low: int = -1000, high: int = 1000) -> np.ndarray:
    return RNG.integers(low, high, n).astype(np.int32)


def floats(n: int) -> np.ndarray:
    return RNG.standard_normal(n).astype(np.float32)


def test_block_reduction_with_shuffles_and_shared_memory() -> None:
    source = """
    extern "C" __global__ void reduce(const float* x, float* o, int n) {
      __shared__ float s[32];
      float v = 0;
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
      for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
      if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
      __syncthreads();
      if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0;
        for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
        if (threadIdx.x == 0) atomicAdd(o, v);
      }
    }"""
    x = floats(5000)
    ran = launch(source, "reduce", 4, 256, [("x", x), ("o", np.zeros(1, np.float32)), ("int32", 5000)])
    assert ran.error is None
    assert ran["o"][0] == pytest.approx(x.sum(dtype=np.float64), abs=1e-3)


def test_tiled_matrix_product() -> None:
    source = """
    extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
      __shared__ float s[16][16], t[16][16];
      int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
      float sum = 0;
      for (int k = 0; k < n; k += 16) {
        s[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
        __syncthreads();
        for (int j = 0; j < 16; ++j) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
      }
      c[row * n + col] = sum;
    }"""
    a, b = floats(64 * 64).reshape(64, 64), floats(64 * 64).reshape(64, 64)
    args = [("a", a), ("b", b), ("c", np.zeros((64, 64), np.float32)), ("int32", 64)]
    ran = launch(source, "product", (4, 4), (16, 16), args)
    assert ran.error is None
    np.testing.assert_allclose(ran["c"], a @ b, rtol=1e-4, atol=1e-4)


WARP = """
extern "C" __global__ void warp(const int* x, int* o) {
  int t = threadIdx.x, v = x[t];
  o[t] = __shfl_up_sync(~0u, v, 3);
  o[64 + t] = __shfl_sync(~0u, v, 5, 8);
  o[128 + t] = __ballot_sync(~0u, v > 0);
  o[192 + t] = __any_sync(~0u, v > 990) + 2 * __all_sync(~0u, v > -2000) + 4 * __all_sync(~0u, v > 0);
  o[256 + t] = __match_any_sync(~0u, v & 3);
  o[320 + t] = __reduce_add_sync(~0u, v);
  o[384 + t] = __reduce_min_sync(~0u, v);
  o[448 + t] = __reduce_max_sync(~0u, (unsigned)v);
  o[512 + t] = __reduce_xor_sync(~0u, (unsigned)v);
  int all; o[576 + t] = __match_all_sync(~0u, v & 0, &all) + all;
  if (t % 3 == 0) o[640 + t] = __activemask();
  o[704 + t] = __syncthreads_count(v > 0);
  o[768 + t] = __syncthreads_or(v > 995) + 2 * __syncthreads_and(v > -2000);
  o[832 + t] = __shfl_down_sync(~0u, v, 1, 16);
  if (t & 1) o[896 + t] = __shfl_xor_sync(0xaaaaaaaau, v, 2);
}"""


def test_warp_operations() -> None:
    x = ints(64)
    ran = launch(WARP, "warp", 1, 64, [("x", x), ("o", np.zeros(960, np.int32))])
    assert ran.error is None
    o = ran["o"].reshape(15, 64)
    t = np.arange(64)
    lane, warp = t % 32, t // 32
    rows = x.reshape(2, 32)
    np.testing.assert_array_equal(o[0], np.where(lane >= 3, x[np.maximum(t - 3, 0)], x))
    np.testing.assert_array_equal(o[1], x[t // 8 * 8 + 5])
    ballots = [(int(sum(int(v > 0) << i for i, v in enumerate(r)))) for r in rows]
    np.testing.assert_array_equal(o[2].astype(np.uint32), np.array(ballots, np.uint32)[warp])
    votes = [int((r > 990).any()) + 2 * int((r > -2000).all()) + 4 * int((r > 0).all()) for r in rows]
    np.testing.assert_array_equal(o[3], np.array(votes)[warp])
    same = [sum(1 << j for j in range(32) if (rows[w][j] & 3) == (rows[w][i] & 3)) for w in range(2) for i in range(32)]
    np.testing.assert_array_equal(o[4].astype(np.uint32), np.array(same, np.uint32))
    np.testing.assert_array_equal(o[5], rows.sum(1)[warp])
    np.testing.assert_array_equal(o[6], rows.min(1)[warp])
    np.testing.assert_array_equal(o[7].astype(np.uint32), rows.astype(np.uint32).max(1)[warp])
    np.testing.assert_array_equal(o[8], np.bitwise_xor.reduce(rows, 1)[warp])
    np.testing.assert_array_equal(o[9], np.zeros(64, int))  # mask ~0 plus 1
    np.testing.assert_array_equal(o[10][t % 3 == 0] != 0, True)
    np.testing.assert_array_equal(o[11], (x > 0).sum())
    np.testing.assert_array_equal(o[12], int((x > 995).any()) + 2)
    np.testing.assert_array_equal(o[13], np.where(lane % 16 < 15, x[np.minimum(t + 1, 63)], x))
    np.testing.assert_array_equal(o[14][1::2], x[(t ^ 2)[1::2]])


def test_activemask_names_the_lanes_that_came() -> None:
    source = 'extern "C" __global__ void k(int* o) { if (threadIdx.x % 3 == 0) o[threadIdx.x] = __activemask(); }'
    ran = launch(source, "k", 1, 32, [("o", np.zeros(32, np.int32))])
    expected = np.uint32(sum(1 << i for i in range(0, 32, 3)))
    np.testing.assert_array_equal(ran["o"][::3].astype(np.uint32), expected)


ATOMICS = """
extern "C" __global__ void atomics(int* o, unsigned* u, unsigned long long* w, float* f, double* d) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(o, t); atomicMin(o + 1, 5 - t); atomicMax(o + 2, t); atomicAnd(o + 3, ~(1 << (t & 31)));
  atomicOr(o + 4, 1 << (t & 31)); atomicXor(o + 5, t); atomicSub(o + 6, 1);
  atomicInc(u, 6); atomicDec(u + 1, 6); atomicMin(u + 2, t); atomicMax(u + 3, t); atomicExch(u + 4, 77u);
  atomicAdd(w, (unsigned long long)t << 30); atomicMax(w + 1, (unsigned long long)t << 33);
  int old = o[7], seen;
  do { seen = old; old = atomicCAS(o + 7, seen, seen + 2); } while (old != seen);
  atomicAdd(f, 0.5f); atomicAdd(d, 0.25);
  __shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();
  atomicAdd(&s, 1); __syncthreads(); if (threadIdx.x == 0) o[8 + blockIdx.x] = s;
}"""


@pytest.mark.parametrize("workers", [1, 2])
def test_atomics_of_all_kinds(workers: int) -> None:
    n, blocks = 256, 32
    o = np.zeros(8 + blocks, np.int32)
    o[3] = -1
    u = np.zeros(8, np.uint32)
    u[2] = 1000
    args = [("o", o), ("u", u), ("w", np.zeros(2, np.uint64)), ("f", np.zeros(1, np.float32)), ("d", np.zeros(1))]
    ran = launch(ATOMICS, "atomics", blocks, n, args, workers=workers)
    assert ran.error is None
    total = n * blocks
    t = np.arange(total)
    o, u = ran["o"], ran["u"]
    assert o[0] == t.sum()
    assert (o[1], o[2], o[3], o[4], o[5], o[6]) == (5 - (total - 1), total - 1, 0, -1, np.bitwise_xor.reduce(t), -total)
    assert o[7] == 2 * total
    assert (o[8:] == n).all()
    assert u[0] == total % 7
    assert u[1] == (-total) % 7
    assert (u[2], u[3], u[4]) == (0, total - 1, 77)
    assert ran["w"][0] == t.sum() << 30
    assert ran["w"][1] == (total - 1) << 33
    assert ran["f"][0] == total / 2
    assert ran["d"][0] == total / 4


def test_half_precision_atomics_round_each_half_on_its_own() -> None:
    source = """
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void k(__half2* h, __half* s, __nv_bfloat162* b, __nv_bfloat16* c) {
      atomicAdd(h, __halves2half2(__float2half(1.f), __float2half(0.5f)));
      atomicAdd(s, __float2half(2.f));
      atomicAdd(b, __halves2bfloat162(__float2bfloat16(1.f), __float2bfloat16(0.5f)));
      atomicAdd(c, __float2bfloat16(2.f));
    }"""
    args = [
        ("h", np.zeros(2, np.float16)),
        ("s", np.zeros(2, np.float16)),
        ("b", np.zeros(2, np.uint16)),
        ("c", np.zeros(2, np.uint16)),
    ]
    ran = launch(source, "k", 1, 32, args)
    assert ran.error is None
    assert list(ran["h"]) == [32.0, 16.0]
    assert ran["s"][0] == 64.0
    assert list((ran["b"].astype(np.uint32) << 16).view(np.float32)) == [32.0, 16.0]
    assert (ran["c"].astype(np.uint32) << 16).view(np.float32)[0] == 64.0


def test_spin_lock_by_threads_of_one_block() -> None:
    source = """
    __device__ int lock_;
    extern "C" __global__ void k(int* o) {
      bool done = false;
      while (!done)
        if (atomicCAS(&lock_, 0, 1) == 0) { o[0] = o[0] * 3 + 1; __threadfence(); atomicExch(&lock_, 0); done = true; }
    }"""
    ran = launch(source, "k", 1, 64, [("o", np.zeros(1, np.int32))])
    expected = 0
    for _ in range(64):
        expected = (expected * 3 + 1) & 0xFFFFFFFF
    assert ran.error is None
    assert int(ran["o"].view(np.uint32)[0]) == expected


def test_a_block_may_wait_for_a_later_one() -> None:
    source = """
    extern "C" __global__ void k(volatile int* flag, int* o) {
      if (blockIdx.x == 0) { while (!flag[0]) {} o[0] = 1; }
      else if (blockIdx.x == gridDim.x - 1) { flag[0] = 1; }
    }"""
    ran = launch(source, "k", 700, 1, [("flag", np.zeros(1, np.int32)), ("o", np.zeros(1, np.int32))])
    assert ran.error is None
    assert ran["o"][0] == 1


def test_cp_async_copies_land_at_the_wait() -> None:
    source = """
    #include <cuda_pipeline.h>
    extern "C" __global__ void k(const float4* x, float* o, int n) {
      __shared__ float4 s[2][64]; int i = threadIdx.x;
      __pipeline_memcpy_async(&s[0][i], &x[i], 16); __pipeline_commit();
      for (int k = 1; k < n; ++k) {
        __pipeline_memcpy_async(&s[k & 1][i], &x[k * 64 + i], 16); __pipeline_commit();
        __pipeline_wait_prior(1); __syncthreads();
        o[i] += s[(k - 1) & 1][63 - i].x; __syncthreads();
      }
    }"""
    x = floats(4 * 64 * 5)
    ran = launch(source, "k", 1, 64, [("x", x), ("o", np.zeros(64, np.float32)), ("int32", 5)])
    assert ran.error is None
    np.testing.assert_allclose(ran["o"], x.reshape(5, 64, 4)[:4, ::-1, 0].sum(0), rtol=1e-5, atol=1e-5)


def test_a_missing_wait_for_cp_async_shows() -> None:
    source = """
    #include <cuda_pipeline.h>
    extern "C" __global__ void k(const float4* x, float* o) {
      __shared__ float4 s[64]; int i = threadIdx.x; s[i] = make_float4(-1, -1, -1, -1);
      __pipeline_memcpy_async(&s[i], &x[i], 16); __pipeline_commit();
      __syncthreads();
      o[i] = s[i].x; __pipeline_wait_prior(0); o[64 + i] = s[i].x;
    }"""
    x = floats(256)
    ran = launch(source, "k", 1, 64, [("x", x), ("o", np.zeros(128, np.float32))])
    np.testing.assert_array_equal(ran["o"][:64], -1)
    np.testing.assert_array_equal(ran["o"][64:], x[::4])


def test_cooperative_groups_of_a_block() -> None:
    source = """
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const int* x, int* o) {
      auto b = cg::this_thread_block(); auto t = cg::tiled_partition<16>(b);
      int v = cg::reduce(t, x[b.thread_rank()], cg::plus<int>()); t.sync(); b.sync(); o[b.thread_rank()] = v;
      if (threadIdx.x % 3 == 0) { auto c = cg::coalesced_threads();
        o[64 + b.thread_rank()] = c.size() * 100 + c.thread_rank(); }
    }"""
    x = ints(64)
    ran = launch(source, "k", 1, 64, [("x", x), ("o", np.zeros(128, np.int32))])
    assert ran.error is None
    np.testing.assert_array_equal(ran["o"][:64], np.repeat(x.reshape(4, 16).sum(1), 16))
    taken = np.arange(64) % 3 == 0
    sizes = np.array([taken[:32].sum(), taken[32:].sum()])
    ranks = np.concatenate([np.cumsum(taken[:32]) - 1, np.cumsum(taken[32:]) - 1])
    np.testing.assert_array_equal(ran["o"][64:][taken], (np.repeat(sizes, 32) * 100 + ranks)[taken])


def test_named_barriers_between_halves_of_a_block() -> None:
    source = """
    extern "C" __global__ void k(int* o) {
      __shared__ int s[128];
      int t = threadIdx.x;
      if (t < 64) { s[t] = t; asm volatile("bar.arrive 1, 128;" ::: "memory");
        asm volatile("bar.sync 2, 64;" ::: "memory"); o[t] = s[63 - t]; }
      else { asm volatile("bar.sync 1, 128;" ::: "memory"); o[t] = s[127 - t]; }
    }"""
    ran = launch(source, "k", 1, 128, [("o", np.zeros(128, np.int32))])
    assert ran.error is None
    np.testing.assert_array_equal(ran["o"], [*range(63, -1, -1), *range(63, -1, -1)])


def test_special_registers() -> None:
    source = """
    extern "C" __global__ void k(unsigned* o) {
      unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      unsigned* p = o + 8 * (b * blockDim.x * blockDim.y * blockDim.z + t);
      p[0] = b; p[1] = t; asm("mov.u32 %0, %%laneid;" : "=r"(p[2])); asm("mov.u32 %0, %%warpid;" : "=r"(p[3]));
      asm("mov.u32 %0, %%lanemask_lt;" : "=r"(p[4])); asm("mov.u32 %0, %%lanemask_ge;" : "=r"(p[5]));
      asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(p[6])); long long c = clock64(); __nanosleep(10);
        p[7] = clock64() >= c;
    }"""
    ran = launch(source, "k", (2, 3, 2), (4, 3, 5), [("o", np.zeros((12, 60, 8), np.uint32))], shared=512)
    assert ran.error is None
    o = ran["o"]
    t = np.arange(60)
    np.testing.assert_array_equal(o[:, :, 0], np.arange(12)[:, None].repeat(60, 1))
    np.testing.assert_array_equal(o[:, :, 1], np.tile(t, (12, 1)))
    np.testing.assert_array_equal(o[3, :, 2], t % 32)
    np.testing.assert_array_equal(o[3, :, 3], t // 32)
    np.testing.assert_array_equal(o[3, :, 4], [(1 << (i % 32)) - 1 for i in t])
    np.testing.assert_array_equal(o[3, :, 5], [0xFFFFFFFF ^ ((1 << (i % 32)) - 1) for i in t])
    assert (o[:, :, 6] == 512).all()
    assert (o[:, :, 7] == 1).all()


def test_an_instruction_that_is_not_emulated_is_named_with_its_line() -> None:
    ptx = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 o) {
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [o];
  wgmma.fence.sync.aligned;
  ret;
}"""
    with pytest.raises(NotSupported, match=r"PTX instruction wgmma\.fence\.sync\.aligned at line 7 is not emulated"):
        launch(ptx, "k", 1, 32, [("o", np.zeros(1, np.int32))], ptx=True)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_seed_changes_the_order_but_not_the_result(seed: int) -> None:
    source = """
    extern "C" __global__ void k(int* order, int* next, int* o) {
      int t = blockIdx.x * blockDim.x + threadIdx.x;
      order[atomicAdd(next, 1)] = t;
      int v = t; for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
      __shared__ int s[4]; s[threadIdx.x / 32] = v; __syncthreads(); o[t] = s[0] + s[3];
    }"""

    def run(seed: int) -> np.ndarray:
        args = [("order", np.zeros(512, np.int32)), ("next", np.zeros(1, np.int32)), ("o", np.zeros(512, np.int32))]
        ran = launch(source, "k", 4, 128, args, seed=seed)
        assert ran.error is None
        ranks = np.arange(512).reshape(4, 4, 32).sum(2)
        np.testing.assert_array_equal(ran["o"].reshape(4, 128), (ranks[:, 0] + ranks[:, 3])[:, None].repeat(128, 1))
        assert sorted(ran["order"]) == list(range(512))
        return ran["order"]

    first = run(seed)
    np.testing.assert_array_equal(first, run(seed))
    assert (first != np.arange(512)).any()
