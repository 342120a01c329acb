"""f16 and bf16, single and packed: add, sub, mul, fma, neg, abs, min, max.

f16 is computed in f32, bf16 in f64, wide enough that the last step rounds once: see softfloat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..builder import Builder
from ..ptx import Instruction
from .common import HALF_KINDS, Code, Mods, float_bits, operands, select
from .rounding import wide_operation
from .softfloat import f16_to_float, float_to_f16, narrow, odd_sum_float, widen_bf16, widen_f16
from .text import define

Lane = Callable[[Sequence[str]], str]


def as_number(c: Code, kind: str, value: str) -> str:
    """f16 or bf16 bits as a double."""
    return widen_f16(c, value) if kind == "f16" else widen_bf16(c, value)


def flush_half(c: Code, value: str) -> str:
    """.ftz: a subnormal f16 becomes a zero of its sign."""
    tiny = c.emit(f"icmp eq i16 {c.emit(f'and i16 {value}, {0x7C00}')}, 0")
    return select(c, tiny, "i16", c.emit(f"and i16 {value}, -32768"), value)


def is_nan(c: Code, kind: str, value: str) -> str:
    magnitude = c.emit(f"and i16 {value}, 32767")
    return c.emit(f"icmp ugt i16 {magnitude}, {infinity(kind)}")


def infinity(kind: str) -> int:
    return 0x7C00 if kind == "f16" else 0x7F80


def by_lane(b: Builder, kind: str, values: Sequence[str], lane: Lane) -> str:
    """`lane` applied to the 16-bit numbers in each value; the results packed as the kind says."""
    if not kind.endswith("x2"):
        return lane(values)
    low = lane([b.emit(f"trunc i32 {value} to i16") for value in values])
    high = lane([b.emit(f"trunc i32 {b.emit(f'lshr i32 {value}, 16')} to i16") for value in values])
    upper = b.emit(f"shl i32 {b.emit(f'zext i16 {high} to i32')}, 16")
    return b.emit(f"or i32 {upper}, {b.emit(f'zext i16 {low} to i32')}")


def clamp_half(c: Code, kind: str, value: str, sat: bool, relu: bool) -> str:
    """.sat: [+0, 1], NaN to +0. .relu: negative numbers to +0, NaN stays."""
    negative = c.emit(f"icmp slt i16 {value}, 0")
    if relu:
        return select(c, negative, "i16", "0", value)
    if not sat:
        return value
    zero = c.emit(f"or i1 {negative}, {is_nan(c, kind, value)}")
    one = 0x3C00 if kind == "f16" else 0x3F80
    over = c.emit(f"icmp sgt i16 {value}, {one}")
    return select(c, zero, "i16", "0", select(c, over, "i16", str(one), value))


def compute(
    c: Code, op: str, kind: str, values: Sequence[str], ftz: bool = False, sat: bool = False, relu: bool = False
) -> str:
    """One operation on f16 or bf16 bits, rounded to nearest even."""
    if kind == "f16":
        result = c.call(f"cd_{op}{'_ftz' if ftz else ''}_f16", "i16", [("i16", value) for value in values])
    else:
        result = c.call(f"cd_{op}_bf16", "i16", [("i16", value) for value in values])
    return clamp_half(c, kind, result, sat, relu)


def _f16_body(c: Code, op: str, values: Sequence[str], ftz: bool) -> str:
    """In f32, whose 24 bits are enough: products are exact, and a sum of two f16 rounded to 24 and then to 11 bits
    comes out as if rounded once (24 >= 2 * 11 + 2). A fused sum has no such luck and is rounded to odd."""
    numbers = [f16_to_float(c, flush_half(c, value) if ftz else value) for value in values]
    if op in ("add", "sub", "mul"):
        exact = c.emit(f"f{op} float {numbers[0]}, {numbers[1]}")
    else:
        exact = odd_sum_float(c, c.emit(f"fmul float {numbers[0]}, {numbers[1]}"), numbers[2])
    result = float_to_f16(c, exact)
    if not ftz:
        return result
    bits = float_bits(c, exact)
    magnitude = c.emit(f"and i32 {bits}, {0x7FFFFFFF}")
    # Below the middle between the smallest normal number and its lower neighbour of 11 bits: it would not round up.
    tiny = c.emit(f"icmp ult i32 {magnitude}, {0x387FF000}")
    sign = c.emit(f"trunc i32 {c.emit(f'lshr i32 {bits}, 16')} to i16")
    return select(c, tiny, "i16", c.emit(f"and i16 {sign}, -32768"), result)


def _bf16_body(c: Code, op: str, values: Sequence[str]) -> str:
    return narrow(c, wide_operation(c, op, [widen_bf16(c, value) for value in values], "rn"), "bf16", "rn")


def _define_all() -> None:
    for op, arity in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        for ftz in (False, True):

            def f16(c: Code, *values: str, op: str = op, ftz: bool = ftz) -> str:
                return _f16_body(c, op, values, ftz)

            define(f"cd_{op}{'_ftz' if ftz else ''}_f16", "i16", ["i16"] * arity, f16)

        def bf16(c: Code, *values: str, op: str = op) -> str:
            return _bf16_body(c, op, values)

        define(f"cd_{op}_bf16", "i16", ["i16"] * arity, bf16)


def arithmetic(b: Builder, x: Instruction) -> None:
    """add, sub, mul, fma."""
    m = Mods(b, x)
    kind = m.kind(*HALF_KINDS)
    rounding = m.one("rn")
    ftz, sat, relu = m.flag("ftz"), m.flag("sat"), m.flag("relu")
    m.done()
    single, fused = kind.removesuffix("x2"), x.opcode == "fma"
    if (single == "bf16" and (ftz or sat)) or (relu and not fused) or (fused and not rounding):
        b.unsupported(x)
    values = operands(b, x, kind, 3 if fused else 2)
    result = by_lane(b, kind, values, lambda v: compute(b, x.opcode, single, v, ftz, sat, relu))
    b.store(x.operands[0], kind, result)


def sign(b: Builder, x: Instruction) -> None:
    """neg and abs."""
    m = Mods(b, x)
    kind, ftz = m.kind(*HALF_KINDS), m.flag("ftz")
    m.done()
    single = kind.removesuffix("x2")
    if ftz and single == "bf16":
        b.unsupported(x)

    def lane(values: Sequence[str]) -> str:
        value = flush_half(b, values[0]) if ftz else values[0]
        changed = b.emit(f"xor i16 {value}, -32768" if x.opcode == "neg" else f"and i16 {value}, 32767")
        return select(b, is_nan(b, single, value), "i16", "32767", changed)

    b.store(x.operands[0], kind, by_lane(b, kind, operands(b, x, kind, 1), lane))


def pick_half(c: Code, kind: str, op: str, values: Sequence[str], nan: bool) -> str:
    """min or max: -0 below +0; of one NaN the other operand, or (.NaN) a NaN."""
    left, right = values

    def key(value: str) -> str:  # signed integers in the order of the numbers
        flipped = c.emit(f"and i16 {c.emit(f'ashr i16 {value}, 15')}, 32767")
        return c.emit(f"xor i16 {value}, {flipped}")

    first = c.emit(f"icmp {'slt' if op == 'min' else 'sgt'} i16 {key(left)}, {key(right)}")
    result = select(c, first, "i16", left, right)
    left_nan, right_nan = is_nan(c, kind, left), is_nan(c, kind, right)
    if nan:
        return select(c, c.emit(f"or i1 {left_nan}, {right_nan}"), "i16", "32767", result)
    result = select(c, left_nan, "i16", right, result)
    both = c.emit(f"and i1 {left_nan}, {right_nan}")
    return select(c, both, "i16", "32767", select(c, right_nan, "i16", left, result))


def extreme(b: Builder, x: Instruction) -> None:
    """min and max, with .NaN and .xorsign.abs."""
    m = Mods(b, x)
    kind = m.kind(*HALF_KINDS)
    ftz, nan, xorsign = m.flag("ftz"), m.flag("NaN"), m.flag("xorsign")
    magnitude = m.flag("abs")
    m.done()
    single = kind.removesuffix("x2")
    if xorsign != magnitude or (ftz and single == "bf16"):
        b.unsupported(x)

    def lane(values: Sequence[str]) -> str:
        values = [flush_half(b, v) for v in values] if ftz else values
        if not xorsign:
            return pick_half(b, single, x.opcode, values, nan)
        sign = b.emit(f"and i16 {b.emit(f'xor i16 {values[0]}, {values[1]}')}, -32768")
        result = pick_half(b, single, x.opcode, [b.emit(f"and i16 {v}, 32767") for v in values], nan)
        return select(b, is_nan(b, single, result), "i16", result, b.emit(f"or i16 {result}, {sign}"))

    b.store(x.operands[0], kind, by_lane(b, kind, operands(b, x, kind, 2), lane))


_define_all()
