"""The declared vocabulary: every literal a rule may be made of, with its weight before any evidence.

FAMILIES is the table to read. A family's mass is shared among its members; literals equal on all legal shapes are
one, under the likeliest spelling. Rules of one literal weigh its weight, rules of two or three the product
(space.py), so that simple rules outweigh complicated ones. The numbers are a judgement about CUDA programs; only
their order of magnitude matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Sweep
from cudadiag.search import named, predicates, terms
from cudadiag.search.columns import Quantity, quantities
from cudadiag.search.constants import threshold
from cudadiag.search.expr import ALWAYS, Column, Expr, Name, evaluate, says_a_constant_by_name
from cudadiag.search.memo import SweepMemo
from cudadiag.search.pool import choose_pool
from cudadiag.search.predicates import MOST_LEVELS, Conditions
from cudadiag.search.terms import Terms

Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Family:
    """`terms` make thresholds (a term against each cut between its values), `conditions` are literals as they stand.
    `simple` literals may stand beside any other in rules of two and three."""

    name: str
    says: str
    mass: float
    simple: bool
    terms: Callable[[Sequence[Quantity]], Terms] | None = None
    conditions: Callable[[Sequence[Quantity]], Conditions] | None = None
    upper: float = 0.85  # share of "at least c" against "below c"
    named: bool = False  # made of the constants that the case names; their shares are their own


def _quantity_terms(found: Sequence[Quantity]) -> Terms:
    for q in found:
        if q.numeric and len(q.levels) > 2:  # of two values, each is better called by its name
            yield Name(q.name), 0.5 if q.derived else 1.0


def _of(make: Callable[[Sequence[Expr]], Terms]) -> Callable[[Sequence[Quantity]], Terms]:
    return lambda found: make(terms.combinable(found))


FAMILIES = (
    Family("threshold", "a >= c, a < c", 0.30, True, terms=_quantity_terms, upper=0.7),
    Family("named constant", "a > C, a < C, C a number above 8 that the case names", 0.30, True, named=True),
    Family("equality", "a == c, a != c", 0.12, True, conditions=predicates.equalities),
    Family("set", "a in {c, d, ...}, axes of at most 6 values", 0.02, True, conditions=predicates.sets),
    Family("modulus", "a % m == 0, a % m != 0", 0.14, True, conditions=predicates.moduli),
    Family("remainder", "a % m == r, a % m >= r", 0.02, True, conditions=predicates.residues),
    Family("power of two", "a is, is not a power of two", 0.03, True, conditions=predicates.powers_of_two),
    Family("relation", "a > b, a == b, a % b == 0", 0.06, True, conditions=predicates.relations),
    Family("scaled relation", "a >= k*b, a*b > c, a + b == c", 0.01, True, conditions=predicates.scaled_relations),
    Family("product", "a*b*c*d >= c, one factor squared", 0.12, False, terms=_of(terms.products)),
    Family("sum", "a + b + c >= c, a - b, a + 2*b", 0.06, False, terms=_of(terms.sums), upper=0.7),
    Family("last item", "(a - 1)*b*c*d >= c", 0.02, False, terms=_of(terms.last_items)),
    Family("offset", "a*b + c, (a + b)*c >= c", 0.02, False, terms=_of(terms.offsets)),
    Family("padded", "next_pow2(a)*b*c >= c", 0.02, False, terms=_of(terms.padded)),
    Family("tiles", "ceil_div(a, t)*b >= c", 0.02, False, terms=_of(terms.tiles)),
    Family("quotient", "a // b, a % b, a*b // c >= c", 0.02, False, terms=_of(terms.quotients), upper=0.5),
    Family("combined modulus", "(a*b) % m == 0, (a + b) % m == 0", 0.01, False, conditions=predicates.combined_moduli),
)
MASS_ALWAYS = 0.02
"""Weight of "fails whatever the shape"."""
MOST_REMEMBERED = 2000
"""Conditions whose truth over all legal shapes is kept at hand, as bits."""
MOST_SHARED = 20_000_000
"""Values of terms that are kept while the conditions over them are made (8 bytes each)."""
MOST_SPELLINGS = 3
"""Other spellings of a literal that are remembered, to be told as rivals."""
WEIGHT_MATTERS = 4.0
"""How much likelier a cut at a constant that matters is, within its term."""


@dataclass(frozen=True)
class LongTerm:
    """A term with its values: `codes` (position among `levels`) for each legal shape."""

    expr: Expr
    levels: Column
    codes: NDArray[np.int32]
    integer: bool
    weight_upper: float
    weight_lower: float
    simple: bool

    def level(self, code: int) -> int | float:
        """A level as a number of Python's: it ends up in expressions and JSON."""
        return int(self.levels[code]) if self.integer else float(self.levels[code])


