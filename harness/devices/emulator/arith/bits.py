"""Bit operations: logic, lop3, shifts, shf, prmt, bfe, bfi, bfind, brev, clz, popc, fns, szext, bmsk."""

from __future__ import annotations

from ..builder import Builder
from ..ptx import Imm, Instruction
from .common import Code, Mods, bits_of, destinations, minimum, operands, resize, select, signed
from .text import define

_LOGIC = ("pred", "b16", "b32", "b64")


def logic(b: Builder, x: Instruction) -> None:
    """and, or, xor, not, cnot."""
    m = Mods(b, x)
    kind = m.kind(*_LOGIC)
    m.done()
    width = bits_of(kind)
    if x.opcode == "not":
        (value,) = operands(b, x, kind, 1)
        value = b.emit(f"xor i{width} {value}, -1")
    elif x.opcode == "cnot":
        (value,) = operands(b, x, kind, 1)
        value = resize(b, b.emit(f"icmp eq i{width} {value}, 0"), 1, width)
    else:
        left, right = operands(b, x, kind, 2)
        value = b.emit(f"{x.opcode} i{width} {left}, {right}")
    b.store(x.operands[0], kind, value)


def lop3(b: Builder, x: Instruction) -> None:
    """Any function of three bits, given as its truth table; .or/.and also join `result != 0` with a predicate."""
    m = Mods(b, x)
    m.kind("b32")
    joins = m.one("or", "and")
    m.done()
    table = x.operands[4]
    if not isinstance(table, Imm):
        b.unsupported(x)
    value = truth_table(b, operands(b, x, "b32", 3), table.value & 255)
    first, second = destinations(x.operands[0])
    if joins:
        some = b.emit(f"icmp ne i32 {value}, 0")
        b.store(second, "pred", b.emit(f"{joins} i1 {some}, {b.operand(x.operands[5], 'pred')}"))
    b.store(first, "b32", value)


def truth_table(b: Builder, words: list[str], table: int) -> str:
    """Bit k of the table is the result where (a, b, c) spell k: a multiplexer by c, then b, then a."""
    level = [("-1" if table >> k & 1 else "0") for k in range(8)]
    for word in (words[2], words[1], words[0]):
        level = [_choose(b, word, level[k], level[k + 1]) for k in range(0, len(level), 2)]
    return level[0]


def _choose(b: Builder, word: str, zero: str, one: str) -> str:
    """Bit by bit: `one` where the word has 1, else `zero`."""
    if zero == one:
        return zero
    if (zero, one) == ("0", "-1"):
        return word
    differs = b.emit(f"xor i32 {zero}, {one}")
    return b.emit(f"xor i32 {zero}, {b.emit(f'and i32 {differs}, {word}')}")


