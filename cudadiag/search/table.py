"""The literals against the shapes that matter now: the pool, and whatever else was run or is being compared.

In a sweep that fits the pool this is the vocabulary as it stands. In a large one, and for terms with very many
values, the evidence adds columns (shapes outside the pool) and rows (cuts between a passing and a failing value)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.constants import threshold
from cudadiag.search.expr import Const, Expr, Name, Op
from cudadiag.search.vocabulary import Bits, LongTerm, Vocabulary

Indices = NDArray[np.int64]

CUTS = 24
"""Cuts of a long term that are looked at in one span; the next step looks again in the span that is left."""
MOST_EQUAL = 12
"""Failing values of a long axis that get an equality of their own."""


@dataclass(frozen=True)
class Table:
    """`bits[a, k]`: literal a at shape `shapes[k]`; `place[i]` is the column of shape i (-1: not here)."""

    vocabulary: Vocabulary
    conditions: tuple[Expr, ...]
    weights: NDArray[np.float64]
    simple: Bits
    bits: Bits
    shapes: Indices
    place: Indices

    @property
    def complete(self) -> bool:
        """Whether the columns are all legal shapes."""
        return len(self.shapes) == self.vocabulary.size


def make_table(vocabulary: Vocabulary, failing: Indices, passing: Indices, also: Indices) -> Table:
    """The table for this evidence; `also` are further shapes to have columns for (ascending order is not needed)."""
    known = vocabulary.literals
    place = np.full(vocabulary.size, -1, dtype=np.int64)
    place[vocabulary.pool] = np.arange(len(vocabulary.pool))
    wanted = np.unique(np.concatenate([failing, passing, also])).astype(np.int64)
    extra = wanted[place[wanted] < 0]
    shapes = np.concatenate([vocabulary.pool, extra])
    place[extra] = np.arange(len(vocabulary.pool), len(shapes))
    bits = known.bits
    if extra.size:
        beyond = np.stack([vocabulary.truth(c, extra) for c in known.conditions])
        bits = np.concatenate([bits, beyond], axis=1)
    rows = list(_focused(vocabulary, failing, passing))
    if not rows:
        return Table(vocabulary, known.conditions, known.weights, known.simple, bits, shapes, place)
    focused = np.stack([vocabulary.truth(condition, shapes) for condition, _, _ in rows])
    return Table(
        vocabulary,
        known.conditions + tuple(r[0] for r in rows),
        np.concatenate([known.weights, [r[1] for r in rows]]),
        np.concatenate([known.simple, [r[2] for r in rows]]),
        np.concatenate([bits, focused]),
        shapes,
        place,
    )


def _focused(vocabulary: Vocabulary, failing: Indices, passing: Indices) -> Iterator[tuple[Expr, float, bool]]:
    for term in vocabulary.long_terms:
        fails, passes = term.codes[failing], term.codes[passing]
        yield from _cuts(term, fails, passes, upper=True)
        yield from _cuts(term, fails, passes, upper=False)
        if isinstance(term.expr, Name):
            for code in np.unique(fails)[:MOST_EQUAL]:
                value = term.levels[code]
                plain = int(value) if term.integer else float(value)
                yield Op("==", (term.expr, Const(plain))), term.weight_upper / len(term.levels), term.simple


def _cuts(term: LongTerm, fails: Indices, passes: Indices, upper: bool) -> Iterator[tuple[Expr, float, bool]]:
    """Cuts that hold at every failing value: evenly over all that do, and again between the tightest of them and the
    nearest passing value. A cut weighs what it stands for: its share of the term's values."""
    n = len(term.levels)
    if upper:
        last = int(fails.min()) if fails.size else n - 1
        below = passes[passes < last]
        spans = [(1, last), (int(below.max()) + 1 if below.size else 1, last)]
    else:
        last = int(fails.max()) + 1 if fails.size else 1
        above = passes[passes >= last]
        spans = [(last, n - 1), (last, int(above.min()) if above.size else n - 1)]
    total = term.weight_upper if upper else term.weight_lower
    seen: set[int] = set()
    for low, high in dict.fromkeys(spans):
        if low > high:
            continue
        chosen = np.unique(np.linspace(low, high, CUTS).astype(np.int64))
        share = total * (high - low + 1) / n / len(chosen)
        for cut in (int(c) for c in chosen):
            if cut not in seen:
                seen.add(cut)
                yield _cut(term, cut, upper), share, term.simple


def _cut(term: LongTerm, cut: int, upper: bool) -> Expr:
    below, above = term.levels[cut - 1], term.levels[cut]
    if term.integer:
        return threshold(term.expr, int(below), int(above), True, upper)[0]
    return threshold(term.expr, float(below), float(above), False, upper)[0]