@dataclass(frozen=True)
class Cuttings:
    """Literals that are cuts, by row: the term's code must be at least `least` (or, with `below`, less). What lets a
    shape outside the pool get its column without evaluating thousands of expressions."""

    rows: NDArray[np.int64]
    terms: NDArray[np.int64]
    least: NDArray[np.int64]
    below: Bits
    codes: tuple[NDArray[np.int16], ...]


@dataclass(frozen=True)
class Literals:
    """Conditions with their weights and their truth on the pool: `bits[a, k]` is literal a at shape `pool[k]`.
    `respelled`: for a condition the next likeliest ones with the same truth on all legal shapes."""

    conditions: tuple[Expr, ...]
    weights: NDArray[np.float64]
    simple: Bits
    bits: Bits
    cuts: Cuttings
    respelled: Mapping[Expr, tuple[Expr, ...]]


@dataclass(frozen=True)
class Vocabulary:
    """The literals over one sweep. `pool` are the shapes that rules are compared on: all of them in a sweep of up to
    pool.MOST shapes, else a fixed choice; `columns` the values of every quantity for all legal shapes."""

    quantities: tuple[Quantity, ...]
    columns: dict[str, Column]
    size: int
    pool: NDArray[np.int64]
    literals: Literals
    long_terms: tuple[LongTerm, ...]
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def truth(self, condition: Expr, indices: NDArray[np.int64] | None = None) -> Bits:
        """The condition at the given shapes (default: all legal ones)."""
        if indices is None:
            return self.unpacked(self.packed_truth(condition))
        return self.evaluate(condition, self.at(indices), len(indices))

    def packed_truth(self, condition: Expr) -> NDArray[np.uint8]:
        """The condition at all legal shapes, eight to a byte, remembered; not to be written to."""
        known: dict[Expr, NDArray[np.uint8]] = self.memo.setdefault("truth", {})
        if condition not in known:
            if len(known) >= MOST_REMEMBERED:
                known.clear()
            known[condition] = np.packbits(self.evaluate(condition, self.columns, self.size))
        return known[condition]

    def unpacked(self, packed: NDArray[np.uint8]) -> Bits:
        return np.unpackbits(packed, count=self.size).view(np.bool_)

    @staticmethod
    def evaluate(condition: Expr, columns: dict[str, Column], size: int, known: dict[int, Any] | None = None) -> Bits:
        return np.asarray(evaluate(condition, columns, size, known), dtype=bool)

    def column(self, index: int) -> Bits:
        """Every literal at one shape."""
        cuts, literals = self.literals.cuts, self.literals
        column = np.zeros(len(literals.conditions), dtype=bool)
        if cuts.rows.size:
            codes = np.array([c[index] for c in cuts.codes])
            column[cuts.rows] = (codes[cuts.terms] >= cuts.least) != cuts.below
        others = np.ones(len(column), dtype=bool)
        others[cuts.rows] = False
        here, shared = self.at(np.array([index])), dict[int, Any]()
        for row in np.flatnonzero(others).tolist():
            column[row] = self.evaluate(literals.conditions[row], here, 1, shared)[0]
        return column

    def at(self, indices: NDArray[np.int64]) -> dict[str, Column]:
        return {name: column[indices] for name, column in self.columns.items()}


@dataclass
class _Collector:
    """Literals while they are made; the same truth on all legal shapes is kept once, under its likeliest spelling."""

    columns: dict[str, Column]
    size: int
    pool: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.found: dict[bytes, _Member] = {}
        self.codes: list[NDArray[np.int16]] = []

    def add(
        self, condition: Expr, weight: float, simple: bool, full: Bits, cut: tuple[int, int, bool] | None = None
    ) -> None:
        """`cut` is (term, code, below) for a literal that is a cut through a term of `codes`."""
        count = int(full.sum())
        if count in (0, self.size):
            return
        on_pool = full[self.pool]
        key = np.packbits(on_pool).tobytes() + count.to_bytes(4, "little")
        known = self.found.get(key)
        if known is None:
            self.found[key] = _Member(weight, condition, simple, on_pool, cut)
        elif weight > known.weight:
            others = _likeliest([(known.weight, known.condition), *known.others])
            self.found[key] = _Member(weight, condition, simple or known.simple, on_pool, cut, others)
        else:
            others = _likeliest([*known.others, (weight, condition)])
            self.found[key] = replace(known, simple=simple or known.simple, others=others)


