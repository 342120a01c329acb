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
    rows = list(_focused(vocabulary, failing, passing, shapes))
    if not rows:
        return Table(vocabulary, known.conditions, known.weights, known.simple, bits, shapes, place)
    return Table(
        vocabulary,
        known.conditions + tuple(r.condition for r in rows),
        np.concatenate([known.weights, [r.weight for r in rows]]),
        np.concatenate([known.simple, [r.simple for r in rows]]),
        np.concatenate([bits, np.stack([r.truth for r in rows])]),
        shapes,
        place,
    )


@dataclass(frozen=True)
class _Row:
    condition: Expr
    weight: float
    simple: bool
    truth: Bits


def _focused(vocabulary: Vocabulary, failing: Indices, passing: Indices, shapes: Indices) -> Iterator[_Row]:
    for term in vocabulary.long_terms:
        fails, passes, codes = term.codes[failing], term.codes[passing], term.codes[shapes]
        for upper in (True, False):
            for cut, share in _cuts(len(term.levels), fails, passes, upper).items():
                weight = share * (term.weight_upper if upper else term.weight_lower)
                truth = codes >= cut if upper else codes < cut
                yield _Row(_cut(term, cut, upper), weight, term.simple, truth)
        if isinstance(term.expr, Name):
            for code in np.unique(fails)[:MOST_EQUAL]:
                equal = Op("==", (term.expr, Const(_plain(term, int(code)))))
                yield _Row(equal, term.weight_upper / len(term.levels), term.simple, codes == code)


def _cuts(levels: int, fails: Indices, passes: Indices, upper: bool) -> dict[int, float]:
    """Cuts that hold at every failing value: evenly over all that do, and again between the tightest of them and the
    nearest passing value. Each with what it stands for, its share of the term's values."""
    if upper:
        last = int(fails.min()) if fails.size else levels - 1
        below = passes[passes < last]
        spans = [(1, last), (int(below.max()) + 1 if below.size else 1, last)]
    else:
        last = int(fails.max()) + 1 if fails.size else 1
        above = passes[passes >= last]
        spans = [(last, levels - 1), (last, int(above.min()) if above.size else levels - 1)]
    found: dict[int, float] = {}
    for low, high in dict.fromkeys(spans):
        if low <= high:
            chosen = np.unique(np.linspace(low, high, CUTS).astype(np.int64)).tolist()
            share = (high - low + 1) / levels / len(chosen)
            found = dict.fromkeys(chosen, share) | found
    return found


def _cut(term: LongTerm, cut: int, upper: bool) -> Expr:
    return threshold(term.expr, _plain(term, cut - 1), _plain(term, cut), term.integer, upper)[0]


def _plain(term: LongTerm, code: int) -> int | float:
    """A level as a number of Python's: it ends up in expressions and JSON."""
    return int(term.levels[code]) if term.integer else float(term.levels[code])
