"""Integer arithmetic: add, sub, mul, mad, mul24, sad, div, rem, neg, abs, min, max, dp4a, dp2a."""

from __future__ import annotations

from collections.abc import Callable

from ..builder import Builder
from ..ptx import Instruction
from .common import Mods, bits_of, maximum, minimum, operands, resize, select, signed

ALL = ("u16", "u32", "u64", "s16", "s32", "s64")
PACKED = ("u16x2", "s16x2")
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def sum_or_difference(b: Builder, x: Instruction) -> None:
    """add and sub, without carry; .sat for s32; u16x2 and s16x2 lane by lane."""
    m = Mods(b, x)
    kind = m.kind(*ALL, *PACKED)
    sat = m.flag("sat")
    m.done()
    left, right = operands(b, x, kind, 2)
    if kind in PACKED:
        value = packed(b, left, right, lambda p, q: b.emit(f"{x.opcode} i16 {p}, {q}"))
    elif sat:
        if kind != "s32":
            b.unsupported(x)
        pair = [("i32", left), ("i32", right)]
        value = b.intrinsic(f"llvm.s{x.opcode}.sat.i32", "i32", pair)
    else:
        value = b.emit(f"{x.opcode} i{bits_of(kind)} {left}, {right}")
    b.store(x.operands[0], kind, value)


def packed(b: Builder, left: str, right: str, operation: Callable[[str, str], str]) -> str:
    """A function of two i16 values applied to both halves of two words."""
    halves = []
    for shift in (0, 16):
        p, q = (b.emit(f"trunc i32 {b.emit(f'lshr i32 {v}, {shift}')} to i16") for v in (left, right))
        halves.append(b.emit(f"zext i16 {operation(p, q)} to i32"))
    return b.emit(f"or i32 {halves[0]}, {b.emit(f'shl i32 {halves[1]}, 16')}")


def product(b: Builder, kind: str, part: str, left: str, right: str) -> str:
    """The low or high half of a product, or ("wide") all of it."""
    width = bits_of(kind)
    if part == "lo":
        return b.emit(f"mul i{width} {left}, {right}")
    long = 2 * width
    left, right = (resize(b, v, width, long, signed(kind)) for v in (left, right))
    whole = b.emit(f"mul i{long} {left}, {right}")
    if part == "wide":
        return whole
    return b.emit(f"trunc i{long} {b.emit(f'lshr i{long} {whole}, {width}')} to i{width}")


def multiply(b: Builder, x: Instruction) -> None:
    m = Mods(b, x)
    kind, part = m.kind(*ALL), m.one("lo", "hi", "wide")
    m.done()
    if not part or (part == "wide" and kind not in WIDER):
        b.unsupported(x)
    left, right = operands(b, x, kind, 2)
    b.store(x.operands[0], WIDER[kind] if part == "wide" else kind, product(b, kind, part, left, right))


def multiply_add(b: Builder, x: Instruction) -> None:
    m = Mods(b, x)
    kind, part, sat = m.kind(*ALL), m.one("lo", "hi", "wide"), m.flag("sat")
    m.done()
    if not part or (part == "wide" and kind not in WIDER) or (sat and (kind, part) != ("s32", "hi")):
        b.unsupported(x)
    left, right = operands(b, x, kind, 2)
    result = WIDER[kind] if part == "wide" else kind
    value, addend = product(b, kind, part, left, right), b.operand(x.operands[3], result)
    if sat:
        total = b.intrinsic("llvm.sadd.sat.i32", "i32", [("i32", value), ("i32", addend)])
    else:
        total = b.emit(f"add i{bits_of(result)} {value}, {addend}")
    b.store(x.operands[0], result, total)


def product24(b: Builder, kind: str, part: str, left: str, right: str) -> str:
    """mul24: of the low 24 bits of each, bits 0..31 ("lo") or 16..47 ("hi") of the 48-bit product."""
    how = "ashr" if signed(kind) else "lshr"
    wide = [b.emit(f"{how} i64 {b.emit(f'shl i64 {resize(b, v, 32, 64)}, 40')}, 40") for v in (left, right)]
    whole = b.emit(f"mul i64 {wide[0]}, {wide[1]}")
    if part == "hi":
        whole = b.emit(f"lshr i64 {whole}, 16")
    return b.emit(f"trunc i64 {whole} to i32")


def multiply24(b: Builder, x: Instruction) -> None:
    """mul24 and mad24."""
    m = Mods(b, x)
    kind, part, sat = m.kind("u32", "s32"), m.one("lo", "hi"), m.flag("sat")
    m.done()
    if not part or (sat and (x.opcode, kind, part) != ("mad24", "s32", "hi")):
        b.unsupported(x)
    left, right = operands(b, x, kind, 2)
    value = product24(b, kind, part, left, right)
    if x.opcode == "mad24":
        addend = b.operand(x.operands[3], kind)
        if sat:
            value = b.intrinsic("llvm.sadd.sat.i32", "i32", [("i32", value), ("i32", addend)])
        else:
            value = b.emit(f"add i32 {value}, {addend}")
    b.store(x.operands[0], kind, value)


