"""NVRTC writes two dialects of PTX: typed registers up to sm_90, untyped from sm_100 on. Both give the same results."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from emulated import launch
from test_emulator_kernels import ATOMICS, WARP
from test_emulator_language import FUNCTIONS

from harness.devices.emulator import nvrtc

MIXED = """
#include <cuda_fp16.h>
extern "C" __global__ void mixed(const float* x, const double* d, const short* h, float* o, double* p, int* q, int n) {
  __shared__ float s[64]; int t = threadIdx.x; float local[4];
  for (int i = 0; i < 4; ++i) local[i] = x[(t + i) % n];
  s[t] = local[t & 3] * 2.f; __syncthreads();
  __half2 a = __floats2half2_rn(s[63 - t], x[t]); a = __hfma2(a, a, a);
  o[t] = fmaxf(s[63 - t], __low2float(a)) / (1.f + fabsf(x[t])) + rintf(x[t] * 10.f) + (float)h[t];
  p[t] = sqrt(fabs(d[t])) + floor(d[t]) * (double)h[t] + fma(d[t], d[t], 1.0);
  q[t] = (int)(d[t] * 1000.0) + __popc(h[t]) + (h[t] >> 3) + __float2int_rz(x[t] * 100.f);
  q[t] += (t > 7 ? min(t, n) : __clz(t));
  float4 v = reinterpret_cast<const float4*>(x)[t / 4]; o[t] += v.x + v.y * v.z - v.w;
}"""


def in_dialect(source: str, architecture: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(nvrtc, "ARCHITECTURE", architecture)
    return nvrtc.compile_to_ptx(source, "/src/kernel.cu", [])


def outputs(ptx: str, entry: str, block: int, arrays: dict[str, np.ndarray], scalars: list[object]) -> list[np.ndarray]:
    args = [(name, array.copy()) for name, array in arrays.items()]
    ran = launch(ptx, entry, 1, block, [*args, *scalars], ptx=True)
    assert ran.error is None, ran.records
    return [ran[name] for name in arrays]


def arrays_of_mixed() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        "x": rng.standard_normal(64).astype(np.float32),
        "d": rng.standard_normal(64) * 5,
        "h": rng.integers(-300, 300, 64).astype(np.int16),
        "o": np.zeros(64, np.float32),
        "p": np.zeros(64),
        "q": np.zeros(64, np.int32),
    }


def arrays_of_atomics() -> dict[str, np.ndarray]:
    wide = {"w": np.zeros(2, np.uint64), "f": np.zeros(1, np.float32), "d": np.zeros(1)}
    return {"o": np.zeros(16, np.int32), "u": np.full(8, 9, np.uint32), **wide}


CASES: list[tuple[str, str, int, Callable[[], dict[str, np.ndarray]], list[object]]] = [
    (MIXED, "mixed", 64, arrays_of_mixed, [("int32", 50)]),
    (WARP, "warp", 64, lambda: {"x": np.arange(64, dtype=np.int32) * 37 % 91, "o": np.zeros(960, np.int32)}, []),
    (ATOMICS, "atomics", 64, arrays_of_atomics, []),
    (
        FUNCTIONS,
        "functions",
        64,
        lambda: {"x": np.ones(64, np.float32), "o": np.zeros(320, np.float32)},
        [("int32", 3)],
    ),
]


@pytest.mark.parametrize(("source", "entry", "block", "arrays", "scalars"), CASES, ids=[c[1] for c in CASES])
def test_both_dialects_give_the_same_bits(
    source: str, entry: str, block: int, arrays: Callable[[], dict[str, np.ndarray]], scalars: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    typed = in_dialect(source, "compute_80", monkeypatch)
    untyped = in_dialect(source, "compute_100", monkeypatch)
    assert re.search(r"\.reg \.f32", typed) or entry in ("warp", "atomics")
    assert not re.search(r"\.reg \.f(32|64)", untyped)
    first = outputs(typed, entry, block, arrays(), scalars)
    second = outputs(untyped, entry, block, arrays(), scalars)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))
