"""Fixed, edge-rich inputs of the conformance kernels: every set is a function of its name alone, so nothing but the
recorded outputs has to be stored.

A set gives one array of raw bits for each operand of a kernel; `element_types` are "u16", "u32" or "u64".
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Sequence

import numpy as np

BITS = {"u16": 16, "u32": 32, "u64": 64}
DTYPES = {"u16": np.uint16, "u32": np.uint32, "u64": np.uint64}


def noise(seed: int, index: int) -> int:
    """64 well mixed bits (the finaliser of SplitMix64); the same on every machine."""
    z = (seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & (2**64 - 1)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return z ^ (z >> 31)


def f32(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def f64(x: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


# -- single operands -------------------------------------------------------------------------------------------------


def integer_edges(bits: int) -> list[int]:
    top = 1 << (bits - 1)
    around = [
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        10,
        100,
        127,
        128,
        255,
        256,
        top - 2,
        top - 1,
        top,
        top + 1,
        2 * top - 2,
        2 * top - 1,
    ]
    around += [2 * top - 7, 2 * top - 128, 2 * top - 129, top >> 1, 0xAAAAAAAAAAAAAAAA, 0x5555555555555555]
    around += [0x12345678, 0x123456789ABCDEF0, 0x7F80FF01, 32767, 32768, 65535, 65536]
    if bits == 64:
        around += [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**33 + 1, 2**63 + 2**31, 2**53, 2**53 + 1, 2**24 + 1]
    return unique(value & (2 * top - 1) for value in around)


def float_edges(exponent_bits: int, mantissa_bits: int) -> list[int]:
    """Zeros, subnormals, infinities, NaNs (quiet, signalling, with payloads) and neighbours of powers of two."""
    one = ((1 << (exponent_bits - 1)) - 1) << mantissa_bits
    inf = ((1 << exponent_bits) - 1) << mantissa_bits
    ulp, low = 1, 1 << mantissa_bits
    top = (1 << mantissa_bits) - 1
    positive = [0, ulp, 2, 3, low >> 1, low - 1, low, low + 1, low + top, 2 * low]
    positive += [one - 1, one, one + 1, one + (low >> 1), one + low, one + low + 1, one - low, one - 2 * low + top]
    positive += [one + mantissa_bits * low, one + mantissa_bits * low + 1, one + (mantissa_bits + 1) * low]
    positive += [inf - 1, inf - low, inf - 2 * low + 3, inf, inf + 1, inf + (low >> 1), inf + (low >> 1) + 5, inf + top]
    positive += [one + (noise(7, i) & top) + ((i % 7) - 3) * low for i in range(5)]
    sign = 1 << (exponent_bits + mantissa_bits)
    return unique([value | s for value in positive for s in (0, sign)])


FORMATS = {"f32": (8, 23), "f64": (11, 52), "f16": (5, 10), "bf16": (8, 7)}


def edges(kind: str) -> list[int]:
    if kind in FORMATS:
        return float_edges(*FORMATS[kind])
    return integer_edges(int(kind[1:]))


def unique(values: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(values))


def near_random(kind: str, seed: int, count: int, spread: int) -> list[int]:
    """Random bits; exponents of floats lie within `spread` of 1.0, so that operations round, cancel, overflow."""
    if kind not in FORMATS:
        bits = int(kind[1:])
        return [noise(seed, i) >> (64 - bits) for i in range(count)]
    exponent_bits, mantissa_bits = FORMATS[kind]
    bias = (1 << (exponent_bits - 1)) - 1
    out = []
    for i in range(count):
        mixed = noise(seed, i)
        exponent = max(0, min(2 * bias, bias + (mixed >> 8) % (2 * spread + 1) - spread))
        sign = mixed & 1
        mantissa = (mixed >> 12) & ((1 << mantissa_bits) - 1)
        out.append((sign << (exponent_bits + mantissa_bits)) | (exponent << mantissa_bits) | mantissa)
    return out


# -- sets of operands ------------------------------------------------------------------------------------------------


def unary(kind: str, randoms: int = 500) -> list[list[int]]:
    wide = 200 if kind == "f64" else 60
    values = edges(kind) + near_random(kind, 11, randoms, wide) + near_random(kind, 12, randoms // 2, 4)
    return [[value] for value in values]


def binary(kind_a: str, kind_b: str, randoms: int = 600) -> list[list[int]]:
    cross = [list(pair) for pair in itertools.product(edges(kind_a), edges(kind_b))]
    for seed, spread in ((21, 3), (23, 30)):
        left = near_random(kind_a, seed, randoms // 2, spread)
        right = near_random(kind_b, seed + 1, randoms // 2, spread)
        cross += [list(pair) for pair in zip(left, right, strict=True)]
    return cross


def ternary(kind_a: str, kind_b: str, kind_c: str, randoms: int = 900) -> list[list[int]]:
    def few(kind: str, start: int) -> list[int]:
        values = edges(kind)
        step = max(1, len(values) // 10)
        return values[start::step][:12]

    rows = [list(row) for row in itertools.product(few(kind_a, 0), few(kind_b, 1), few(kind_c, 2))]
    for seed, spread in ((31, 2), (35, 12), (39, 140)):
        columns = [near_random(k, seed + j, randoms // 3, spread) for j, k in enumerate((kind_a, kind_b, kind_c))]
        rows += [list(row) for row in zip(*columns, strict=True)]
    if kind_a == kind_b == kind_c == "f32":
        rows += cancelling_f32()
    return rows


def cancelling_f32() -> list[list[int]]:
    """c close to -a*b: what a fused multiply-add keeps and two roundings lose."""
    rows = []
    for a, b in zip(near_random("f32", 45, 150, 3), near_random("f32", 46, 150, 3), strict=True):
        product = np.uint32(a).view(np.float32) * np.uint32(b).view(np.float32)
        c = int(np.float32(-product).view(np.uint32))
        rows += [[a, b, c], [a, b, (c + 1) & 0xFFFFFFFF]]
    return rows


def narrowing(source: str, target: str) -> list[list[int]]:
    """Values of `source` at, half-way and next to half-way between neighbours of the narrower float `target`."""
    s_exp, s_man = FORMATS[source]
    t_exp, t_man = FORMATS[target]
    s_bias, t_bias = (1 << (s_exp - 1)) - 1, (1 << (t_exp - 1)) - 1
    gap = s_man - t_man
    offsets = [0, 1, 1 << (gap - 2), (1 << (gap - 1)) - 1, 1 << (gap - 1), (1 << (gap - 1)) + 1, (1 << gap) - 1]
    keys = (
        range(-t_man - 3, 2 * t_bias + 3)
        if t_bias < 100
        else [*range(-t_man - 3, 8), *range(2 * t_bias - 4, 2 * t_bias + 3)]
    )
    rows: list[list[int]] = []
    for index, key in enumerate(keys):
        exponent = key - t_bias + s_bias
        if not 0 <= exponent < 2 * s_bias + 1:
            continue
        lost = max(0, 1 - key)
        for mantissa in (0, 1, 2, (1 << t_man) - 1, (1 << t_man) - 2, noise(51, index) & ((1 << t_man) - 1)):
            base = (exponent << s_man) | (mantissa << gap)
            tie = 1 << min(s_man - 1, gap + lost - 1)
            for bits in [base + offset for offset in offsets] + [base | tie, (base | tie) + 1, (base | tie) - 1]:
                rows.append([(bits | ((noise(52, len(rows)) & 1) << (s_exp + s_man)))])
    return rows + unary(source, 200)


def to_integer(source: str) -> list[list[int]]:
    """Floats around every integer type's limits and around ties."""
    exponent_bits, mantissa_bits = FORMATS[source]
    bias = (1 << (exponent_bits - 1)) - 1
    values: list[int] = []
    for power in (-2, -1, 0, 1, 2, 3, 7, 8, 10, 14, 15, 16, 22, 23, 24, 30, 31, 32, 33, 51, 52, 53, 62, 63, 64, 65):
        if power >= bias + 1:
            continue
        base = (bias + power) << mantissa_bits
        half = 1 << max(0, mantissa_bits - 1 - max(0, power))
        quarter = half >> 1
        deltas = [
            0,
            1,
            2,
            -1,
            -2,
            half,
            half + 1,
            half - 1,
            -half,
            -quarter,
            -quarter - 1,
            -quarter + 1,
            3 * half,
            -3 * quarter,
        ]
        values += [base + delta for delta in deltas]
    sign = 1 << (exponent_bits + mantissa_bits)
    values = unique(value | s for value in values for s in (0, sign))
    return [[value] for value in values] + unary(source, 200)


