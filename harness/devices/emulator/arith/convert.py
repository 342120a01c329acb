"""cvt: between all integer and float types, with every rounding, .sat, .ftz, .relu, and the packed forms."""

from __future__ import annotations

from ..builder import Builder
from ..ptx import Instruction
from .common import (
    QUIET_F32,
    ROUNDINGS,
    Code,
    Mods,
    as_double,
    as_float,
    bits_of,
    double_bits,
    float_bits,
    flush,
    is_nan_f64,
    quiet,
    resize,
    saturate,
    select,
    signed,
)
from .halves import as_number, clamp_half
from .rounding import flush_exact
from .softfloat import f16_to_float, float_to_bf16, float_to_f16, integral, narrow, odd_integer

_INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
_FLOATS = ("f16", "bf16", "f32", "f64")
_TO_INTEGRAL = ("rni", "rzi", "rmi", "rpi")
_PRECISION = {"f16": 0, "bf16": 0, "f32": 1, "f64": 2}


class _Conversion:
    """One cvt with its modifiers taken apart."""

    def __init__(self, b: Builder, x: Instruction) -> None:
        m = Mods(b, x)
        self.source = m.kind(*_INTEGERS, *_FLOATS)
        self.dest = m.kind(*_INTEGERS, *_FLOATS, "f16x2", "bf16x2", "tf32")
        self.rounding = m.one(*ROUNDINGS, *_TO_INTEGRAL, "rna")
        self.ftz, self.sat, self.relu = m.flag("ftz"), m.flag("sat"), m.flag("relu")
        m.done()
        self.builder, self.instruction = b, x

    def refuse(self) -> None:
        self.builder.unsupported(self.instruction)


def convert(b: Builder, x: Instruction) -> None:
    k = _Conversion(b, x)
    if k.dest in ("f16x2", "bf16x2", "tf32"):
        _packed(k)
        return
    alike = k.source == "f32" and k.dest != "f64"  # f64 keeps the payload of a NaN, the rest knows one NaN
    value = (b.raw if alike else b.operand)(x.operands[1], k.source)
    from_float, to_float = k.source in _FLOATS, k.dest in _FLOATS
    if (k.ftz and "f32" not in (k.source, k.dest)) or (k.relu and k.dest not in ("f16", "bf16")):
        k.refuse()
    if from_float and to_float:
        result = float_to_float(k, value)
    elif from_float:
        result = float_to_integer(k, value)
    elif to_float:
        result = integer_to_float(k, value)
    else:
        result = integer_to_integer(k, value)
    b.store(x.operands[0], k.dest, result)


def integer_to_integer(k: _Conversion, value: str) -> str:
    if k.rounding or k.ftz or k.relu:
        k.refuse()
    held, wanted, sign = bits_of(k.source), bits_of(k.dest), signed(k.source)
    if not k.sat:
        return resize(k.builder, value, held, wanted, sign)
    wide = max(held, wanted) + 1  # holds both ranges
    low, high = (-(1 << (wanted - 1)), (1 << (wanted - 1)) - 1) if signed(k.dest) else (0, (1 << wanted) - 1)
    value = resize(k.builder, value, held, wide, sign)
    below = k.builder.emit(f"icmp slt i{wide} {value}, {low}")
    above = k.builder.emit(f"icmp sgt i{wide} {value}, {high}")
    value = select(k.builder, below, f"i{wide}", str(low), select(k.builder, above, f"i{wide}", str(high), value))
    return resize(k.builder, value, wide, wanted)


def number(k: _Conversion, value: str) -> str:
    """A float source as a double; .ftz flushes an f32."""
    c: Code = k.builder
    if k.source == "f64":
        return as_double(c, value)
    if k.source == "f32":
        single = as_float(c, flush(c, value) if k.ftz else value)
        return c.emit(f"fpext float {single} to double")
    return as_number(c, k.source, value)


