"""Floating point done with exact fractions: the reference that emulated arithmetic is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    exponent_bits: int
    mantissa_bits: int

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def smallest_normal(self) -> Fraction:
        return Fraction(2) ** (1 - self.bias)


FORMATS = {"f16": Format(5, 10), "bf16": Format(8, 7), "f32": Format(8, 23), "f64": Format(11, 52)}
NAN = "nan"
Number = Fraction | float | str
"""A finite value, an infinity (float), or NAN. The sign of a zero is carried beside it."""


def decode(bits: int, kind: str) -> tuple[Number, bool]:
    """(value, is the sign bit set)."""
    f = FORMATS[kind]
    negative = bool(bits >> (f.width - 1) & 1)
    magnitude = bits & ((1 << (f.width - 1)) - 1)
    if magnitude > f.infinity:
        return NAN, negative
    if magnitude == f.infinity:
        return -math.inf if negative else math.inf, negative
    exponent, mantissa = magnitude >> f.mantissa_bits, magnitude & ((1 << f.mantissa_bits) - 1)
    if exponent:
        mantissa |= 1 << f.mantissa_bits
    value = Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - f.bias - f.mantissa_bits)
    return -value if negative else value, negative


def round_integer(value: Fraction, mode: str) -> int:
    """To an integer: rn (ties to even), rz, rm (down), rp (up)."""
    low = math.floor(value)
    if mode == "rm":
        return low
    if mode == "rp":
        return math.ceil(value)
    if mode == "rz":
        return math.trunc(value)
    rest = value - low
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))


def encode(value: Fraction, negative_zero: bool, kind: str, mode: str, ftz: bool = False) -> int:
    """A finite value rounded once; `negative_zero` is the sign where the value is exactly 0."""
    f = FORMATS[kind]
    negative = value < 0 or (value == 0 and negative_zero)
    sign = negative << (f.width - 1)
    magnitude = abs(value)
    mode = {"rm": "rp", "rp": "rm"}.get(mode, mode) if negative else mode
    if magnitude == 0:
        return sign
    power = power_of(magnitude)
    if ftz and rounded_to(magnitude, power - f.mantissa_bits, mode) < f.smallest_normal:
        return sign
    unit = max(power, 1 - f.bias) - f.mantissa_bits
    scaled = round_integer(magnitude / Fraction(2) ** unit, mode)
    bits = scaled + ((unit + f.mantissa_bits + f.bias - 1) << f.mantissa_bits)
    if bits >= f.infinity:
        bits = f.infinity - (mode in ("rz", "rm"))
    return sign | bits


def power_of(magnitude: Fraction) -> int:
    """The exponent e with 2^e <= magnitude < 2^(e+1)."""
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return guess if Fraction(2) ** guess <= magnitude else guess - 1


def rounded_to(magnitude: Fraction, unit_power: int, mode: str) -> Fraction:
    unit = Fraction(2) ** unit_power
    return round_integer(magnitude / unit, mode) * unit


def operate(op: str, operands: list[int], kind: str, mode: str, ftz: bool = False) -> int | str:
    """Bits of add, sub, mul, fma, div or sqrt rounded once, or NAN."""
    f = FORMATS[kind]
    if ftz:
        operands = [bits & (1 << (f.width - 1)) if is_subnormal(bits, kind) else bits for bits in operands]
    if op == "sub":
        operands, op = [operands[0], operands[1] ^ (1 << (f.width - 1))], "add"
    values = [decode(bits, kind) for bits in operands]
    if any(value == NAN for value, _ in values):
        return NAN
    result, negative = _special(op, values, mode)
    if result == NAN:
        return NAN
    if isinstance(result, float):
        return f.infinity | (result < 0) << (f.width - 1)
    assert isinstance(result, Fraction)
    return encode(result, negative, kind, mode, ftz)


def is_subnormal(bits: int, kind: str) -> bool:
    return 0 < bits & ((1 << (FORMATS[kind].width - 1)) - 1) < 1 << FORMATS[kind].mantissa_bits


def _special(op: str, values: list[tuple[Number, bool]], mode: str) -> tuple[Number, bool]:
    if op == "sqrt":
        return _root(*values[0])
    if op == "div":
        return _quotient(*values[0], *values[1])
    if op == "mul":
        return _product(*values[0], *values[1])
    if op == "fma":
        product, negative = _product(*values[0], *values[1])
        return _sum(product, negative, *values[2], mode)
    return _sum(*values[0], *values[1], mode)


def _sum(a: Number, a_negative: bool, b: Number, b_negative: bool, mode: str) -> tuple[Number, bool]:
    if NAN in (a, b):
        return NAN, False
    if isinstance(a, float) or isinstance(b, float):
        if isinstance(a, float) and isinstance(b, float) and a != b:
            return NAN, False
        return (a, a_negative) if isinstance(a, float) else (b, b_negative)
    assert isinstance(a, Fraction)
    assert isinstance(b, Fraction)
    zero_sign = a_negative and b_negative if a_negative == b_negative and a == 0 else mode == "rm"
    return a + b, zero_sign


def _product(a: Number, a_negative: bool, b: Number, b_negative: bool) -> tuple[Number, bool]:
    negative = a_negative != b_negative
    if isinstance(a, float) or isinstance(b, float):
        if a == 0 or b == 0:
            return NAN, False
        return -math.inf if negative else math.inf, negative
    assert isinstance(a, Fraction)
    assert isinstance(b, Fraction)
    return a * b, negative


def _quotient(a: Number, a_negative: bool, b: Number, b_negative: bool) -> tuple[Number, bool]:
    negative = a_negative != b_negative
    if isinstance(a, float):
        return (NAN, False) if isinstance(b, float) else (-math.inf if negative else math.inf, negative)
    if isinstance(b, float):
        return Fraction(0), negative
    assert isinstance(a, Fraction)
    assert isinstance(b, Fraction)
    if b == 0:
        return (NAN, False) if a == 0 else (-math.inf if negative else math.inf, negative)
    return a / b, negative


def _root(a: Number, negative: bool) -> tuple[Number, bool]:
    """The root with far more bits than any format has, its last bit sticky."""
    if a == 0:
        return Fraction(0), negative
    if negative:
        return NAN, False
    if isinstance(a, float):
        return a, False
    assert isinstance(a, Fraction)
    scale = 2400
    square = a * 4**scale
    assert square.denominator == 1
    root = math.isqrt(square.numerator)
    exact = root * root == square.numerator
    return Fraction(root) / 2**scale if exact else Fraction(2 * root + 1) / 2 ** (scale + 1), False
