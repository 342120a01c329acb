"""Numbers that a rule can speak of: each quantity itself, and what kernels compute from several of them.

Each generator below yields (expression, weight): weight is relative within its family (vocabulary.py says what a
whole family weighs). Only integer quantities are combined; axes come before derived quantities, which are often
products already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

from cudadiag.search.columns import Quantity
from cudadiag.search.constants import TILES
from cudadiag.search.expr import Expr, Name, op

MOST_COMBINED = 8
"""Quantities that are combined with each other: more would make more terms than shapes."""

Terms = Iterator[tuple[Expr, float]]


def combinable(quantities: Sequence[Quantity]) -> list[Name]:
    """Integer axes, then (up to the limit) integer derived quantities."""
    integers = sorted((q for q in quantities if q.integer), key=lambda q: q.derived)
    axes = [q for q in integers if not q.derived]
    return [Name(q.name) for q in (axes or integers)[:MOST_COMBINED]]


def times(*factors: Expr) -> Expr:
    """Left-nested product, as Python reads `a * b * c`."""
    product = factors[0]
    for factor in factors[1:]:
        product = op("*", product, factor)
    return product


def plus(*parts: Expr) -> Expr:
    total = parts[0]
    for part in parts[1:]:
        total = op("+", total, part)
    return total


def products(axes: Sequence[Expr]) -> Terms:
    """Element and byte counts: products of two to four axes, at most one of them squared (an image's width and
    height)."""
    for size, weight in ((2, 4.0), (3, 4.0), (4, 4.0)):
        for factors in combinations(axes, size):
            yield times(*factors), weight
    for size in (1, 2):  # the square alone says no more than the axis
        for squared in axes:
            for others in combinations([a for a in axes if a != squared], size):
                yield times(*others, squared, squared), 1.0


def sums(axes: Sequence[Expr]) -> Terms:
    """Lengths put end to end: sums of two and three axes, differences of two, one of them doubled."""
    for pair in combinations(axes, 2):
        yield plus(*pair), 6.0
    for triple in combinations(axes, 3):
        yield plus(*triple), 3.0
    for a, b in permutations(axes, 2):
        yield op("-", a, b), 0.25
        if str(a) < str(b):
            yield op("abs", op("-", a, b)), 0.25
        yield plus(a, op("*", b, 2)), 0.25


def last_items(axes: Sequence[Expr]) -> Terms:
    """The offset of the last item of a buffer: (a - 1) * b, with up to two more factors."""
    for size in (1, 2, 3):
        for last in axes:
            for others in combinations([a for a in axes if a != last], size):
                yield times(op("-", last, 1), *others), 1.0


def offsets(axes: Sequence[Expr]) -> Terms:
    """A flat index plus an offset, and a length that is a sum times a count: a * b + c, (a - 1) * b + c, (a + b) *
    c."""
    for a, b, c in permutations(axes, 3):
        if str(a) < str(b):
            yield plus(times(a, b), c), 1.0
            yield op("-", times(a, b), c), 0.5
            yield times(plus(a, b), c), 2.0
        yield plus(times(op("-", a, 1), b), c), 0.5
    for a, b in permutations(axes, 2):
        yield plus(times(op("-", a, 1), b), b), 0.25
        yield times(plus(a, b), b), 0.25
        yield times(a, op("+", b, 1)), 0.5


def padded(axes: Sequence[Expr]) -> Terms:
    """Sizes rounded up to a power of two, with up to two other factors (alone they say no more than the size)."""
    for a in axes:
        others = [x for x in axes if x != a]
        for b in others:
            yield times(op("next_pow2", a), b), 2.0
        for pair in combinations(others, 2):
            yield times(op("next_pow2", a), *pair), 1.0
    for a, b in combinations(axes, 2):
        yield times(op("next_pow2", a), op("next_pow2", b)), 1.0


def tiles(axes: Sequence[Expr]) -> Terms:
    """Counts of tiles (grid sizes): ceil_div(a, 128) times another axis or its tiles (alone they say no more)."""
    for tile in TILES:
        for a in axes:
            for b in axes:
                if b != a:
                    yield times(op("ceil_div", a, tile), b), 1.0
        for a, b in combinations(axes, 2):
            yield times(op("ceil_div", a, tile), op("ceil_div", b, tile)), 1.0


def quotients(axes: Sequence[Expr]) -> Terms:
    """How often one axis fits into another, and what is left over."""
    for a, b in permutations(axes, 2):
        yield op("//", a, b), 2.0
        yield op("ceil_div", a, b), 1.0
        yield op("%", a, b), 0.25
    for a, b, c in permutations(axes, 3):
        if str(a) < str(b):
            yield op("//", times(a, b), c), 1.0
