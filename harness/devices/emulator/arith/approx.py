"""The .approx and .full forms: the value correctly rounded (nearly always), inside the scaling that the GPU's own
instruction sequence puts around its function unit, so that flushing, overflow and special values come out alike.

The function unit itself flushes subnormal inputs and results. docs/reference/emulator-numerics.md lists how far the
results lie from an H200's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from ..builder import Builder
from ..ptx import Instruction
from .common import (
    QUIET_F32,
    Code,
    Mods,
    as_double,
    as_float,
    double_bits,
    flush,
    is_nan_f64,
    numbers,
    operands,
    quiet,
    quiet_f64,
    select,
)
from .floats import compute
from .functions import COSINE, EXP2, LOG2, SINE, TANH, constant
from .halves import as_number, by_lane
from .softfloat import integral, narrow
from .text import define

_SEED_NAN = str(0x7FFFFFFF00000000)
_MIN_NORMAL = str(0x00800000)


def _round(c: Code, number: str) -> str:
    """A double as the function unit returns it: f32 bits, subnormals flushed, one NaN."""
    return flush(c, quiet(c, c.emit(f"fptrunc double {number} to float")))


def _wide(c: Code, value: str) -> str:
    return c.emit(f"fpext float {as_float(c, value)} to double")


def _unit_rcp(c: Code, value: str) -> str:
    return flush(c, quiet(c, c.emit(f"fdiv float 1.0, {as_float(c, flush(c, value))}")))


def _unit_sqrt(c: Code, value: str) -> str:
    return quiet(c, c.intrinsic("llvm.sqrt.f32", "float", [("float", as_float(c, flush(c, value)))]))


def _unit_rsqrt(c: Code, value: str) -> str:
    root = c.intrinsic("llvm.sqrt.f64", "double", [("double", _wide(c, flush(c, value)))])
    return _round(c, c.emit(f"fdiv double 1.0, {root}"))


def _unit_ex2(c: Code, value: str) -> str:
    return _round(c, c.call(EXP2, "double", [("double", _wide(c, flush(c, value)))]))


def _unit_lg2(c: Code, value: str) -> str:
    value = flush(c, value)
    number = as_float(c, value)
    result = _round(c, c.call(LOG2, "double", [("double", c.emit(f"fpext float {number} to double"))]))
    positive = c.emit(f"fcmp ogt float {number}, 0.0")
    zero = c.emit(f"fcmp oeq float {number}, 0.0")
    infinite = c.emit(f"icmp eq i32 {value}, {0x7F800000}")
    result = select(c, infinite, "i32", value, result)
    return select(c, positive, "i32", result, select(c, zero, "i32", str(0xFF800000), QUIET_F32))


def _unit_turn(name: str) -> Callable[[Code, str], str]:
    def body(c: Code, value: str) -> str:
        # The unit cuts its argument to multiples of 2^-25 turns: below that a sine is zero.
        places = c.emit(f"fmul double {_wide(c, flush(c, value))}, {2.0**25!r}")
        turns = c.emit(f"fmul double {integral(c, places, 'rzi')}, {constant(2.0**-25)}")
        if name == COSINE:
            turns = c.intrinsic("llvm.fabs.f64", "double", [("double", turns)])
        result = _round(c, c.call(name, "double", [("double", turns)]))
        magnitude = c.emit(f"and i32 {value}, {0x7FFFFFFF}")
        special = c.emit(f"icmp uge i32 {magnitude}, {0x7F800000}")
        return select(c, special, "i32", QUIET_F32, result)

    return body


def _unit_tanh(c: Code, value: str) -> str:
    return quiet(c, c.emit(f"fptrunc double {c.call(TANH, 'double', [('double', _wide(c, value))])} to float"))


_UNITS: dict[str, Callable[[Code, str], str]] = {
    "rcp": _unit_rcp,
    "sqrt": _unit_sqrt,
    "rsqrt": _unit_rsqrt,
    "ex2": _unit_ex2,
    "lg2": _unit_lg2,
    "sin": _unit_turn(SINE),
    "cos": _unit_turn(COSINE),
    "tanh": _unit_tanh,
}


def unit(c: Code, name: str, value: str) -> str:
    """What the function unit gives for f32 bits."""
    return c.call(f"cd_unit_{name}", "i32", [("i32", value)])


def _times(c: Code, value: str, factor: str) -> str:
    return quiet(c, c.emit(f"fmul float {as_float(c, value)}, {as_float(c, factor)}"))


def _below(c: Code, value: str, limit: str) -> str:
    """|value| < limit, for limits given as f32 bits; false for NaN."""
    return c.emit(f"icmp ult i32 {c.emit(f'and i32 {value}, {0x7FFFFFFF}')}, {limit}")


def _scaled(c: Code, condition: str, value: str, factor: float) -> str:
    """value * factor where the condition holds."""
    scaled = _times(c, value, str(_bits(factor)))
    return select(c, condition, "i32", scaled, value)


def _bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def _large(c: Code, value: str) -> str:
    """|value| > 2^126, not NaN."""
    magnitude = c.emit(f"and i32 {value}, {0x7FFFFFFF}")
    return c.emit(f"icmp ult i32 {c.emit(f'sub i32 {magnitude}, {0x7E800001}')}, {0x7F800001 - 0x7E800001}")


def _reciprocal(c: Code, value: str) -> str:
    small, large = _below(c, value, _MIN_NORMAL), _large(c, value)
    factor = select(c, small, "i32", str(_bits(2.0**24)), str(_bits(1.0)))
    factor = select(c, large, "i32", str(_bits(0.25)), factor)
    return _times(c, unit(c, "rcp", _times(c, value, factor)), factor)


def _root(c: Code, value: str) -> str:
    small = _below(c, value, _MIN_NORMAL)
    return _scaled(c, small, unit(c, "sqrt", _scaled(c, small, value, 2.0**24)), 2.0**-12)


def _inverse_root(c: Code, value: str) -> str:
    small = _below(c, value, _MIN_NORMAL)
    return _scaled(c, small, unit(c, "rsqrt", _scaled(c, small, value, 2.0**24)), 2.0**12)


def _logarithm(c: Code, value: str) -> str:
    small = _below(c, value, _MIN_NORMAL)
    result = unit(c, "lg2", _scaled(c, small, value, 2.0**24))
    lower = quiet(c, c.emit(f"fadd float {as_float(c, result)}, -24.0"))
    return select(c, small, "i32", lower, result)


def _power(c: Code, value: str) -> str:
    small = c.emit(f"fcmp olt float {as_float(c, value)}, -126.0")
    result = unit(c, "ex2", _scaled(c, small, value, 0.5))
    return select(c, small, "i32", _times(c, result, result), result)


_PLAIN = {"rcp": _reciprocal, "sqrt": _root, "rsqrt": _inverse_root, "lg2": _logarithm, "ex2": _power}
_TURNS = str(0x3E22F983)  # 1 / (2 pi)


def single(b: Builder, x: Instruction) -> None:
    """rcp, sqrt, rsqrt, lg2, ex2, sin, cos, tanh .approx on f32."""
    m = Mods(b, x)
    m.kind("f32")
    approx, ftz = m.flag("approx"), m.flag("ftz")
    m.done()
    if not approx or (ftz and x.opcode == "tanh"):
        b.unsupported(x)
    (value,) = numbers(b, x, "f32", 1)
    if x.opcode in ("sin", "cos"):
        value = flush(b, value) if ftz else value
        turns = b.call("cd_mul_rz_f32", "i32", [("i32", value), ("i32", _TURNS)])
        result = unit(b, x.opcode, turns)
    elif x.opcode == "tanh" or ftz:
        result = unit(b, x.opcode, value)
    else:
        result = _PLAIN[x.opcode](b, value)
    b.store(x.operands[0], "f32", result)


def quotient(b: Builder, x: Instruction) -> None:
    """div.approx and div.full on f32: a times the reciprocal of b, with the scaling of each form."""
    m = Mods(b, x)
    m.kind("f32")
    form, ftz = m.one("approx", "full"), m.flag("ftz")
    m.done()
    if not form:
        b.unsupported(x)
    above, below = numbers(b, x, "f32", 2)
    small, large = _below(b, below, _MIN_NORMAL), _large(b, below)
    if ftz:
        above, below = flush(b, above), flush(b, below)
    if form == "full":
        above, below = _scaled(b, large, above, 0.25), _scaled(b, large, below, 0.25)
        if ftz:
            above = flush(b, above)
    if not ftz:
        above, below = _scaled(b, small, above, 2.0**24), _scaled(b, small, below, 2.0**24)
    b.store(x.operands[0], "f32", compute(b, "mul", "f32", "rn", [above, unit(b, "rcp", below)], ftz))


def double(b: Builder, x: Instruction) -> None:
    """rsqrt.approx.f64, and the seeds rcp/rsqrt.approx.ftz.f64 (upper word of the result, lower word zero)."""
    m = Mods(b, x)
    m.kind("f64")
    approx, ftz = m.flag("approx"), m.flag("ftz")
    m.done()
    if not approx or (x.opcode == "rcp" and not ftz):
        b.unsupported(x)
    (value,) = operands(b, x, "f64", 1)
    if ftz:  # the seeds look at the upper word alone
        value = _flush_f64(b, b.emit(f"and i64 {value}, {-(1 << 32)}"))
    number = as_double(b, value)
    if x.opcode == "rsqrt":
        number = b.intrinsic("llvm.sqrt.f64", "double", [("double", number)])
    result = b.emit(f"fdiv double 1.0, {number}")
    bits = quiet_f64(b, double_bits(b, result), [value])
    if ftz:
        rounded = b.emit(f"add i64 {bits}, {1 << 31}")
        bits = _flush_f64(b, b.emit(f"and i64 {rounded}, {-(1 << 32)}"))
        bits = select(b, is_nan_f64(b, bits), "i64", _SEED_NAN, bits)
    b.store(x.operands[0], "f64", bits)


def _flush_f64(c: Code, value: str) -> str:
    tiny = c.emit(f"icmp eq i64 {c.emit(f'and i64 {value}, {0x7FF << 52}')}, 0")
    return select(c, tiny, "i64", c.emit(f"and i64 {value}, {-(1 << 63)}"), value)


def half(b: Builder, x: Instruction) -> None:
    """ex2 and tanh .approx on f16 and bf16, single and packed: rounded to nearest from the exact value."""
    m = Mods(b, x)
    kind = m.kind("f16", "bf16", "f16x2", "bf16x2")
    approx, ftz = m.flag("approx"), m.flag("ftz")
    m.done()
    one = kind.removesuffix("x2")
    if not approx or ftz != (one == "bf16" and x.opcode == "ex2"):
        b.unsupported(x)
    function = EXP2 if x.opcode == "ex2" else TANH

    def lane(values: Sequence[str]) -> str:
        value = as_number(b, one, values[0])
        result = narrow(b, b.call(function, "double", [("double", value)]), one, "rn")
        if not ftz:
            return result
        tiny = b.emit(f"icmp eq i16 {b.emit(f'and i16 {result}, {0x7F80}')}, 0")  # of bf16
        return select(b, tiny, "i16", "0", result)

    b.store(x.operands[0], kind, by_lane(b, kind, operands(b, x, kind, 1), lane))


for _name, _body in _UNITS.items():
    define(f"cd_unit_{_name}", "i32", ["i32"], _body)
