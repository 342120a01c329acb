"""Comparisons and choices: setp, set, selp, slct, testp."""

from __future__ import annotations

from collections.abc import Callable

from ..builder import Builder
from ..ptx import Instruction, Operand
from .common import Mods, as_double, as_float, bits_of, destinations, flush, is_loose, numbers, operands, select, signed
from .halves import as_number, flush_half

_INTEGER = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
_FLOAT = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
    "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
}  # fmt: skip
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_RELATIONS = (*_FLOAT, *_UNSIGNED)
_HALF = ("f16", "bf16")
_HALVES = ("f16x2", "bf16x2")
_KINDS = (*_INTEGER, "f32", "f64", *_HALF, *_HALVES)
_ONES = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def compare(b: Builder, x: Instruction, relation: str, kind: str, ftz: bool, left: str, right: str) -> str:
    """One comparison of two values of `kind`, as i1."""
    if kind in _INTEGER:
        if relation in ("eq", "ne"):
            predicate = relation
        elif relation in _UNSIGNED and kind[0] == "u":
            predicate = _UNSIGNED[relation]
        elif relation in ("lt", "le", "gt", "ge") and kind[0] != "b" and not ftz:
            predicate = ("s" if signed(kind) else "u") + relation
        else:
            b.unsupported(x)
        return b.emit(f"icmp {predicate} i{bits_of(kind)} {left}, {right}")
    if relation not in _FLOAT:
        b.unsupported(x)
    if kind == "f64":
        return b.emit(f"fcmp {_FLOAT[relation]} double {as_double(b, left)}, {as_double(b, right)}")
    if kind in _HALF:
        if ftz:
            left, right = flush_half(b, left), flush_half(b, right)
        return b.emit(f"fcmp {_FLOAT[relation]} double {as_number(b, kind, left)}, {as_number(b, kind, right)}")
    if ftz:
        left, right = flush(b, left), flush(b, right)
    return b.emit(f"fcmp {_FLOAT[relation]} float {as_float(b, left)}, {as_float(b, right)}")


class _Comparison:
    """The common part of setp and set: modifiers, operands, the predicate that the result is combined with."""

    def __init__(self, b: Builder, x: Instruction, dest_kinds: tuple[str, ...]) -> None:
        m = Mods(b, x)
        self.kind = m.kind(*_KINDS)
        self.dest = m.kind(*dest_kinds) if dest_kinds else "pred"
        self.relation, self.combine = m.one(*_RELATIONS), m.one("and", "or", "xor")
        self.ftz = m.flag("ftz")
        m.done()
        if not self.relation or (self.ftz and self.kind not in ("f32", "f16", "f16x2")):
            b.unsupported(x)
        self.builder, self.instruction = b, x
        self.lanes = 2 if self.kind in _HALVES else 1

    def outcomes(self) -> list[str]:
        """One i1 for each lane."""
        b, x = self.builder, self.instruction
        read = numbers if self.kind == "f32" else operands
        left, right = read(b, x, self.kind, 2)
        if self.lanes == 1:
            return [compare(b, x, self.relation, self.kind, self.ftz, left, right)]
        results = []
        for shift in (0, 16):
            p, q = (b.emit(f"trunc i32 {b.emit(f'lshr i32 {v}, {shift}')} to i16") for v in (left, right))
            results.append(compare(b, x, self.relation, self.kind[:-2], self.ftz, p, q))
        return results

    def combined(self, outcome: str) -> str:
        if not self.combine:
            return outcome
        b, x = self.builder, self.instruction
        return b.emit(f"{self.combine} i1 {outcome}, {b.operand(x.operands[3], 'pred')}")


def set_predicate(b: Builder, x: Instruction) -> None:
    """setp: `d` gets the comparison, `d|q` also its negation (of two packed numbers: one predicate each)."""
    comparison = _Comparison(b, x, ())
    outcomes = comparison.outcomes()
    first, second = destinations(x.operands[0])
    other = outcomes[1] if len(outcomes) > 1 else b.emit(f"xor i1 {outcomes[0]}, true")
    values = comparison.combined(outcomes[0]), comparison.combined(other)
    b.store(first, "pred", values[0])
    b.store(second, "pred", values[1])


