"""How far from the recorded GPU each approximate form may lie. What is not listed must be equal bit for bit.

The table in docs/reference/emulator-numerics.md is written from this one and the recording: `conf_report.py --write`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """An element passes within `ulp` units in the last place or within `absolute`; at most `outside` elements do not.

    `any_nan`: where both sides are NaN their payloads may differ.
    """

    ulp: int = 0
    absolute: float = 0.0
    outside: int = 0
    any_nan: bool = False
    why: str = ""


EXACT = Bound()
SEED = Bound(1 << 32, why="one unit of the upper word; the lower word is zero")
SINE = Bound(2, 3.3e-7, why="the GPU's own error, absolute")
LOGARITHM = Bound(2, 1.8e-7, why="near 1 the GPU's error is absolute")

BOUNDS = {
    "rcp.approx.f32": Bound(1),
    "sqrt.approx.f32": Bound(1),
    "rsqrt.approx.f32": Bound(1),
    "div.approx.f32": Bound(2),
    "div.full.f32": Bound(2),
    "ex2.approx.f32": Bound(2),
    "lg2.approx.f32": LOGARITHM,
    "sin.approx.f32": SINE,
    "cos.approx.f32": SINE,
    "tanh.approx.f32": Bound(128, why="the GPU's relative error is about 2^-17"),
    "rsqrt.approx.f64": Bound(1),
    "rsqrt.approx.ftz.f64": SEED,
    "rcp.approx.ftz.f64": SEED,
    "ex2.approx.f16": Bound(1),
    "tanh.approx.f16": Bound(1),
    "ex2.approx.bf16": Bound(1),
    "tanh.approx.bf16": Bound(1),
    # CUDA's functions, where the compiler builds them on the forms above.
    "cuda.__sinf": SINE,
    "cuda.__cosf": SINE,
    "cuda.__tanf": Bound(2048, why="a quotient of the above"),
    "cuda.__expf": Bound(2),
    "cuda.__exp10f": Bound(2),
    "cuda.__logf": LOGARITHM,
    "cuda.__log2f": LOGARITHM,
    "cuda.__log10f": LOGARITHM,
    "cuda.__powf": Bound(128, outside=12, why="exponents of 2^23 and more multiply the logarithm's error"),
    "cuda.__fdividef": Bound(2),
    "cuda.rsqrtf": Bound(1),
    "cuda.rsqrt": Bound(1),
    "cuda.exp2f": Bound(2),
    **dict.fromkeys(("cuda.expf", "cuda.exp10f", "cuda.sinhf", "cuda.tanhf", "cuda.tanf", "cuda.erff"), Bound(1)),
    **dict.fromkeys(("cuda.asinf", "cuda.acosf", "cuda.atanf", "cuda.asinhf", "cuda.cbrtf", "cuda.rcbrtf"), Bound(1)),
    **dict.fromkeys(("cuda.coshf", "cuda.atanhf", "cuda.tgammaf"), Bound(2)),
    **dict.fromkeys(("cuda.erfcf", "cuda.normcdff"), Bound(3)),
    "cuda.lgammaf": Bound(16),
    # The same under --use_fast_math.
    "fast.sinf": SINE,
    "fast.cosf": SINE,
    "fast.tanf": Bound(2048, why="a quotient of the above"),
    "fast.expf": Bound(2),
    "fast.exp10f": Bound(2),
    "fast.logf": LOGARITHM,
    "fast.log10f": LOGARITHM,
    "fast.sqrtf": Bound(1),
    "fast.rsqrtf": Bound(1),
    "fast.tanhf": Bound(128),
    "fast.powf": Bound(128),
    "fast.divide": Bound(2),
    # Of two NaN operands an f64 instruction returns one; which, depends on the order the driver's assembler chose.
    "cuda.__dadd_ru": Bound(any_nan=True),
    "cuda.fmax": Bound(any_nan=True),
}
"""By the family of a case (conf_case.Case.family)."""


def bound(family: str) -> Bound:
    return BOUNDS.get(family, EXACT)