def shift(b: Builder, x: Instruction) -> None:
    """shl and shr: counts of the width and more give 0, or all sign bits."""
    m = Mods(b, x)
    kind = m.kind("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
    m.done()
    width = bits_of(kind)
    (value,), count = operands(b, x, kind, 1), b.operand(x.operands[2], "u32")
    b.store(x.operands[0], kind, shifted(b, x.opcode, width, value, count, signed(kind)))


def shifted(b: Builder, opcode: str, width: int, value: str, count: str, sign: bool) -> str:
    inside = resize(b, minimum(b, 32, count, str(width - 1)), 32, width)
    if opcode == "shr" and sign:
        return b.emit(f"ashr i{width} {value}, {inside}")
    moved = b.emit(f"{'shl' if opcode == 'shl' else 'lshr'} i{width} {value}, {inside}")
    return select(b, b.emit(f"icmp ugt i32 {count}, {width - 1}"), f"i{width}", "0", moved)


def funnel(b: Builder, x: Instruction) -> None:
    """shf: a 64-bit word (b high, a low) shifted left (its high half) or right (its low half)."""
    m = Mods(b, x)
    m.kind("b32")
    way, mode = m.one("l", "r"), m.one("clamp", "wrap")
    m.done()
    if not way or not mode:
        b.unsupported(x)
    low, high, count = operands(b, x, "b32", 3)
    count = minimum(b, 32, count, "32") if mode == "clamp" else b.emit(f"and i32 {count}, 31")
    upper = b.emit(f"shl i64 {resize(b, high, 32, 64)}, 32")
    both, places = b.emit(f"or i64 {upper}, {resize(b, low, 32, 64)}"), resize(b, count, 32, 64)
    if way == "l":
        value = b.emit(f"lshr i64 {b.emit(f'shl i64 {both}, {places}')}, 32")
    else:
        value = b.emit(f"lshr i64 {both}, {places}")
    b.store(x.operands[0], "b32", b.emit(f"trunc i64 {value} to i32"))


_PERMUTE_MODES = {
    "f4e": ("0123", "1234", "2345", "3456"), "b4e": ("0765", "1076", "2107", "3210"),
    "rc8": ("0000", "1111", "2222", "3333"), "ecl": ("0123", "1123", "2223", "3333"),
    "ecr": ("0000", "0111", "0122", "0123"), "rc16": ("0101", "2323", "0101", "2323"),
}  # fmt: skip
"""For each value of the control's low two bits, the source byte of result bytes 0, 1, 2, 3."""


def permute(b: Builder, x: Instruction) -> None:
    m = Mods(b, x)
    mode = m.one(*_PERMUTE_MODES)
    m.kind("b32")
    m.done()
    low, high, control = operands(b, x, "b32", 3)
    if mode:
        table = [sum(int(d) << (4 * k) for k, d in enumerate(row)) for row in _PERMUTE_MODES[mode]]
        pick = b.emit(f"shl i32 {b.emit(f'and i32 {control}, 3')}, 4")
        packed = sum(value << (16 * k) for k, value in enumerate(table))
        control = b.emit(f"trunc i64 {b.emit(f'lshr i64 {packed}, {resize(b, pick, 32, 64)}')} to i32")
    both = b.emit(f"or i64 {b.emit(f'shl i64 {resize(b, high, 32, 64)}, 32')}, {resize(b, low, 32, 64)}")
    result = "0"
    for lane in range(4):
        nibble = b.emit(f"lshr i32 {control}, {4 * lane}")
        places = resize(b, b.emit(f"shl i32 {b.emit(f'and i32 {nibble}, 7')}, 3"), 32, 64)
        byte = b.emit(f"trunc i64 {b.emit(f'lshr i64 {both}, {places}')} to i8")
        spread = b.emit(f"icmp ne i32 {b.emit(f'and i32 {nibble}, 8')}, 0")
        byte = resize(b, select(b, spread, "i8", b.emit(f"ashr i8 {byte}, 7"), byte), 8, 32)
        result = b.emit(f"or i32 {result}, {b.emit(f'shl i32 {byte}, {8 * lane}')}")
    b.store(x.operands[0], "b32", result)


def _place(b: Builder, x: Instruction, index: int, width: int) -> str:
    """A position or length: the 32-bit forms read its low byte, the 64-bit forms all of it (as an H200 does)."""
    value = b.operand(x.operands[index], "u32")
    return b.emit(f"and i32 {value}, 255") if width == 32 else value


def extract(b: Builder, x: Instruction) -> None:
    """bfe: `length` bits from `position`; past the top comes the sign or 0."""
    m = Mods(b, x)
    kind = m.kind("u32", "s32", "u64", "s64")
    m.done()
    width, sign = bits_of(kind), signed(kind)
    (value,) = operands(b, x, kind, 1)
    position, length = _place(b, x, 2, width), _place(b, x, 3, width)
    # shift down with sign, then cut to `length` bits by a shift up and down
    down = resize(b, minimum(b, 32, position, str(width - 1)), 32, width)
    how = "ashr" if sign else "lshr"
    moved = b.emit(f"{how} i{width} {value}, {down}")
    if not sign:
        moved = select(b, b.emit(f"icmp uge i32 {position}, {width}"), f"i{width}", "0", moved)
    cut = resize(b, b.emit(f"sub i32 {width}, {minimum(b, 32, length, str(width))}"), 32, width)
    empty = b.emit(f"icmp eq i32 {length}, 0")
    cut = select(b, empty, f"i{width}", "0", cut)
    field = b.emit(f"{how} i{width} {b.emit(f'shl i{width} {moved}, {cut}')}, {cut}")
    b.store(x.operands[0], kind, select(b, empty, f"i{width}", "0", field))


def insert(b: Builder, x: Instruction) -> None:
    """bfi: the low `length` bits of a put into b at `position`."""
    m = Mods(b, x)
    kind = m.kind("b32", "b64")
    m.done()
    width = bits_of(kind)
    long = 2 * width
    value, into = operands(b, x, kind, 2)
    position = resize(b, minimum(b, 32, _place(b, x, 3, width), str(width)), 32, long)
    length = resize(b, minimum(b, 32, _place(b, x, 4, width), str(width)), 32, long)
    ones = b.emit(f"sub i{long} {b.emit(f'shl i{long} 1, {length}')}, 1")
    mask = b.emit(f"trunc i{long} {b.emit(f'shl i{long} {ones}, {position}')} to i{width}")
    raised = b.emit(f"shl i{long} {resize(b, value, width, long)}, {position}")
    put = b.emit(f"and i{width} {b.emit(f'trunc i{long} {raised} to i{width}')}, {mask}")
    kept = b.emit(f"and i{width} {into}, {b.emit(f'xor i{width} {mask}, -1')}")
    b.store(x.operands[0], kind, b.emit(f"or i{width} {put}, {kept}"))


def leading_zeros(b: Builder, width: int, value: str) -> str:
    """As i32; the width for 0."""
    zeros = b.intrinsic(f"llvm.ctlz.i{width}", f"i{width}", [(f"i{width}", value), ("i1", "false")])
    return resize(b, zeros, width, 32)


def find_leading(b: Builder, x: Instruction) -> None:
    """bfind: place of the top 1 (of the top non-sign bit), counted from the top with .shiftamt; -1 for none."""
    m = Mods(b, x)
    kind, from_top = m.kind("u32", "s32", "u64", "s64"), m.flag("shiftamt")
    m.done()
    width = bits_of(kind)
    (value,) = operands(b, x, kind, 1)
    if signed(kind):
        value = b.emit(f"xor i{width} {value}, {b.emit(f'ashr i{width} {value}, {width - 1}')}")
    zeros = leading_zeros(b, width, value)
    place = zeros if from_top else b.emit(f"sub i32 {width - 1}, {zeros}")
    none = b.emit(f"icmp eq i32 {zeros}, {width}")
    b.store(x.operands[0], "u32", select(b, none, "i32", "-1", place))


def count(b: Builder, x: Instruction) -> None:
    """clz and popc."""
    m = Mods(b, x)
    width = bits_of(m.kind("b32", "b64"))
    m.done()
    (value,) = operands(b, x, f"b{width}", 1)
    if x.opcode == "clz":
        result = leading_zeros(b, width, value)
    else:
        result = resize(b, b.intrinsic(f"llvm.ctpop.i{width}", f"i{width}", [(f"i{width}", value)]), width, 32)
    b.store(x.operands[0], "u32", result)


def reverse(b: Builder, x: Instruction) -> None:
    m = Mods(b, x)
    kind = m.kind("b32", "b64")
    m.done()
    width = f"i{bits_of(kind)}"
    (value,) = operands(b, x, kind, 1)
    b.store(x.operands[0], kind, b.intrinsic(f"llvm.bitreverse.{width}", width, [(width, value)]))


def find_nth(b: Builder, x: Instruction) -> None:
    """fns: place of the n-th set bit of the mask from `base`, upwards (n > 0), downwards (n < 0), or base itself."""
    m = Mods(b, x)
    m.kind("b32")
    m.done()
    arguments = [("i32", b.operand(x.operands[k], "b32")) for k in (1, 2, 3)]
    b.store(x.operands[0], "b32", b.call("cd_fns", "i32", arguments))


def _nth_body(c: Code, word: str, base: str, nth: str) -> str:
    backwards = c.emit(f"icmp slt i32 {nth}, 0")
    wanted = select(c, backwards, "i32", c.emit(f"sub i32 0, {nth}"), nth)
    found, seen = "-1", "0"
    for step in range(32):
        place = select(c, backwards, "i32", c.emit(f"sub i32 {base}, {step}"), c.emit(f"add i32 {base}, {step}"))
        inside = c.emit(f"icmp ult i32 {place}, 32")
        bit = c.emit(f"lshr i32 {word}, {c.emit(f'and i32 {place}, 31')}")
        hit = c.emit(f"and i1 {inside}, {c.emit(f'trunc i32 {bit} to i1')}")
        seen = c.emit(f"add i32 {seen}, {c.emit(f'zext i1 {hit} to i32')}")
        now = c.emit(f"and i1 {hit}, {c.emit(f'icmp eq i32 {seen}, {wanted}')}")
        found = select(c, now, "i32", place, found)
    here = c.emit(f"lshr i32 {word}, {c.emit(f'and i32 {base}, 31')}")
    at_base = select(c, c.emit(f"trunc i32 {here} to i1"), "i32", base, "-1")
    found = select(c, c.emit(f"icmp eq i32 {nth}, 0"), "i32", at_base, found)
    return select(c, c.emit(f"icmp ult i32 {base}, 32"), "i32", found, "-1")


define("cd_fns", "i32", ["i32", "i32", "i32"], _nth_body)


def sign_extend(b: Builder, x: Instruction) -> None:
    """szext: the low n bits of a, sign- or zero-extended; n clamped to 32 or taken modulo 32."""
    m = Mods(b, x)
    kind, mode = m.kind("u32", "s32"), m.one("clamp", "wrap")
    m.done()
    (value,), length = operands(b, x, kind, 1), b.operand(x.operands[2], "u32")
    length = minimum(b, 32, length, "32") if mode == "clamp" else b.emit(f"and i32 {length}, 31")
    cut = b.emit(f"sub i64 64, {resize(b, length, 32, 64)}")
    empty = b.emit(f"icmp eq i32 {length}, 0")
    cut = select(b, empty, "i64", "0", cut)
    raised = b.emit(f"shl i64 {resize(b, value, 32, 64)}, {cut}")
    lowered = b.emit(f"{'ashr' if signed(kind) else 'lshr'} i64 {raised}, {cut}")
    field = b.emit(f"trunc i64 {lowered} to i32")
    b.store(x.operands[0], kind, select(b, empty, "i32", "0", field))


def mask(b: Builder, x: Instruction) -> None:
    """bmsk: b ones from bit a upwards."""
    m = Mods(b, x)
    m.kind("b32")
    mode = m.one("clamp", "wrap")
    m.done()
    first, length = operands(b, x, "b32", 2)
    if mode == "clamp":
        first, length = minimum(b, 32, first, "32"), minimum(b, 32, length, "32")
    else:
        first, length = b.emit(f"and i32 {first}, 31"), b.emit(f"and i32 {length}, 31")
    ones = b.emit(f"sub i64 {b.emit(f'shl i64 1, {resize(b, length, 32, 64)}')}, 1")
    raised = b.emit(f"shl i64 {ones}, {resize(b, first, 32, 64)}")
    b.store(x.operands[0], "b32", b.emit(f"trunc i64 {raised} to i32"))
