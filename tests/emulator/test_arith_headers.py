"""Every arithmetic function of cuda_fp16.h and cuda_bf16.h becomes emulated instructions, and a few are right."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import launch

from harness.devices.emulator import EmulatedDevice

ONE = (
    "__hneg", "__habs", "hsqrt", "hrsqrt", "hrcp", "hexp", "hexp2", "hexp10", "hlog", "hlog2", "hlog10", "hsin", "hcos",
    "hfloor", "hceil", "htrunc", "hrint", "htanh", "htanh_approx",
)  # fmt: skip
TWO = (
    "__hadd", "__hsub", "__hmul", "__hdiv", "__hadd_sat", "__hsub_sat", "__hmul_sat", "__hmax", "__hmin", "__hmax_nan",
    "__hmin_nan", "__hadd_rn", "__hmul_rn", "__hsub_rn",
)  # fmt: skip
TESTS = (
    "__heq",
    "__hne",
    "__hle",
    "__hge",
    "__hlt",
    "__hgt",
    "__hequ",
    "__hneu",
    "__hleu",
    "__hgeu",
    "__hltu",
    "__hgtu",
)
ONE_PAIR = (
    *("__hneg2", "__habs2", "__hisnan2", "__lowhigh2highlow"),
    *(name.replace("h", "h2", 1) for name in ONE[2:]),
)
TWO_PAIRS = (
    "__hadd2", "__hsub2", "__hmul2", "__h2div", "__hadd2_sat", "__hmul2_sat", "__hmax2", "__hmin2", "__hmax2_nan",
    "__hmin2_nan",
    "__heq2", "__hne2", "__hlt2", "__hge2", "__hequ2", "__hneu2", "__hadd2_rn",
)  # fmt: skip
KINDS = {"half": ("cuda_fp16.h", "__half", "__half2"), "bfloat16": ("cuda_bf16.h", "__nv_bfloat16", "__nv_bfloat162")}


def source(kind: str) -> str:
    header, single, pair = KINDS[kind]
    calls = [f"{name}(a)" for name in ONE] + [f"{name}(a, b)" for name in TWO]
    calls += [f"{name}(a, b) ? a : b" for name in TESTS] + [
        "__hfma(a, b, c)",
        "__hfma_sat(a, b, c)",
        "__hfma_relu(a, b, c)",
    ]
    calls += [f"__float2{kind}_{r}(f)" for r in ("rn", "rz", "rd", "ru")]
    calls += [
        f"__{t}2{kind}_{r}(n)" for t in ("int", "uint", "ll", "short", "ushort") for r in ("rn", "rz", "rd", "ru")
    ]
    to_integer = [f"__{kind}2{t}_{r}(a)" for t in ("int", "uint", "ll", "short") for r in ("rn", "rz", "rd", "ru")]
    pairs = [f"{name}(p)" for name in ONE_PAIR] + [f"{name}(p, q)" for name in TWO_PAIRS]
    pairs += ["__hfma2(p, q, p)", "__hfma2_sat(p, q, q)", "__hfma2_relu(p, q, p)"]
    lines = [f"  o[{k}] = {call};" for k, call in enumerate(calls)] + [
        f"  z[{k}] = {c};" for k, c in enumerate(to_integer)
    ]
    lines += [f"  w[{k}] = {call};" for k, call in enumerate(pairs)]
    return (
        f'#include <{header}>\nextern "C" __global__ void all(const {single}* i, {single}* o, {pair}* w, long long* z, '
        "float f, int n) {\n"
        f"  {single} a = i[0], b = i[1], c = i[2]; {pair} p(a, b), q(b, c);\n" + "\n".join(lines) + "\n}\n"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_function_is_emulated(kind: str) -> None:
    device = EmulatedDevice(cache=False, level=0)
    assert device.kernel(device.compile(source(kind), "/src/all.cu", []), "all").code.info.ptx_instructions > 300


SUMS = """#include <cuda_fp16.h>
extern "C" __global__ void sums(const __half* x, const __half* y, __half* o, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x; if (i >= n) return;
  o[i] = __hadd(x[i], y[i]); o[n + i] = __hmul(x[i], y[i]);
  o[2 * n + i] = __hdiv(x[i], y[i]); o[3 * n + i] = hsqrt(__habs(x[i]));
}
"""


def test_halves_are_numpys() -> None:
    random = np.random.default_rng(3)
    count = 4096
    x, y = (random.integers(0, 0x7C00, count, np.uint16).view(np.float16) * random.choice([-1, 1], count) for _ in "xy")
    x, y = x.astype(np.float16), y.astype(np.float16)
    out = np.zeros(4 * count, np.float16)
    ran = launch(SUMS, "sums", count // 128, 128, [("x", x), ("y", y), ("o", out), ("int32", count)])
    assert ran.error is None
    with np.errstate(all="ignore"):
        want = np.concatenate([x + y, x * y, x / y, np.sqrt(np.abs(x))])
    got = ran["o"]
    assert np.array_equal(got[: 2 * count], want[: 2 * count])
    rest = slice(2 * count, 4 * count)  # division and root go through the approximations of f32
    assert np.allclose(got[rest].astype(np.float64), want[rest].astype(np.float64), rtol=2**-10, atol=2**-24)