def from_integer(bits: int) -> list[list[int]]:
    """Integers that need rounding in f16, bf16, f32 or f64: ties, near ties, with every number of leading zeros."""
    mask = (1 << bits) - 1
    values = integer_edges(bits)
    for length in range(1, bits + 1):
        top = 1 << (length - 1)
        for precision in (8, 11, 24, 53):
            if length > precision:
                step = 1 << (length - precision)
                for delta in (
                    0,
                    step >> 1,
                    (step >> 1) + 1,
                    (step >> 1) - 1,
                    step,
                    step + (step >> 1),
                    step - 1,
                    -1,
                    -(step >> 1),
                ):
                    values += [(top + delta) & mask, -(top + delta) & mask]
    return [[value] for value in unique(values)] + [[noise(61, i) >> (64 - bits)] for i in range(100)]


def shifts(kind: str) -> list[list[int]]:
    counts = [*range(0, 70), 127, 128, 255, 256, 257, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
    values = [*integer_edges(int(kind[1:]))[::3], noise(71, 1) >> (64 - int(kind[1:]))]
    return [[value, count] for value in values for count in counts]


def fields(kind: str, inputs: int) -> list[list[int]]:
    """Operands of bfe (1 value) and bfi (2 values): positions and lengths up to and past 255."""
    bits = int(kind[1:])
    places = [0, 1, 5, 8, 31, 32, 33, 63, 64, 65, 100, 200, 255, 256, 300, 0xFFFFFFFF]
    rows = []
    for index, (position, length) in enumerate(itertools.product(places, places)):
        for extra in range(3):
            values = [noise(81 + j, index * 3 + extra) >> (64 - bits) for j in range(inputs)]
            rows.append([*values, position, length])
    return rows


def approximate(low: float, high: float, count: int = 3000) -> list[list[int]]:
    """f32 inputs of an approximation: spread over [low, high], and the edges."""
    grid = np.linspace(low, high, count, dtype=np.float64).astype(np.float32).view(np.uint32)
    return [[int(value)] for value in grid] + unary("f32", 600)


def positive_scale(kind: str) -> list[list[int]]:
    """All magnitudes: for rcp, sqrt, rsqrt, lg2."""
    exponent_bits, mantissa_bits = FORMATS[kind]
    rows = []
    for exponent in range(0, 1 << exponent_bits, 1 if exponent_bits == 8 else 7):
        for i in range(10 if exponent_bits == 8 else 6):
            mantissa = noise(91, exponent * 16 + i) & ((1 << mantissa_bits) - 1)
            rows.append([(exponent << mantissa_bits) | (0 if i == 0 else mantissa)])
    return rows + unary(kind, 600)


def all16() -> list[list[int]]:
    return [[value] for value in range(65536)]


def some16(kind: str) -> list[list[int]]:
    return [[value] for value in unique([*edges(kind), *range(0, 65536, 23)])]


def half_pairs(kind: str, arity: int) -> list[list[int]]:
    few = edges(kind)
    if arity == 1:
        return all16()
    if arity == 2:
        rows = [list(pair) for pair in itertools.product(few, few)]
    else:
        rows = [list(row) for row in itertools.product(few[::4], few[1::4], few[2::4])]
    for seed, spread in ((101, 2), (105, 6), (109, 15)):
        columns = [near_random(kind, seed + j, 500, spread) for j in range(arity)]
        rows += [list(row) for row in zip(*columns, strict=True)]
    return rows


def packed(kind: str, arity: int) -> list[list[int]]:
    """Two 16-bit values a word; the upper lane walks backwards through the same rows."""
    rows = half_pairs(kind, arity) if arity > 1 else [[v] for v in range(0, 65536, 7)]
    other = rows[::-1]
    return [[a | (b << 16) for a, b in zip(row, back, strict=True)] for row, back in zip(rows, other, strict=True)]


def words(count: int, arity: int, seed: int) -> list[list[int]]:
    return [[noise(seed + j, i) >> 32 for j in range(arity)] for i in range(count)]


SETS: dict[str, Callable[..., list[list[int]]]] = {
    "unary": unary, "binary": binary, "ternary": ternary, "narrowing": narrowing, "to_integer": to_integer,
    "from_integer": from_integer, "shifts": shifts, "fields": fields, "approximate": approximate,
    "positive_scale": positive_scale, "all16": all16, "some16": some16, "half_pairs": half_pairs,
    "packed": packed, "words": words,
}  # fmt: skip


def operands(name: str, arguments: Sequence[object], element_types: Sequence[str]) -> list[np.ndarray]:
    """The input arrays of a case, one for each operand, as raw bits."""
    rows = SETS[name](*arguments)
    return [np.array([row[j] for row in rows], dtype=DTYPES[kind]) for j, kind in enumerate(element_types)]