def float_to_integer(k: _Conversion, value: str) -> str:
    """Out of range is clamped. A NaN gives 0, or, from f64 or to 64 bits, the top bit alone."""
    if k.rounding not in _TO_INTEGRAL or k.relu:
        k.refuse()
    b, width = k.builder, bits_of(k.dest)
    letter = "s" if signed(k.dest) else "u"
    if k.source == "f32" and k.rounding == "rzi":
        kind, llvm = "f32", "float"
        source = as_float(b, flush(b, value) if k.ftz else value)
    else:
        kind, llvm = "f64", "double"
        source = number(k, value)
        if k.rounding != "rzi":
            source = integral(b, source, k.rounding)
    result = b.intrinsic(f"llvm.fpto{letter}i.sat.i{width}.{kind}", f"i{width}", [(llvm, source)])
    if width == 64 or k.source == "f64":
        nan = b.emit(f"fcmp uno {llvm} {source}, 0.0")
        result = select(b, nan, f"i{width}", str(-(1 << (width - 1))), result)
    return result


def integer_to_float(k: _Conversion, value: str) -> str:
    if k.rounding not in ROUNDINGS or k.ftz or k.relu:
        k.refuse()
    b, width, sign = k.builder, bits_of(k.source), signed(k.source)
    how = "sitofp" if sign else "uitofp"
    if k.dest == "f64":
        if width < 64 or k.rounding == "rn":
            result = double_bits(b, b.emit(f"{how} i{width} {value} to double"))
        else:
            result = wide_to_f64(b, value, sign, k.rounding)
    elif k.dest == "f32" and k.rounding == "rn":
        result = float_bits(b, b.emit(f"{how} i{width} {value} to float"))
    else:
        wide = resize(b, value, width, 64, sign)
        exact = odd_integer(b, wide, sign) if width == 64 else b.emit(f"sitofp i64 {wide} to double")
        result = narrow(b, exact, k.dest, k.rounding)
    return saturated(k, result)


def wide_to_f64(c: Code, value: str, sign: bool, mode: str) -> str:
    """A 64-bit integer as f64 in a directed rounding: its halves are exact, their sum is rounded once."""
    high = c.emit(f"{'ashr' if sign else 'lshr'} i64 {value}, 32")
    upper = c.emit(f"fmul double {c.emit(f'sitofp i64 {high} to double')}, 4294967296.0")
    lower = c.emit(f"uitofp i64 {c.emit(f'and i64 {value}, 4294967295')} to double")
    return c.call(f"cd_add_{mode}_f64", "i64", [("i64", double_bits(c, upper)), ("i64", double_bits(c, lower))])


def saturated(k: _Conversion, result: str) -> str:
    """.sat and .relu on a float result."""
    b = k.builder
    if k.dest in ("f16", "bf16"):
        if k.sat and k.dest == "bf16":
            k.refuse()
        return clamp_half(b, k.dest, result, k.sat, k.relu)
    if not k.sat:
        return result
    if k.dest == "f32":
        return saturate(b, result)
    value = as_double(b, result)
    low = select(b, b.emit(f"fcmp ogt double {value}, 0.0"), "double", value, "0.0")
    return double_bits(b, select(b, b.emit(f"fcmp ogt double {low}, 1.0"), "double", "1.0", low))


