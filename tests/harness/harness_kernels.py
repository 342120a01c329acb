"""A builder of kernel targets for tests, run on the emulated device in a real worker process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.launcher import run_probe
from harness.records import Limits, ProbeFacts, ProbeRequest

SOURCE = r"""
extern "C" __global__ void scale(float* out, const float* in, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * by;
}
extern "C" __global__ void nearly(float* out, const float* in, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 3) out[i] = in[i] * by + (i == 7 ? 1.0f : 0.0f);
}
extern "C" __global__ void past_the_end(float* out, const float* in, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = by;  // STORE
}
extern "C" __global__ void spoils_input(float* out, float* in, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = in[i] * by; if (i == 5) in[i] = 0.0f; }
}
extern "C" __global__ void add_one(int* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += 1 + EXTRA;
}
extern "C" __global__ void reverse_big(float* out, const float* in, int n) {
    extern __shared__ float rows[];
    int last = SHARED_FLOATS - 1;
    if (threadIdx.x < n) rows[last - threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < n) out[threadIdx.x] = rows[last - (n - 1 - threadIdx.x)];
}
template <typename T> __device__ void copy(T* out, const T* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void copy1(unsigned char* out, const unsigned char* in, int n) { copy(out, in, n); }
extern "C" __global__ void copy2(unsigned short* out, const unsigned short* in, int n) { copy(out, in, n); }
extern "C" __global__ void copy4(unsigned* out, const unsigned* in, int n) { copy(out, in, n); }
extern "C" __global__ void copy8(unsigned long long* out, const unsigned long long* in, int n) { copy(out, in, n); }
extern "C" __global__ void spin(float* out, const float* in, int n, float by) {
    volatile float* p = out;
    while (p[0] != 12345.0f) { }
}
extern "C" __global__ void scalars(double* out, signed char a, unsigned char b, short c, unsigned short d, int e,
                                   unsigned f, long long g, unsigned long long h, float x, double y, bool z) {
    out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = g; out[7] = h;
    out[8] = x; out[9] = y; out[10] = z;
}
extern "C" __global__ void far_load(float* out, const float* in, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i + (1ll << 33)] * by;
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
    if (i < n) out[i] = in[i] * by;
}
__global__ void mangled(float* out, const float* in, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * by;
}
"""

REFERENCE = """
import numpy as np

def scale(inp, n, by):
    return inp[:n] * np.float32(by)

def scale_by_name(inp, by):
    return {"out": inp * np.float32(by)}

def reverse(inp):
    return inp[::-1]

def plus(data, extra=0):
    return data + 1 + extra

def same(inp):
    return inp

def misfit(inp):
    return inp[:-1]

def stranger(inp):
    return {"nothing": inp}

def greedy(missing_name):
    return missing_name

def everything(**offered):
    raise ValueError(",".join(sorted(offered)))

def squares(shape, dtype, seed, power):
    return np.arange(shape[0]) ** power + seed
"""


class Bench:
    """One folder with a source and a reference; `run` starts a worker on the emulated device."""

    def __init__(self, place: Path, folder: Callable[[], Path]) -> None:
        self.place = place
        self.folder = folder
        self.source = place / "kernels.cu"
        self.reference = place / "reference.py"
        self.source.write_text(SOURCE)
        self.reference.write_text(REFERENCE)

    def kernel(self, entry: str, args: list[Any], **changes: Any) -> dict[str, Any]:
        base = {"source": str(self.source), "entry": entry, "define": {"EXTRA": 0, "SHARED_FLOATS": 64}, "options": []}
        return {**base, "grid": [4, 1, 1], "block": [64, 1, 1], "shared": 0, "cluster": None, "args": args, **changes}

    def user(self, function: str) -> dict[str, str]:
        return {"file": str(self.reference), "function": function}

    def one(self, entry: str = "scale", n: int = 200, reference: str | None = "scale", **more: Any) -> dict[str, Any]:
        """A target of one kernel `entry(out, in, n, by)` over two float buffers of n elements."""
        scalars = [{"scalar": n, "dtype": "int32", "name": "n"}, {"scalar": 2.5, "dtype": "float32", "name": "by"}]
        return {
            "kind": "kernel",
            "buffers": [buffer("inp", n, fill="normal"), buffer("out", n, role="out")],
            "kernels": [self.kernel(entry, ["out", "inp", *scalars])],
            "reference": self.user(reference) if reference else None,
            **more,
        }

    def run(self, target: dict[str, Any], **changes: Any) -> ProbeFacts:
        limits = Limits(timeout_s=changes.pop("timeout_s", 60.0), grace_s=1.0)
        changes.setdefault("device", "emulator")
        return run_probe(ProbeRequest(target, str(self.folder()), limits=limits, **changes))


def buffer(name: str, n: int, role: str = "in", dtype: str = "float32", **more: Any) -> dict[str, Any]:
    return {"name": name, "role": role, "dtype": dtype, "shape": [n], **more}