@dataclass(frozen=True)
class _Member:
    weight: float
    condition: Expr
    simple: bool
    bits: Bits
    cut: tuple[int, int, bool] | None
    others: tuple[tuple[float, Expr], ...] = ()


def _likeliest(spellings: list[tuple[float, Expr]]) -> tuple[tuple[float, Expr], ...]:
    """The likeliest, and among them the likeliest one that says no constant by name: what a doubter would say."""
    ranked = sorted(spellings, key=lambda s: -s[0])
    kept = ranked[:MOST_SPELLINGS]
    plain = next((s for s in ranked if not says_a_constant_by_name(s[1])), None)
    return tuple(kept if plain is None or plain in kept else [*kept[:-1], plain])


def build(sweep: Sweep) -> Vocabulary:
    """All literals over a sweep. Time and memory grow with literals times pool, not with the number of legal shapes."""
    found = quantities(sweep)
    columns = {q.name: q.column for q in found}
    pool = choose_pool(found, len(sweep))
    collector = _Collector(columns, len(sweep), pool)
    long_terms: list[LongTerm] = []
    for family in FAMILIES:
        if family.terms is not None:
            _add_thresholds(collector, family, list(family.terms(found)), long_terms)
        if family.conditions is not None:
            _add_conditions(collector, family, _shared(family.conditions(found)))
        if family.named:
            _add_conditions(collector, family, list(named.comparisons(found, sweep.constants)))
    return Vocabulary(found, columns, len(sweep), pool, _literals(collector), tuple(long_terms))


def _literals(collector: _Collector) -> Literals:
    everywhere = _Member(MASS_ALWAYS, ALWAYS, False, np.ones(len(collector.pool), dtype=bool), None)
    members = sorted([everywhere, *collector.found.values()], key=lambda m: -m.weight)
    weights = np.array([m.weight for m in members])
    cuts = [(row, *m.cut) for row, m in enumerate(members) if m.cut is not None]
    rows, terms, least, below = (
        np.array(part, dtype=np.int64) for part in (zip(*cuts, strict=True) if cuts else [()] * 4)
    )
    return Literals(
        tuple(m.condition for m in members),
        weights / weights.sum(),
        np.array([m.simple for m in members]),
        np.stack([m.bits for m in members]),
        Cuttings(rows, terms, least, below.astype(bool), tuple(collector.codes)),
        {m.condition: tuple(expr for _, expr in m.others) for m in members if m.others},
    )


def _add_conditions(collector: _Collector, family: Family, members: list[tuple[Expr, float]]) -> None:
    shared: dict[int, Any] = {}
    for condition, share in members:
        if len(shared) * collector.size > MOST_SHARED:
            shared.clear()
        full = np.asarray(evaluate(condition, collector.columns, collector.size, shared), dtype=bool)
        collector.add(condition, family.mass * share, family.simple, full)


def _shared(members: Conditions) -> list[tuple[Expr, float]]:
    """The members with their shares of the family."""
    listed = list(members)
    total = sum(weight for _, weight in listed)
    return [(condition, weight / total) for condition, weight in listed]


def _add_thresholds(
    collector: _Collector, family: Family, members: list[tuple[Expr, float]], long_terms: list[LongTerm]
) -> None:
    total = sum(weight for _, weight in members)
    for term, weight in members:
        values = evaluate(term, collector.columns, collector.size)
        levels, codes = np.unique(values, return_inverse=True)
        if len(levels) < 2:
            continue
        share = family.mass * weight / total
        upper, lower = share * family.upper, share * (1 - family.upper)
        integer = values.dtype == np.int64
        found = LongTerm(term, levels, codes.astype(np.int32), integer, upper, lower, family.simple)
        if len(levels) > MOST_LEVELS:
            long_terms.append(found)
        else:
            _add_cuts(collector, family, found)


def _add_cuts(collector: _Collector, family: Family, term: LongTerm) -> None:
    named = [
        [
            (*threshold(term.expr, term.level(i - 1), term.level(i), term.integer, upper), upper)
            for upper in (True, False)
        ]
        for i in range(1, len(term.levels))
    ]
    weights = [WEIGHT_MATTERS if both[0][1] else 1.0 for both in named]
    total = sum(weights)
    number = len(collector.codes)
    collector.codes.append(term.codes.astype(np.int16))
    for i, (both, weight) in enumerate(zip(named, weights, strict=True), start=1):
        above = term.codes >= i
        for condition, _, upper in both:
            share = (term.weight_upper if upper else term.weight_lower) * weight / total
            full = above if upper else ~above
            collector.add(condition, share, family.simple, full, (number, i, not upper))


vocabulary = SweepMemo(build)
"""`build`, once for each sweep."""
