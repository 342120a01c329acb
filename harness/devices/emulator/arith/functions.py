"""Elementary functions in double arithmetic, as helper functions: exp2, log2, sine and cosine of whole turns, tanh.

They need no libm: plain polynomials, accurate to about 1e-12, which is far below an f32's last place.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from .common import Code, as_double, double_bits, select
from .text import define

EXP2, LOG2, TANH = "cd_exp2", "cd_log2", "cd_tanh"
SINE, COSINE = "cd_sin_turns", "cd_cos_turns"
_SHIFTER = "0x4338000000000000"  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits


def constant(value: float) -> str:
    """A double as LLVM reads it exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def polynomial(c: Code, x: str, coefficients: Sequence[float]) -> str:
    """c0 + c1 x + c2 x^2 + ..., the terms joined in pairs, then the pairs (Estrin's scheme: short chains)."""
    terms, power = [constant(value) for value in coefficients], x
    while len(terms) > 1:
        if len(terms) % 2:
            terms.append("")
        pairs = zip(terms[::2], terms[1::2], strict=True)
        terms = [c.emit(f"fadd double {c.emit(f'fmul double {b}, {power}')}, {a}") if b else a for a, b in pairs]
        power = c.emit(f"fmul double {power}, {power}") if len(terms) > 1 else power
    return terms[0]


def nearest_integer(c: Code, x: str) -> tuple[str, str]:
    """(the integer nearest to x as a double, the same as i64), for |x| < 2^51."""
    shifted = c.emit(f"fadd double {x}, {_SHIFTER}")
    whole = c.emit(f"fsub double {shifted}, {_SHIFTER}")
    return whole, c.emit(f"sub i64 {double_bits(c, shifted)}, {0x4338000000000000}")


def _exp2(c: Code, x: str) -> str:
    """2^x; beyond +-900 as at +-900. NaN stays NaN."""
    x = select(c, c.emit(f"fcmp ogt double {x}, 900.0"), "double", "900.0", x)
    x = select(c, c.emit(f"fcmp olt double {x}, -900.0"), "double", "-900.0", x)
    whole, power = nearest_integer(c, x)
    part = c.emit(f"fsub double {x}, {whole}")
    value = polynomial(c, part, [math.log(2) ** k / math.factorial(k) for k in range(11)])
    scale = c.emit(f"shl i64 {c.emit(f'add i64 {power}, 1023')}, 52")
    return c.emit(f"fmul double {value}, {as_double(c, scale)}")


def _log2(c: Code, x: str) -> str:
    """log2 of a positive normal double."""
    bits = double_bits(c, x)
    # exponent of x / sqrt(2) rounded: the mantissa then lies in [sqrt(1/2), sqrt(2))
    offset = c.emit(f"add i64 {bits}, {(1023 << 52) - 0x3FE6A09E667F3BCD}")
    power = c.emit(f"sub i64 {c.emit(f'ashr i64 {offset}, 52')}, 1023")
    raised = c.emit(f"shl i64 {power}, 52")
    mantissa = as_double(c, c.emit(f"sub i64 {bits}, {raised}"))
    ratio = c.emit(f"fdiv double {c.emit(f'fsub double {mantissa}, 1.0')}, {c.emit(f'fadd double {mantissa}, 1.0')}")
    square = c.emit(f"fmul double {ratio}, {ratio}")
    series = polynomial(c, square, [2 / math.log(2) / (2 * k + 1) for k in range(8)])
    whole = c.emit(f"sitofp i64 {power} to double")
    return c.emit(f"fadd double {whole}, {c.emit(f'fmul double {ratio}, {series}')}")


def _turn(c: Code, turns: str, quarter: int) -> str:
    """sin(2 pi (turns + quarter/4)). `turns` beyond 2^50 counts as 0."""
    huge = c.emit(f"fcmp ogt double {c.intrinsic('llvm.fabs.f64', 'double', [('double', turns)])}, 1.0e15")
    turns = select(c, huge, "double", "0.0", turns)
    whole, eighths = nearest_integer(c, c.emit(f"fmul double {turns}, 4.0"))
    rest = c.emit(f"fsub double {turns}, {c.emit(f'fmul double {whole}, 0.25')}")
    square = c.emit(f"fmul double {rest}, {rest}")
    tau = 2 * math.pi
    sines = [(-1) ** k * tau ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(7)]
    cosines = [(-1) ** k * tau ** (2 * k) / math.factorial(2 * k) for k in range(8)]
    sine = c.emit(f"fmul double {rest}, {polynomial(c, square, sines)}")
    cosine = polynomial(c, square, cosines)
    quadrant = c.emit(f"add i64 {eighths}, {quarter}")
    swaps = c.emit(f"trunc i64 {quadrant} to i1")
    value = select(c, swaps, "double", cosine, sine)
    flips = c.emit(f"trunc i64 {c.emit(f'lshr i64 {quadrant}, 1')} to i1")
    return select(c, flips, "double", c.emit(f"fneg double {value}"), value)


def _tanh(c: Code, x: str) -> str:
    square = c.emit(f"fmul double {x}, {x}")
    series = polynomial(c, square, [1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835])
    near = c.emit(f"fmul double {x}, {series}")
    power = c.call(EXP2, "double", [("double", c.emit(f"fmul double {x}, {constant(2 / math.log(2))}"))])
    far = c.emit(f"fdiv double 2.0, {c.emit(f'fadd double {power}, 1.0')}")
    far = c.emit(f"fsub double 1.0, {far}")
    small = c.emit(f"fcmp olt double {square}, {constant(2.0**-12)}")
    return select(c, small, "double", near, far)


define(EXP2, "double", ["double"], _exp2)
define(LOG2, "double", ["double"], _log2)
define(SINE, "double", ["double"], lambda c, x: _turn(c, x, 0))
define(COSINE, "double", ["double"], lambda c, x: _turn(c, x, 1))
define(TANH, "double", ["double"], _tanh)
