"""Conditions of one literal that are not thresholds: equalities, sets, moduli, powers of two, relations between axes.

Each generator yields (condition, weight), weights relative within its family.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

from cudadiag.search.columns import Quantity
from cudadiag.search.constants import MODULI, PRODUCT_MODULI, RESIDUE_MODULI, WINDOW_MODULI
from cudadiag.search.expr import Const, Expr, Name, Op, op
from cudadiag.search.terms import combinable, plus, times

MOST_LEVELS = 160
"""Values of one quantity that get conditions of their own; beyond, cuts are chosen by the evidence (focus.py)."""
LARGEST_SET_AXIS = 6
"""Axes of so few values (dtypes, layouts, backends) get every subset."""

Conditions = Iterator[tuple[Expr, float]]


def equalities(quantities: Sequence[Quantity]) -> Conditions:
    """A quantity has one value, or any other than that. Text axes have no other kind of condition, so they weigh
    more."""
    for q in quantities:
        if len(q.levels) > MOST_LEVELS:
            continue
        share = (0.5 if q.derived else 1.0) * (2.0 if len(q.levels) == 2 else 1.0) / len(q.levels)
        for level in q.levels:
            zero = 2.0 if level == 0 and q.numeric else 1.0
            yield Op("==", (Name(q.name), Const(level))), 2 * share * zero
            if len(q.levels) > 2:
                yield Op("!=", (Name(q.name), Const(level))), share


def sets(quantities: Sequence[Quantity]) -> Conditions:
    """An axis of few values is in any subset of them (two or more, and not all but one: those are equalities)."""
    for q in quantities:
        n = len(q.levels)
        if q.derived or n > LARGEST_SET_AXIS:
            continue
        for size in range(2, n - 1):
            for chosen in combinations(q.levels, size):
                yield Op("in", (Name(q.name), Const(chosen))), 1.0 / 2**n


def moduli(quantities: Sequence[Quantity]) -> Conditions:
    """A quantity is, or is not, a multiple of a number that tiles and vectors have."""
    for q in quantities:
        if not q.integer:
            continue
        weight = 0.5 if q.derived else 1.0
        for m in MODULI:
            likelier = 3.0 if m & (m - 1) == 0 else 1.0
            yield op("!=", op("%", Name(q.name), m), 0), 2 * weight * likelier
            yield op("==", op("%", Name(q.name), m), 0), weight * likelier


def residues(quantities: Sequence[Quantity]) -> Conditions:
    """A quantity leaves one remainder, or one in a range (the tail of a tile too long, a bit of its tile number)."""
    for q in quantities:
        if not q.integer or q.derived:
            continue
        for m in RESIDUE_MODULI:
            for r in range(1, m):
                yield op("==", op("%", Name(q.name), m), r), 2.0 / m
                yield op("!=", op("%", Name(q.name), m), r), 1.0 / m
        for m in WINDOW_MODULI:
            for r in (1, m - 1):
                yield op("==", op("%", Name(q.name), m), r), 0.5
            for r in sorted({m // 8, m // 4, m // 2, m - m // 4, m - m // 8, m - 1} - {0}):
                yield op(">=", op("%", Name(q.name), m), r), 0.5
                yield op("<", op("%", Name(q.name), m), r), 0.5
                yield op(">", op("%", Name(q.name), m), r), 0.25
                yield op("<=", op("%", Name(q.name), m), r), 0.25


def powers_of_two(quantities: Sequence[Quantity]) -> Conditions:
    for q in quantities:
        if q.integer:
            yield Op("is_pow2", (Name(q.name),)), 1.0
            yield Op("not_pow2", (Name(q.name),)), 3.0


def relations(quantities: Sequence[Quantity]) -> Conditions:
    """Two quantities compared, equal, one a multiple of the other."""
    numbers = combinable(quantities)
    derived = [Name(q.name) for q in quantities if q.integer and q.derived][:8]
    for a, b in combinations([*numbers, *derived] if len(numbers) + len(derived) <= 8 else numbers, 2):
        yield Op("==", (a, b)), 2.0
        yield Op("!=", (a, b)), 1.0
    for a, b in permutations(dict.fromkeys([*numbers, *derived]), 2):
        yield Op(">", (a, b)), 2.0
        yield Op(">=", (a, b)), 2.0
        yield op("!=", Op("%", (a, b)), 0), 2.0
        yield op("==", Op("%", (a, b)), 0), 1.0


def scaled_relations(quantities: Sequence[Quantity]) -> Conditions:
    """One quantity against a multiple of another; the product or sum of two against a third."""
    numbers = combinable(quantities)
    for a, b in permutations(numbers, 2):
        for factor in (2, 4, 8, 16, 32, 64):
            yield Op(">", (a, op("*", b, factor))), 0.5
            yield Op(">=", (a, op("*", b, factor))), 0.5
            yield Op("<", (a, op("*", b, factor))), 0.25
            yield Op("==", (a, op("*", b, factor))), 0.25
            yield Op("<=", (a, op("*", b, factor))), 0.25
    for a, b, c in permutations(numbers, 3):
        if str(a) < str(b):
            for combined in (times(a, b), plus(a, b)):
                yield Op(">", (combined, c)), 0.5
                yield Op(">=", (combined, c)), 0.5
                yield Op("<", (combined, c)), 0.25
                yield Op("==", (combined, c)), 0.25
                yield op("!=", Op("%", (combined, c)), 0), 0.25


def combined_moduli(quantities: Sequence[Quantity]) -> Conditions:
    """A product or a sum is, or is not, a multiple of a power of two (bytes of a row, an aligned offset)."""
    for a, b in combinations(combinable(quantities), 2):
        for combined in (times(a, b), plus(a, b)):
            for m in PRODUCT_MODULI:
                yield op("!=", op("%", combined, m), 0), 2.0
                yield op("==", op("%", combined, m), 0), 1.0