def absolute_difference(b: Builder, x: Instruction) -> None:
    """sad: c + |a - b|."""
    m = Mods(b, x)
    kind = m.kind(*ALL)
    m.done()
    width = bits_of(kind)
    left, right, addend = operands(b, x, kind, 3)
    low, high = minimum(b, width, left, right, signed(kind)), maximum(b, width, left, right, signed(kind))
    b.store(x.operands[0], kind, b.emit(f"add i{width} {addend}, {b.emit(f'sub i{width} {high}, {low}')}"))


def divide(b: Builder, x: Instruction) -> None:
    """div and rem. PTX leaves division by zero open: an H200 gives all ones, for the remainder too."""
    m = Mods(b, x)
    kind = m.kind(*ALL)
    m.done()
    width, sign = bits_of(kind), signed(kind)
    left, right = operands(b, x, kind, 2)
    zero = b.emit(f"icmp eq i{width} {right}, 0")
    divisor = select(b, zero, f"i{width}", "1", right)
    if sign:  # the smallest number by -1 overflows in LLVM
        minus = b.emit(f"icmp eq i{width} {right}, -1")
        divisor = select(b, minus, f"i{width}", "1", divisor)
    value = b.emit(f"{'s' if sign else 'u'}{x.opcode} i{width} {left}, {divisor}")
    if sign:
        negated = b.emit(f"sub i{width} 0, {left}") if x.opcode == "div" else "0"
        value = select(b, minus, f"i{width}", negated, value)
    b.store(x.operands[0], kind, select(b, zero, f"i{width}", "-1", value))


def negate(b: Builder, x: Instruction) -> None:
    m = Mods(b, x)
    kind = m.kind("s16", "s32", "s64")
    m.done()
    (value,) = operands(b, x, kind, 1)
    b.store(x.operands[0], kind, b.emit(f"sub i{bits_of(kind)} 0, {value}"))


def absolute(b: Builder, x: Instruction) -> None:
    m = Mods(b, x)
    kind = m.kind("s16", "s32", "s64")
    m.done()
    width = bits_of(kind)
    (value,) = operands(b, x, kind, 1)
    negative = b.emit(f"icmp slt i{width} {value}, 0")
    b.store(x.operands[0], kind, select(b, negative, f"i{width}", b.emit(f"sub i{width} 0, {value}"), value))


def extreme(b: Builder, x: Instruction) -> None:
    """min and max; .relu (s32, s16x2) makes a negative result 0."""
    m = Mods(b, x)
    kind = m.kind(*ALL, *PACKED)
    relu = m.flag("relu")
    m.done()
    if relu and kind not in ("s32", "s16x2"):
        b.unsupported(x)
    left, right = operands(b, x, kind, 2)
    pick = minimum if x.opcode == "min" else maximum

    def scalar(p: str, q: str, width: int) -> str:
        value = pick(b, width, p, q, signed(kind))
        return maximum(b, width, value, "0", True) if relu else value

    if kind in PACKED:
        value = packed(b, left, right, lambda p, q: scalar(p, q, 16))
    else:
        value = scalar(left, right, bits_of(kind))
    b.store(x.operands[0], kind, value)


def dot(b: Builder, x: Instruction) -> None:
    """dp4a: four products of bytes; dp2a: two of a 16-bit and an 8-bit number (the low or high pair of bytes)."""
    m = Mods(b, x)
    kinds = (m.kind("u32", "s32"), m.kind("u32", "s32"))[::-1]
    half = m.one("lo", "hi")
    m.done()
    if (x.opcode == "dp2a") != bool(half):
        b.unsupported(x)
    left, right, total = operands(b, x, "b32", 3)
    lanes, left_bits = (4, 8) if x.opcode == "dp4a" else (2, 16)
    for lane in range(lanes):
        byte = lane + (2 if half == "hi" else 0)
        p = piece(b, left, lane * left_bits, left_bits, signed(kinds[0]))
        q = piece(b, right, byte * 8, 8, signed(kinds[1]))
        total = b.emit(f"add i32 {total}, {b.emit(f'mul i32 {p}, {q}')}")
    b.store(x.operands[0], "b32", total)


def piece(b: Builder, word: str, at: int, width: int, sign: bool) -> str:
    """Bits [at, at+width) of a word, extended to 32 bits."""
    raised = b.emit(f"shl i32 {word}, {32 - at - width}")
    return b.emit(f"{'ashr' if sign else 'lshr'} i32 {raised}, {32 - width}")


def lane_differences(b: Builder, x: Instruction) -> None:
    """vabsdiff2 and vabsdiff4: |a - b| lane by lane; .add sums the lanes and a third operand instead."""
    m = Mods(b, x)
    adds = m.flag("add")
    kinds = [m.kind("u32", "s32") for _ in ("b", "a", "d")]
    m.done()
    width = 16 if x.opcode == "vabsdiff2" else 8
    left, right, third = operands(b, x, "b32", 3)
    total = third if adds else "0"
    for at in range(0, 32, width):
        p = piece(b, left, at, width, signed(kinds[1]))
        q = piece(b, right, at, width, signed(kinds[0]))
        difference = b.emit(f"sub i32 {maximum(b, 32, p, q, True)}, {minimum(b, 32, p, q, True)}")
        if not adds:
            difference = b.emit(f"shl i32 {difference}, {at}")
        total = b.emit(f"add i32 {total}, {difference}")
    b.store(x.operands[0], "b32", total)
