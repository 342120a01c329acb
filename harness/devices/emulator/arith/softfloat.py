"""Exact narrowing and directed rounding, in integer and double arithmetic.

An operation on f16, bf16 or f32 is done in f64 and *rounded to odd* there: where the f64 result is inexact its last
bit is made 1. A result rounded to odd with two or more bits beyond the target's can then be rounded to the target in
any direction as if it were exact (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
Products of two such numbers are exact in f64; sums get their error from Knuth's two-sum, quotients and roots from a
fused remainder.
"""

from __future__ import annotations

from .common import ROUNDINGS, Code, as_double, as_float, double_bits, float_bits, select
from .text import define

FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23)}
"""Exponent and mantissa bits of the narrow formats."""
_MANTISSA = (1 << 52) - 1


def step_odd(c: Code, result: str, inexact: str, outward: str) -> str:
    """`result` (double) rounded to odd: where `inexact` and its last bit is 0, one step away from or towards zero."""
    bits = double_bits(c, result)
    last = c.emit(f"and i64 {bits}, 1")
    even = c.emit(f"icmp eq i64 {last}, 0")
    moves = c.emit(f"and i1 {inexact}, {even}")
    step = select(c, outward, "i64", "1", "-1")
    step = select(c, moves, "i64", step, "0")
    return as_double(c, c.emit(f"add i64 {bits}, {step}"))


def odd_sum(c: Code, a: str, b: str) -> str:
    """a + b, rounded to odd. Neither may overflow (they come from f32 or narrower)."""
    total = c.emit(f"fadd double {a}, {b}")
    part = c.emit(f"fsub double {total}, {a}")
    rest = c.emit(f"fsub double {total}, {part}")
    error = c.emit(f"fadd double {c.emit(f'fsub double {a}, {rest}')}, {c.emit(f'fsub double {b}, {part}')}")
    inexact = c.emit(f"fcmp one double {error}, 0.0")
    positive_error = c.emit(f"fcmp ogt double {error}, 0.0")
    positive = c.emit(f"fcmp ogt double {total}, 0.0")
    differs = c.emit(f"xor i1 {positive_error}, {positive}")
    return step_odd(c, total, inexact, c.emit(f"xor i1 {differs}, true"))


def odd_quotient(c: Code, a: str, b: str) -> str:
    """a / b, rounded to odd."""
    quotient = c.emit(f"fdiv double {a}, {b}")
    negative = c.emit(f"fneg double {quotient}")
    remainder = c.intrinsic("llvm.fma.f64", "double", [("double", negative), ("double", b), ("double", a)])
    inexact = c.emit(f"fcmp one double {remainder}, 0.0")
    signs = c.emit(f"xor i64 {double_bits(c, remainder)}, {double_bits(c, b)}")
    signs = c.emit(f"xor i64 {signs}, {double_bits(c, quotient)}")
    return step_odd(c, quotient, inexact, c.emit(f"icmp sge i64 {signs}, 0"))


def odd_root(c: Code, a: str) -> str:
    """sqrt(a), rounded to odd."""
    root = c.intrinsic("llvm.sqrt.f64", "double", [("double", a)])
    negative = c.emit(f"fneg double {root}")
    remainder = c.intrinsic("llvm.fma.f64", "double", [("double", negative), ("double", root), ("double", a)])
    inexact = c.emit(f"fcmp one double {remainder}, 0.0")
    return step_odd(c, root, inexact, c.emit(f"fcmp ogt double {remainder}, 0.0"))


def odd_integer(c: Code, value: str, sign: bool) -> str:
    """An i64 as a double, rounded to odd."""
    negative = c.emit(f"icmp slt i64 {value}, 0") if sign else "false"
    magnitude = select(c, negative, "i64", c.emit(f"sub i64 0, {value}"), value)
    big = c.emit(f"icmp uge i64 {magnitude}, {1 << 53}")
    lost = c.emit(f"icmp ne i64 {c.emit(f'and i64 {magnitude}, 2047')}, 0")
    high = c.emit(f"or i64 {c.emit(f'lshr i64 {magnitude}, 11')}, {c.emit(f'zext i1 {lost} to i64')}")
    scaled = c.emit(f"fmul double {c.emit(f'uitofp i64 {high} to double')}, 2048.0")
    small = c.emit(f"uitofp i64 {select(c, big, 'i64', '0', magnitude)} to double")
    number = select(c, big, "double", scaled, small)
    return select(c, negative, "double", c.emit(f"fneg double {number}"), number)


