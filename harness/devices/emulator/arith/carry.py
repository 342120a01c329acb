"""Carry chains: add.cc, addc, sub.cc, subc, mad.cc, madc. The flag CC.CF is one more register of the function."""

from __future__ import annotations

from ..builder import Builder, slot_name
from ..ptx import Instruction
from .common import Mods, bits_of, operands
from .integer import product

_KINDS = ("u32", "s32", "u64", "s64")
_FLAG = "%cc.cf"


def _flag_slot(b: Builder) -> str:
    b.slots.setdefault(_FLAG, 1)
    return slot_name(_FLAG)


def _add_with(b: Builder, width: int, left: str, right: str, carry: str | None) -> tuple[str, str]:
    """(sum, carry out)."""
    long = width + 2
    total = b.emit(
        f"add i{long} {b.emit(f'zext i{width} {left} to i{long}')}, {b.emit(f'zext i{width} {right} to i{long}')}"
    )
    if carry:
        total = b.emit(f"add i{long} {total}, {b.emit(f'zext i1 {carry} to i{long}')}")
    out = b.emit(f"trunc i{long} {b.emit(f'lshr i{long} {total}, {width}')} to i1")
    return b.emit(f"trunc i{long} {total} to i{width}"), out


def chained(b: Builder, x: Instruction) -> None:
    """One link of a chain: reads the flag if the opcode ends in c, writes it with .cc.

    A subtraction is a + ~b + 1 and its flag the carry of that sum, so additions and subtractions may read each other's.
    """
    m = Mods(b, x)
    kind = m.kind(*_KINDS)
    part, writes = m.one("lo", "hi"), m.flag("cc")
    m.done()
    width, reads = bits_of(kind), x.opcode.endswith("c")
    multiplies = x.opcode.startswith("mad")
    if multiplies != bool(part):
        b.unsupported(x)
    if multiplies:
        left, right, addend = operands(b, x, kind, 3)
        left, right = product(b, kind, part, left, right), addend
    else:
        left, right = operands(b, x, kind, 2)
    subtracts = x.opcode.startswith("sub")
    carry = b.emit(f"load i1, ptr {_flag_slot(b)}") if reads else None
    if subtracts:
        right = b.emit(f"xor i{width} {right}, -1")
        carry = carry or "true"
    value, out = _add_with(b, width, left, right, carry)
    if writes:
        b.line(f"store i1 {out}, ptr {_flag_slot(b)}")
    b.store(x.operands[0], kind, value)
