"""f32 and f64: add, sub, mul, fma, mad, div, rcp, sqrt under every rounding; neg, abs, min, max, copysign.

Rounding to nearest is LLVM's own operation, inline. Everything else goes through a helper (see rounding).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import Builder, slot_name
from ..ptx import Instruction, Reg
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
    is_loose,
    numbers,
    operands,
    quiet,
    quiet_f64,
    saturate,
    select,
)
from .rounding import nan_order, rounded

_LLVM = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def nearest(c: Code, op: str, kind: str, values: Sequence[str], loose: bool = False) -> str:
    """An operation rounded to nearest even, inline: bits to bits. `loose`: an f32 NaN as the CPU makes it."""
    single = kind == "f32"
    llvm = "float" if single else "double"
    numbers = [as_float(c, v) if single else as_double(c, v) for v in values]
    if op in _LLVM:
        result = c.emit(f"{_LLVM[op]} {llvm} {numbers[0]}, {numbers[1]}")
    else:
        result = c.intrinsic(f"llvm.{op}.{kind}", llvm, [(llvm, number) for number in numbers])
    if single and loose:
        return float_bits(c, result)
    return quiet(c, result) if single else quiet_f64(c, double_bits(c, result), nan_order(op, values))


def compute(
    b: Builder, op: str, kind: str, mode: str, values: Sequence[str], ftz: bool = False, sat: bool = False,
    flushed: Sequence[bool] = (), loose: bool = False,
) -> str:  # fmt: skip
    """Bits of op(values) rounded in direction `mode`; .ftz flushes what goes in and what comes out. `flushed`: for each
    value whether it is known to be no subnormal. `loose`: an f32 NaN may be any."""
    loose = loose or sat  # of which no NaN is left
    if ftz:
        result = flushing(b, op, mode, values, flushed or [False] * len(values), loose)
    elif mode == "rn":
        result = nearest(b, op, kind, values, loose)
    else:
        result = rounded(b, op, mode, kind, values)
    return saturate(b, result) if sat else result


_RESULT = "%cd.ftz"


def flushing(b: Builder, op: str, mode: str, values: Sequence[str], flushed: Sequence[bool], loose: bool) -> str:
    """An f32 operation with .ftz. Rounded to nearest, it is the plain operation, checked: only where an operand or the
    result is tiny (subnormal, or the smallest normal number, to which the result may have been rounded up) a cold block
    does it again with everything flushed."""
    if mode != "rn":
        return rounded(b, op, mode, "ftz_f32", [flush(b, value) for value in values])
    result = nearest(b, op, "f32", values, loose)
    tiny = is_tiny(b, result)
    for value, known in zip(values, flushed, strict=False):
        if not known:
            tiny = b.emit(f"or i1 {tiny}, {is_tiny(b, value)}")
    b.slots[_RESULT] = 32
    slot, again, go = slot_name(_RESULT), b.fresh("tiny"), b.fresh("flushed")
    b.line(f"store i32 {result}, ptr {slot}")
    b.line(f"br i1 {tiny}, label %{again}, label %{go}, !prof !0")
    b.label(again, keep=True)
    exact = rounded(b, op, mode, "ftz_f32", [flush(b, value) for value in values])
    b.line(f"store i32 {exact}, ptr {slot}")
    b.line(f"br label %{go}")
    b.label(go, keep=True)
    return b.emit(f"load i32, ptr {slot}")


def is_tiny(c: Code, value: str) -> str:
    """Nonzero and not above the smallest normal f32. (Doubling drops the sign.)"""
    doubled = c.emit(f"sub i32 {c.emit(f'shl i32 {value}, 1')}, 1")
    return c.emit(f"icmp ult i32 {doubled}, {0x01000000}")


_ONE = {"f32": str(0x3F800000), "f64": str(0x3FF0000000000000)}


def arithmetic(b: Builder, x: Instruction) -> None:
    """add, sub, mul, fma, mad, and the rounded forms of div, rcp, sqrt. f32x2: both halves."""
    m = Mods(b, x)
    kind = m.kind("f32", "f64", "f32x2")
    mode, ftz, sat = m.one(*ROUNDINGS), m.flag("ftz"), m.flag("sat")
    m.done()
    op = {"mad": "fma", "rcp": "div"}.get(x.opcode, x.opcode)
    optional = x.opcode in ("add", "sub", "mul") or (x.opcode == "mad" and kind == "f32")
    if not (mode or optional) or (kind == "f64" and (ftz or sat)) or (sat and op not in ("add", "sub", "mul", "fma")):
        b.unsupported(x)
    if kind == "f32x2" and (sat or op not in ("add", "sub", "mul", "fma")):
        b.unsupported(x)
    values = numbers(b, x, kind, {"fma": 3, "sqrt": 1}.get(op, 1 if x.opcode == "rcp" else 2))
    mode = mode or "rn"
    flushed = [isinstance(source, Reg) and source.name in b.flushed for source in x.operands[1:]]
    if x.opcode == "rcp":
        values, flushed = [_ONE[kind], *values], [True, *flushed]
    if kind == "f32x2":
        low, high = ([_word(b, value, shift) for value in values] for shift in (0, 32))
        parts = [b.emit(f"zext i32 {compute(b, op, 'f32', mode, part, ftz)} to i64") for part in (low, high)]
        result = b.emit(f"or i64 {parts[0]}, {b.emit(f'shl i64 {parts[1]}, 32')}")
    else:
        result = compute(b, op, kind, mode, values, ftz, sat, flushed, is_loose(b, x.operands[0]))
    b.store(x.operands[0], kind, result)


def _word(b: Builder, value: str, shift: int) -> str:
    return b.emit(f"trunc i64 {b.emit(f'lshr i64 {value}, {shift}')} to i32")


def sign(b: Builder, x: Instruction) -> None:
    """neg and abs: the sign bit; an f32 NaN becomes the canonical one, an f64 NaN quiet with its sign kept."""
    m = Mods(b, x)
    kind, ftz = m.kind("f32", "f64"), m.flag("ftz")
    m.done()
    if ftz and kind == "f64":
        b.unsupported(x)
    width = bits_of(kind)
    (value,) = numbers(b, x, kind, 1)
    value = flush(b, value) if ftz else value
    top = 1 << (width - 1)
    changed = b.emit(f"xor i{width} {value}, {-top}" if x.opcode == "neg" else f"and i{width} {value}, {top - 1}")
    nan = is_nan(b, kind, value)
    instead = QUIET_F32 if kind == "f32" else b.emit(f"or i64 {value}, {1 << 51}")
    b.store(x.operands[0], kind, select(b, nan, f"i{width}", instead, changed))


def is_nan(c: Code, kind: str, value: str) -> str:
    magnitude = c.emit(f"and i{bits_of(kind)} {value}, {(1 << (bits_of(kind) - 1)) - 1}")
    return c.emit(f"icmp ugt i{bits_of(kind)} {magnitude}, {_INFINITY[kind]}")


_INFINITY = {"f32": 0x7F800000, "f64": 0x7FF0000000000000}


def pick(c: Code, op: str, kind: str, left: str, right: str, nan: bool) -> str:
    """min or max of bits: -0 below +0; of one NaN the other operand, or (.NaN) a NaN."""
    width, wide = bits_of(kind), f"i{bits_of(kind)}"
    top = (1 << (width - 1)) - 1

    def key(value: str) -> str:  # signed integers in the order of the numbers
        spread = c.emit(f"ashr {wide} {value}, {width - 1}")
        return c.emit(f"xor {wide} {value}, {c.emit(f'and {wide} {spread}, {top}')}")

    first = c.emit(f"icmp {'slt' if op == 'min' else 'sgt'} {wide} {key(left)}, {key(right)}")
    result = select(c, first, wide, left, right)
    left_nan, right_nan = is_nan(c, kind, left), is_nan(c, kind, right)
    canonical = QUIET_F32 if kind == "f32" else c.emit(f"or i64 {right}, {1 << 51}")
    if nan:
        return select(c, c.emit(f"or i1 {left_nan}, {right_nan}"), wide, canonical, result)
    result = select(c, right_nan, wide, left, select(c, left_nan, wide, right, result))
    return select(c, c.emit(f"and i1 {left_nan}, {right_nan}"), wide, canonical, result)


def extreme(b: Builder, x: Instruction) -> None:
    """min and max, with .ftz, .NaN and .xorsign.abs."""
    m = Mods(b, x)
    kind = m.kind("f32", "f64")
    ftz, nan, xorsign = m.flag("ftz"), m.flag("NaN"), m.flag("xorsign")
    magnitude = m.flag("abs")
    m.done()
    if xorsign != magnitude or (kind == "f64" and (ftz or nan or xorsign)):
        b.unsupported(x)
    left, right = numbers(b, x, kind, 2)
    if ftz:
        left, right = flush(b, left), flush(b, right)
    if not xorsign:
        b.store(x.operands[0], kind, pick(b, x.opcode, kind, left, right, nan))
        return
    sign_bit = b.emit(f"and i32 {b.emit(f'xor i32 {left}, {right}')}, {-0x80000000}")
    left, right = (b.emit(f"and i32 {v}, {0x7FFFFFFF}") for v in (left, right))
    value = pick(b, x.opcode, kind, left, right, nan)
    signed = b.emit(f"or i32 {value}, {sign_bit}")
    b.store(x.operands[0], kind, select(b, is_nan(b, kind, value), "i32", value, signed))


def copy_sign(b: Builder, x: Instruction) -> None:
    """copysign d, a, b: the sign of a on the magnitude of b."""
    m = Mods(b, x)
    kind = m.kind("f32", "f64")
    m.done()
    width = bits_of(kind)
    source, value = operands(b, x, kind, 2)
    top = 1 << (width - 1)
    magnitude = b.emit(f"and i{width} {value}, {top - 1}")
    b.store(x.operands[0], kind, b.emit(f"or i{width} {magnitude}, {b.emit(f'and i{width} {source}, {-top}')}"))