def float_to_float(k: _Conversion, value: str) -> str:
    """Widening is exact, narrowing rounds once; between equal types an integral rounding or none."""
    b = k.builder
    widens = _PRECISION[k.dest] > _PRECISION[k.source] or k.dest == k.source
    integrals = k.rounding in _TO_INTEGRAL and k.dest == k.source
    if k.rounding == "rna" or (widens and k.rounding and not integrals) or (not widens and k.rounding not in ROUNDINGS):
        k.refuse()
    if k.dest == k.source and k.source in ("f16", "bf16") and not k.rounding:
        return saturated(k, value)
    if (k.dest, k.source) == ("f32", "bf16"):  # the upper half of an f32, NaN and all
        wide = b.emit(f"shl i32 {b.emit(f'zext i16 {value} to i32')}, 16")
        return saturated(k, flush(b, wide) if k.ftz else wide)
    if k.rounding == "rn" and k.source == "f32" and k.dest in ("f16", "bf16"):
        single = as_float(b, flush(b, value) if k.ftz else value)
        return saturated(k, nearest_half(b, single, k.dest))
    if (k.dest, k.source) == ("f32", "f16"):
        return saturated(k, quiet(b, f16_to_float(b, value)))
    exact = number(k, value)
    if integrals:
        exact = integral(b, exact, k.rounding)
    if k.ftz and k.dest == "f32":
        exact = flush_exact(b, exact, "f32", k.rounding or "rn")
    result = from_double(k, exact)
    nan = is_nan_f64(b, double_bits(b, exact))
    if k.dest == "f64" and not k.sat:
        instead = str(0x7FFFFFFFE0000000) if k.ftz else b.emit(f"or i64 {result}, {1 << 51}")
        result = select(b, nan, "i64", instead, result)
    elif k.source == "f64":
        result = select(b, nan, f"i{bits_of(k.dest)}", shortened_nan(k, value), result)
    return saturated(k, result)


def nearest_half(c: Code, single: str, kind: str) -> str:
    """A float as the nearest f16 or bf16."""
    return (float_to_f16 if kind == "f16" else float_to_bf16)(c, single)


def shortened_nan(k: _Conversion, value: str) -> str:
    """An f64 NaN in a narrower format: sign and upper payload kept, made quiet."""
    b, width = k.builder, bits_of(k.dest)
    mantissa = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[k.dest]
    payload = b.emit(f"and i64 {b.emit(f'lshr i64 {value}, {52 - mantissa}')}, {(1 << mantissa) - 1}")
    sign = b.emit(f"shl i64 {b.emit(f'lshr i64 {value}, 63')}, {width - 1}")
    exponent_and_quiet = ((1 << (width - mantissa)) - 1) << (mantissa - 1)
    exponent_and_quiet &= (1 << (width - 1)) - 1
    whole = b.emit(f"or i64 {b.emit(f'or i64 {payload}, {sign}')}, {exponent_and_quiet}")
    return resize(b, whole, 64, width)


def from_double(k: _Conversion, exact: str) -> str:
    b = k.builder
    mode = k.rounding if k.rounding in ROUNDINGS else "rn"
    if k.dest == "f64":
        return double_bits(b, exact)
    if k.dest == "f32" and mode == "rn":
        single = b.emit(f"fptrunc double {exact} to float")
        nan = b.emit(f"fcmp uno float {single}, 0.0")
        result = select(b, nan, "i32", QUIET_F32, float_bits(b, single))
    else:
        result = narrow(b, exact, k.dest, mode)
    return result


def _packed(k: _Conversion) -> None:
    """f16x2 and bf16x2 from two f32 (the first goes into the upper half); tf32: an f32 with ten bits of mantissa."""
    b, x = k.builder, k.instruction
    if k.source != "f32" or k.ftz or k.sat or not k.rounding:
        k.refuse()
    if k.dest == "tf32":
        if k.rounding not in ("rna", "rn", "rz"):
            k.refuse()
        result = b.call(f"cd_tf32_{k.rounding}", "i32", [("i32", b.operand(x.operands[1], "f32"))])
        if k.relu:
            result = select(b, b.emit(f"icmp slt i32 {result}, 0"), "i32", "0", result)
        b.store(x.operands[0], "b32", result)
        return
    if k.rounding not in ("rn", "rz") or len(x.operands) != 3:
        k.refuse()
    kind = k.dest.removesuffix("x2")
    words = []
    for index in (1, 2):
        single = as_float(b, b.raw(x.operands[index], "f32"))
        if k.rounding == "rn":
            half = nearest_half(b, single, kind)
        else:
            half = narrow(b, b.emit(f"fpext float {single} to double"), kind, k.rounding)
        half = clamp_half(b, kind, half, False, k.relu)
        words.append(b.emit(f"zext i16 {half} to i32"))
    b.store(x.operands[0], k.dest, b.emit(f"or i32 {b.emit(f'shl i32 {words[0]}, 16')}, {words[1]}"))