def set_value(b: Builder, x: Instruction) -> None:
    """set: all ones (integers) or 1.0 (floats) where true, else 0."""
    comparison = _Comparison(b, x, ("u32", "s32", "f32", "u16", "s16", *_HALF, *_HALVES))
    dest, lanes = comparison.dest, comparison.lanes
    outcomes = [comparison.combined(outcome) for outcome in comparison.outcomes()]
    if lanes == 1:
        width = bits_of(dest)
        true = str(_ONES.get(dest, -1))
        b.store(x.operands[0], dest, select(b, outcomes[0], f"i{width}", true, "0"))
        return
    if bits_of(dest) != 32 or dest == "f32":
        b.unsupported(x)
    true = str(_ONES[dest[:-2]]) if dest in _HALVES else "65535"
    low, high = (select(b, outcome, "i32", true, "0") for outcome in outcomes)
    b.store(x.operands[0], dest, b.emit(f"or i32 {low}, {b.emit(f'shl i32 {high}, 16')}"))


_ANY = (*_INTEGER, "f32", "f64")


def choose(b: Builder, x: Instruction) -> None:
    """selp: a where the predicate holds, else b."""
    m = Mods(b, x)
    kind = m.kind(*_ANY, "f16", "bf16", "f16x2", "bf16x2")
    m.done()
    left, right = (numbers if is_loose(b, x.operands[0]) else operands)(b, x, kind, 2)
    b.store(x.operands[0], kind, select(b, b.operand(x.operands[3], "pred"), f"i{bits_of(kind)}", left, right))


def choose_by_sign(b: Builder, x: Instruction) -> None:
    """slct: a where c >= 0 (-0 counts, NaN does not), else b."""
    m = Mods(b, x)
    by, kind, ftz = m.kind("s32", "f32"), m.kind(*_ANY), m.flag("ftz")
    m.done()
    left, right = operands(b, x, kind, 2)
    key = (b.raw if by == "f32" else b.operand)(x.operands[3], by)
    if by == "s32":
        if ftz:
            b.unsupported(x)
        holds = b.emit(f"icmp sge i32 {key}, 0")
    else:
        holds = b.emit(f"fcmp oge float {as_float(b, flush(b, key) if ftz else key)}, 0.0")
    b.store(x.operands[0], kind, select(b, holds, f"i{bits_of(kind)}", left, right))


def _below(b: Builder, width: int, magnitude: str, first: int, end: int) -> str:
    """first <= magnitude < end."""
    return b.emit(f"icmp ult i{width} {b.emit(f'sub i{width} {magnitude}, {first}')}, {end - first}")


_TESTS: dict[str, Callable[[Builder, int, str, int, int], str]] = {
    "finite": lambda b, w, mag, low, inf: b.emit(f"icmp ult i{w} {mag}, {inf}"),
    "infinite": lambda b, w, mag, low, inf: b.emit(f"icmp eq i{w} {mag}, {inf}"),
    "number": lambda b, w, mag, low, inf: b.emit(f"icmp ule i{w} {mag}, {inf}"),
    "notanumber": lambda b, w, mag, low, inf: b.emit(f"icmp ugt i{w} {mag}, {inf}"),
    # Zero counts as normal on an H200.
    "normal": lambda b, w, mag, low, inf: b.emit(
        f"or i1 {b.emit(f'icmp eq i{w} {mag}, 0')}, {_below(b, w, mag, low, inf)}"
    ),
    "subnormal": lambda b, w, mag, low, inf: _below(b, w, mag, 1, low),
}


def test_property(b: Builder, x: Instruction) -> None:
    m = Mods(b, x)
    kind, test = m.kind("f32", "f64"), m.one(*_TESTS)
    m.done()
    if not test:
        b.unsupported(x)
    width, mantissa = (32, 23) if kind == "f32" else (64, 52)
    (value,) = operands(b, x, kind, 1)
    magnitude = b.emit(f"and i{width} {value}, {(1 << (width - 1)) - 1}")
    infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    target: Operand = x.operands[0]
    b.store(target, "pred", _TESTS[test](b, width, magnitude, 1 << mantissa, infinity))
