"""Emulated arithmetic against exact fractions and Python integers, for random operands and every rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from exact_reference import FORMATS, NAN, decode, encode, operate, round_integer
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_forms import forms

MODES = ("rn", "rz", "rm", "rp")
ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1}
few = settings(max_examples=25, deadline=None)


def floats(kind: str) -> st.SearchStrategy[int]:
    """Bits: anything, values near the limits, and values near 1 that round and cancel."""
    f = FORMATS[kind]
    sign = st.integers(0, 1).map(lambda s: s << (f.width - 1))
    low, top = 1 << f.mantissa_bits, f.infinity
    edges = st.sampled_from([0, 1, low - 1, low, low + 1, top - 1, top, top + 1, f.bias << f.mantissa_bits])
    near = st.builds(lambda e, m: ((f.bias + e) << f.mantissa_bits) | m, st.integers(-6, 6), st.integers(0, low - 1))
    round_ones = near.map(lambda bits: bits & -(1 << (f.mantissa_bits // 2)))
    magnitude = st.one_of(st.integers(0, top + 1), edges, near, round_ones)
    return st.builds(lambda s, m: s | m, sign, magnitude)


def rows(*columns: st.SearchStrategy[int]) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*columns), min_size=1, max_size=40)


def same(got: int, want: int | str, kind: str) -> bool:
    if want == NAN:
        f = FORMATS[kind]
        return got & ((1 << (f.width - 1)) - 1) > f.infinity if kind == "f64" else got == (1 << (f.width - 1)) - 1
    return got == want


def check(op: str, kind: str, ftz: bool, cases: list[tuple[int, ...]], modes: tuple[str, ...]) -> None:
    flag = ".ftz" if ftz else ""
    run = forms(tuple(f"{op}.{mode}{flag}.{kind}" for mode in modes), (kind,) * ARITY[op], (kind,))
    for mode, results in zip(modes, run(*map(list, zip(*cases, strict=True))), strict=True):
        for operands, got in zip(cases, results, strict=True):
            want = operate(op, list(operands), kind, mode, ftz)
            shown = [hex(bits) for bits in operands]
            assert same(got, want, kind), f"{op}.{mode}{flag}.{kind} {shown}: {got:#x}, exactly {want}"


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("op", ARITY)
def test_every_rounding_is_exact(op: str, kind: str) -> None:
    @few
    @given(rows(*[floats(kind)] * ARITY[op]))
    def holds(cases: list[tuple[int, ...]]) -> None:
        check(op, kind, False, cases, MODES)

    holds()


@pytest.mark.parametrize("op", ARITY)
def test_flushed_results_are_those_that_would_be_subnormal(op: str) -> None:
    tiny = st.one_of(st.integers(0, 3 << 23), st.integers(0x7FFFFE, 0x800003))
    small = st.builds(lambda s, m: s << 31 | m, st.integers(0, 1), tiny)
    near_one = st.builds(lambda m: 0x3F7FFFF0 + m, st.integers(0, 32))

    @few
    @given(rows(*[st.one_of(small, near_one, floats("f32"))] * ARITY[op]))
    def holds(cases: list[tuple[int, ...]]) -> None:
        check(op, "f32", True, cases, MODES)

    holds()


def test_products_within_a_rounding_of_the_smallest_normal_number() -> None:
    """(1 + k u)(1 - k u) times that number: some round up to it and are kept, some are flushed."""
    check("mul", "f32", True, [(0x00800000 + k, 0x3F800000 - 2 * k) for k in range(1, 3000, 3)], MODES)
    check("mul", "f16", True, [(0x0400 + k, 0x3C00 - 2 * k) for k in range(1, 200)], ("rn",))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
def test_halves_round_once(op: str, kind: str) -> None:
    @few
    @given(rows(*[floats(kind)] * ARITY[op]))
    def holds(cases: list[tuple[int, ...]]) -> None:
        check(op, kind, False, cases, ("rn",))

    holds()


@few
@given(rows(floats("f16"), floats("f16")))
def test_flushed_halves(cases: list[tuple[int, ...]]) -> None:
    check("mul", "f16", True, cases, ("rn",))


NARROWINGS = [("f64", "f32"), ("f64", "f16"), ("f32", "f16")]


@pytest.mark.parametrize(("source", "dest"), NARROWINGS)
def test_narrowing_rounds_once(source: str, dest: str) -> None:
    f, g = FORMATS[source], FORMATS[dest]
    exponent = st.integers(f.bias - g.bias - g.mantissa_bits - 3, f.bias + g.bias + 2)
    close = st.builds(lambda e, m: (e << f.mantissa_bits) | m, exponent, st.integers(0, (1 << f.mantissa_bits) - 1))
    coarse = close.map(lambda bits: bits & -(1 << (f.mantissa_bits - g.mantissa_bits - 1)))
    run = forms(tuple(f"cvt.{mode}.{dest}.{source}" for mode in MODES), (source,), (dest,))

    @few
    @given(st.lists(st.one_of(close, coarse, floats(source)), min_size=1, max_size=40))
    def holds(values: list[int]) -> None:
        for mode, results in zip(MODES, run(values), strict=True):
            for bits, got in zip(values, results, strict=True):
                value, negative = decode(bits, source)
                if isinstance(value, Fraction):
                    assert got == encode(value, negative, dest, mode), (mode, hex(bits), hex(got))
                elif value != NAN:
                    assert got == g.infinity | negative << (g.width - 1)

    holds()


@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64"])
def test_integers_become_the_nearest_floats(source: str) -> None:
    width = int(source[1:])
    pairs = [(dest, mode) for dest in ("f16", "f32", "f64") for mode in MODES]
    run = forms(
        tuple(f"cvt.{mode}.{dest}.{source}" for dest, mode in pairs), (source,), tuple(dest for dest, _ in pairs)
    )
    short = st.builds(lambda m, s: (m << s) & ((1 << width) - 1), st.integers(0, 1 << 26), st.integers(0, width))

    @few
    @given(st.lists(st.one_of(st.integers(0, (1 << width) - 1), short), min_size=1, max_size=40))
    def holds(values: list[int]) -> None:
        for (dest, mode), results in zip(pairs, run(values), strict=True):
            for bits, got in zip(values, results, strict=True):
                value = bits - (1 << width) if source[0] == "s" and bits >> (width - 1) else bits
                assert got == encode(Fraction(value), False, dest, mode), (dest, mode, hex(bits), hex(got))

    holds()


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
def test_floats_become_clamped_integers(source: str) -> None:
    kinds = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
    pairs = [(dest, mode) for dest in kinds for mode in MODES]
    texts = tuple(f"cvt.{mode}i.{dest}.{source}" for dest, mode in pairs)
    run = forms(texts, (source,), tuple(f"{d[0]}{max(16, int(d[1:]))}" for d, _ in pairs))

    @few
    @given(st.lists(floats(source), min_size=1, max_size=40))
    def holds(values: list[int]) -> None:
        for (dest, mode), results in zip(pairs, run(values), strict=True):
            for bits, got in zip(values, results, strict=True):
                value, _ = decode(bits, source)
                if value != NAN:
                    assert got == clamped(value, dest, mode), (dest, mode, hex(bits), hex(got))

    holds()


def clamped(value: object, dest: str, mode: str) -> int:
    width = int(dest[1:])
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if dest[0] == "s" else (0, (1 << width) - 1)
    if isinstance(value, float):
        whole = high if value > 0 else low
    else:
        assert isinstance(value, Fraction)
        whole = min(high, max(low, round_integer(value, mode)))
    return whole & ((1 << max(16, width)) - 1)


U64 = st.integers(0, 2**64 - 1)


@few
@given(rows(U64, U64, U64, U64))
def test_a_carry_chain_adds_and_subtracts_128_bits(cases: list[tuple[int, ...]]) -> None:
    texts = (
        "add.cc.u64 d0, a0, a2;", "addc.u64 d0, a1, a3;", "sub.cc.u64 d0, a0, a2;", "subc.u64 d0, a1, a3;",
        "mad.lo.cc.u64 d0, a0, a1, a2;", "madc.hi.u64 d0, a0, a1, a3;",
    )  # fmt: skip
    results = forms(texts, ("u64",) * 4, ("u64",))(*map(list, zip(*cases, strict=True)))
    for row, (a, b, c, d) in enumerate(cases):
        left, right = a | b << 64, c | d << 64
        got = [results[k][row] | results[k + 1][row] << 64 for k in (0, 2, 4)]
        want = [left + right, left - right, a * b + right]
        assert got == [value % 2**128 for value in want]


@few
@given(rows(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)))
def test_bit_operations(cases: list[tuple[int, ...]]) -> None:
    texts = ("lop3.b32 d0, a0, a1, a2, 0xca;", "shf.l.wrap.b32", "shf.r.clamp.b32", "prmt.b32", "shl.b32 d0, a0, a1;")
    results = forms(texts, ("u32",) * 3, ("u32",))(*map(list, zip(*cases, strict=True)))
    for row, (a, b, c) in enumerate(cases):
        both, lane = b << 32 | a, both_bytes(a, b)
        want = [
            (a & b) | (~a & c) & 0xFFFFFFFF,
            (both << (c & 31)) >> 32 & 0xFFFFFFFF,
            both >> min(c, 32) & 0xFFFFFFFF,
            sum(chosen(lane, c >> 4 * k & 15) << 8 * k for k in range(4)),
            a << b & 0xFFFFFFFF if b < 32 else 0,
        ]
        assert [result[row] for result in results] == want


def both_bytes(a: int, b: int) -> list[int]:
    return [(b << 32 | a) >> 8 * k & 255 for k in range(8)]


def chosen(lane: list[int], selector: int) -> int:
    byte = lane[selector & 7]
    return (255 if byte >> 7 else 0) if selector & 8 else byte


@few
@given(rows(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)))
def test_signed_division_cuts_towards_zero(cases: list[tuple[int, ...]]) -> None:
    columns = [[value & 0xFFFFFFFF for value in column] for column in zip(*cases, strict=True)]
    quotients, remainders = forms(("div.s32", "rem.s32"), ("s32", "s32"), ("s32",))(*columns)
    for (a, b), quotient, remainder in zip(cases, quotients, remainders, strict=True):
        if b:
            want = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            assert (quotient, remainder) == (want & 0xFFFFFFFF, (a - want * b) & 0xFFFFFFFF)


RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b and not unordered(a, b), "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b, "ltu": lambda a, b: unordered(a, b) or a < b, "neu": lambda a, b: a != b,
    "num": lambda a, b: not unordered(a, b), "nan": lambda a, b: unordered(a, b),
}  # fmt: skip


def unordered(a: float, b: float) -> bool:
    return math.isnan(a) or math.isnan(b)


@few
@given(rows(floats("f32"), floats("f32")))
def test_comparisons_with_nan(cases: list[tuple[int, ...]]) -> None:
    texts = tuple(f"setp.{name}.f32 p, a0, a1; selp.u32 d0, 1, 0, p;" for name in RELATIONS)
    results = forms(texts, ("f32", "f32"), ("u32",))(*map(list, zip(*cases, strict=True)))
    for relation, result in zip(RELATIONS.values(), results, strict=True):
        for (a, b), got in zip(cases, result, strict=True):
            x, y = (math.nan if decode(v, "f32")[0] == NAN else float(decode(v, "f32")[0]) for v in (a, b))
            assert got == int(relation(x, y))