def round_up(c: Code, mode: str, kept: str, rest: str, half: str, negative: str) -> str:
    """Whether the magnitude `kept` with the bits `rest` cut off (their unit's half is `half`) grows by one (i1)."""
    if mode == "rz":
        return "false"
    if mode == "rna":
        return c.emit(f"icmp uge i64 {rest}, {half}")
    if mode == "rn":
        above = c.emit(f"icmp ugt i64 {rest}, {half}")
        tie = c.emit(f"icmp eq i64 {rest}, {half}")
        odd = c.emit(f"trunc i64 {kept} to i1")
        return c.emit(f"or i1 {above}, {c.emit(f'and i1 {tie}, {odd}')}")
    inexact = c.emit(f"icmp ne i64 {rest}, 0")
    wanted = negative if mode == "rm" else c.emit(f"xor i1 {negative}, true")
    return c.emit(f"and i1 {inexact}, {wanted}")


def narrow_body(c: Code, number: str, exponent_bits: int, mantissa_bits: int, mode: str) -> str:
    """A double rounded once to a narrower binary format; its bits. NaN becomes all ones without the sign."""
    width, bias = 1 + exponent_bits + mantissa_bits, (1 << (exponent_bits - 1)) - 1
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    bits = double_bits(c, number)
    negative = c.emit(f"icmp slt i64 {bits}, 0")
    magnitude = c.emit(f"and i64 {bits}, {(1 << 63) - 1}")
    exponent = c.emit(f"lshr i64 {magnitude}, 52")
    leading = select(c, c.emit(f"icmp eq i64 {exponent}, 0"), "i64", "0", str(1 << 52))
    significand = c.emit(f"or i64 {c.emit(f'and i64 {magnitude}, {_MANTISSA}')}, {leading}")
    field = c.emit(f"sub i64 {exponent}, {1023 - bias}")  # of the target; 0 and less: subnormal
    below = c.emit(f"sub i64 1, {field}")
    tiny = c.emit(f"icmp sgt i64 {below}, 0")
    shift = c.emit(f"add i64 {select(c, tiny, 'i64', below, '0')}, {52 - mantissa_bits}")
    shift = select(c, c.emit(f"icmp ugt i64 {shift}, 62"), "i64", "62", shift)
    kept = c.emit(f"lshr i64 {significand}, {shift}")
    unit = c.emit(f"shl i64 1, {shift}")
    rest = c.emit(f"and i64 {significand}, {c.emit(f'sub i64 {unit}, 1')}")
    up = round_up(c, mode, kept, rest, c.emit(f"lshr i64 {unit}, 1"), negative)
    kept = c.emit(f"add i64 {kept}, {c.emit(f'zext i1 {up} to i64')}")
    base = c.emit(f"shl i64 {c.emit(f'sub i64 {field}, 1')}, {mantissa_bits}")
    result = c.emit(f"add i64 {kept}, {select(c, tiny, 'i64', '0', base)}")
    largest = select(c, negative, "i64", *overflow(mode, infinity))
    result = select(c, c.emit(f"icmp uge i64 {result}, {infinity}"), "i64", largest, result)
    infinite = c.emit(f"icmp eq i64 {magnitude}, {0x7FF << 52}")
    result = select(c, infinite, "i64", str(infinity), result)
    signed = c.emit(f"or i64 {result}, {select(c, negative, 'i64', str(1 << (width - 1)), '0')}")
    nan = c.emit(f"icmp ugt i64 {magnitude}, {0x7FF << 52}")
    signed = select(c, nan, "i64", str((1 << (width - 1)) - 1), signed)
    return c.emit(f"trunc i64 {signed} to i{width}")


def overflow(mode: str, infinity: int) -> tuple[str, str]:
    """What a finite value too large becomes, where negative and where positive."""
    largest = infinity - 1
    below = largest if mode in ("rz", "rp") else infinity
    above = largest if mode in ("rz", "rm") else infinity
    return str(below), str(above)


def narrow(c: Code, number: str, kind: str, mode: str) -> str:
    """A double rounded to `kind` in direction `mode`, as bits."""
    width = 32 if kind == "f32" else 16
    return c.call(f"cd_narrow_{kind}_{mode}", f"i{width}", [("double", number)])


def _define_narrowing() -> None:
    for kind, (exponent_bits, mantissa_bits) in FORMATS.items():
        for mode in ROUNDINGS:

            def body(c: Code, number: str, e: int = exponent_bits, m: int = mantissa_bits, mode: str = mode) -> str:
                return narrow_body(c, number, e, m, mode)

            width = 1 + exponent_bits + mantissa_bits
            define(f"cd_narrow_{kind}_{mode}", f"i{width}", ["double"], body)


def integral(c: Code, value: str, rounding: str) -> str:
    """A double rounded to an integral one; keeps the sign of zero, NaN and infinity."""
    magnitude = c.intrinsic("llvm.fabs.f64", "double", [("double", value)])
    shifter = "0x4330000000000000"  # 2^52: adding and subtracting it rounds to nearest even
    near = c.emit(f"fsub double {c.emit(f'fadd double {magnitude}, {shifter}')}, {shifter}")
    over = c.emit(f"fcmp ogt double {near}, {magnitude}")
    under = c.emit(f"fcmp olt double {near}, {magnitude}")
    negative = c.emit(f"icmp slt i64 {double_bits(c, value)}, 0")
    down = select(c, over, "double", c.emit(f"fsub double {near}, 1.0"), near)
    up = select(c, under, "double", c.emit(f"fadd double {near}, 1.0"), near)
    if rounding == "rmi":
        near = select(c, negative, "double", up, down)
    elif rounding == "rpi":
        near = select(c, negative, "double", down, up)
    elif rounding == "rzi":
        near = down
    small = c.emit(f"fcmp olt double {magnitude}, {shifter}")
    near = c.intrinsic("llvm.copysign.f64", "double", [("double", near), ("double", value)])
    return select(c, small, "double", near, value)


def f16_to_float(c: Code, value: str) -> str:
    """f16 bits as a float. Exact; a NaN keeps its payload."""
    wide = c.emit(f"zext i16 {value} to i32")
    magnitude = c.emit(f"shl i32 {c.emit(f'and i32 {wide}, 32767')}, 13")
    # As a float this is the value times 2^-112, subnormal or not: multiplying is exact.
    small = c.emit(f"fmul float {as_float(c, magnitude)}, {2.0**112!r}")
    special = c.emit(f"icmp uge i32 {magnitude}, {0x7C00 << 13}")
    large = c.emit(f"or i32 {magnitude}, {0x7F800000}")
    number = select(c, special, "i32", large, float_bits(c, small))
    sign = c.emit(f"shl i32 {c.emit(f'and i32 {wide}, 32768')}, 16")
    return as_float(c, c.emit(f"or i32 {number}, {sign}"))


def float_to_f16(c: Code, number: str) -> str:
    """A float rounded to the nearest f16 (ties to even), as bits."""
    bits = float_bits(c, number)
    magnitude = c.emit(f"and i32 {bits}, {0x7FFFFFFF}")
    # Normal results: add half a unit (less one for an even last bit), let the carry run, change the bias.
    odd = c.emit(f"and i32 {c.emit(f'lshr i32 {magnitude}, 13')}, 1")
    raised = c.emit(f"add i32 {magnitude}, {0xFFF - (112 << 23)}")
    normal = c.emit(f"lshr i32 {c.emit(f'add i32 {raised}, {odd}')}, 13")
    # Subnormal results: adding 0.5 leaves the wanted bits, rounded, at the bottom of the sum.
    absolute = as_float(c, magnitude)
    shifted = float_bits(c, c.emit(f"fadd float {absolute}, 5.0e-01"))
    tiny = c.emit(f"icmp ult i32 {magnitude}, {0x38800000}")
    finite = select(c, tiny, "i32", c.emit(f"sub i32 {shifted}, {0x3F000000}"), normal)
    nan = c.emit(f"icmp ugt i32 {magnitude}, {0x7F800000}")
    special = select(c, nan, "i32", "32767", "31744")
    result = select(c, c.emit(f"icmp uge i32 {magnitude}, {0x47800000}"), "i32", special, finite)
    sign = c.emit(f"and i32 {c.emit(f'lshr i32 {bits}, 16')}, 32768")
    signed = c.emit(f"or i32 {result}, {select(c, nan, 'i32', '0', sign)}")
    return c.emit(f"trunc i32 {signed} to i16")


def float_to_bf16(c: Code, number: str) -> str:
    """A float rounded to the nearest bf16 (ties to even), as bits."""
    bits = float_bits(c, number)
    odd = c.emit(f"and i32 {c.emit(f'lshr i32 {bits}, 16')}, 1")
    raised = c.emit(f"add i32 {c.emit(f'add i32 {bits}, 32767')}, {odd}")
    nan = c.emit(f"fcmp uno float {number}, 0.0")
    return select(c, nan, "i16", "32767", c.emit(f"trunc i32 {c.emit(f'lshr i32 {raised}, 16')} to i16"))


def odd_sum_float(c: Code, a: str, b: str) -> str:
    """a + b of floats that cannot overflow, rounded to odd."""
    total = c.emit(f"fadd float {a}, {b}")
    part = c.emit(f"fsub float {total}, {a}")
    rest = c.emit(f"fsub float {total}, {part}")
    error = c.emit(f"fadd float {c.emit(f'fsub float {a}, {rest}')}, {c.emit(f'fsub float {b}, {part}')}")
    bits = float_bits(c, total)
    signs = c.emit(f"xor i32 {bits}, {float_bits(c, error)}")
    step = select(c, c.emit(f"icmp sge i32 {signs}, 0"), "i32", "1", "-1")
    even = c.emit(f"icmp eq i32 {c.emit(f'and i32 {bits}, 1')}, 0")
    moves = c.emit(f"and i1 {even}, {c.emit(f'fcmp one float {error}, 0.0')}")
    step = select(c, moves, "i32", step, "0")
    return as_float(c, c.emit(f"add i32 {bits}, {step}"))


def widen_f16(c: Code, value: str) -> str:
    """f16 bits to a double. Exact; a NaN stays a NaN."""
    return c.emit(f"fpext float {f16_to_float(c, value)} to double")


def widen_bf16(c: Code, value: str) -> str:
    """bf16 bits to a double."""
    wide = c.emit(f"shl i32 {c.emit(f'zext i16 {value} to i32')}, 16")
    return c.emit(f"fpext float {as_float(c, wide)} to double")


_define_narrowing()


def _tf32_body(c: Code, value: str, mode: str) -> str:
    """f32 bits with the mantissa rounded to ten bits; the rest is zero."""
    wide = c.emit(f"fpext float {as_float(c, value)} to double")
    short = narrow_body(c, wide, 8, 10, mode)
    nan = c.emit(f"fcmp uno double {wide}, 0.0")
    kept = c.emit(f"and i32 {value}, -8192") if mode == "rna" else str(0x7FFFE000)
    return select(c, nan, "i32", kept, c.emit(f"shl i32 {c.emit(f'zext i19 {short} to i32')}, 13"))


def _define_tf32() -> None:
    for mode in ("rn", "rz", "rna"):

        def body(c: Code, value: str, mode: str = mode) -> str:
            return _tf32_body(c, value, mode)

        define(f"cd_tf32_{mode}", "i32", ["i32"], body)


_define_tf32()
