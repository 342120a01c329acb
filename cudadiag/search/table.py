"""The literals against the shapes that matter now: the pool, and whatever else was run or is being compared.

In a sweep that fits the pool this is the vocabulary as it stands. In a large one, and for terms with very many
values, the evidence adds columns (shapes outside the pool) and rows (cuts between a passing and a failing value)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.constants import threshold
from cudadiag.search.expr import Const, Expr, Name, Op
from cudadiag.search.vocabulary import Bits, LongTerm, Vocabulary

Indices = NDArray[np.int64]

CUTS = 16
"""Cuts of a long term that are looked at in one span; the next step looks again in the span that is left."""
MOST_EQUAL = 12
"""Failing values of a long axis that get an equality of their own."""


@dataclass(frozen=True)
class Cuts:
    """Literals over a long term: its value is at least (">="), below ("<") or equal to ("==") each of the levels
    `codes`."""

    term: LongTerm
    codes: Indices
    sign: str
    weights: NDArray[np.float64]

    def truth(self, shapes: Indices) -> Bits:
        values, codes = self.term.codes[shapes], self.codes[:, None]
        return np.asarray(
            values >= codes if self.sign == ">=" else values < codes if self.sign == "<" else values == codes
        )

    def condition(self, k: int) -> Expr:
        code = int(self.codes[k])
        if self.sign == "==":
            return Op("==", (self.term.expr, Const(self.term.level(code))))
        below, above = self.term.level(code - 1), self.term.level(code)
        return threshold(self.term.expr, below, above, self.term.integer, self.sign == ">=")[0]


@dataclass(frozen=True)
class Table:
    """`bits[a, k]`: literal a at shape `shapes[k]`; `place[i]` is the column of shape i (-1: not here)."""

    vocabulary: Vocabulary
    focused: tuple[Cuts, ...]  # the rows after those of the vocabulary
    weights: NDArray[np.float64]
    simple: Bits
    bits: Bits
    shapes: Indices
    place: Indices

    def condition(self, row: int) -> Expr:
        """The literal of a row."""
        known = self.vocabulary.literals.conditions
        if row < len(known):
            return known[row]
        row -= len(known)
        for cuts in self.focused:
            if row < len(cuts.codes):
                return cuts.condition(row)
            row -= len(cuts.codes)
        raise IndexError(row)

    @property
    def complete(self) -> bool:
        """Whether the columns are all legal shapes."""
        return len(self.shapes) == self.vocabulary.size


def make_table(vocabulary: Vocabulary, failing: Indices, passing: Indices) -> Table:
    """The table for this evidence."""
    known = vocabulary.literals
    place = np.full(vocabulary.size, -1, dtype=np.int64)
    place[vocabulary.pool] = np.arange(len(vocabulary.pool))
    wanted = np.unique(np.concatenate([failing, passing])).astype(np.int64)
    extra = wanted[place[wanted] < 0]
    shapes = np.concatenate([vocabulary.pool, extra])
    place[extra] = np.arange(len(vocabulary.pool), len(shapes))
    bits = known.bits
    if extra.size:
        bits = np.concatenate([bits, _beyond_pool(vocabulary, extra)], axis=1)
    focused = tuple(cuts for term in vocabulary.long_terms for cuts in _focused(term, failing, passing))
    if not focused:
        return Table(vocabulary, (), known.weights, known.simple, bits, shapes, place)
    return Table(
        vocabulary,
        focused,
        np.concatenate([known.weights, *(c.weights for c in focused)]),
        np.concatenate([known.simple, *(np.full(len(c.codes), c.term.simple) for c in focused)]),
        np.concatenate([bits, *(c.truth(shapes) for c in focused)]),
        shapes,
        place,
    )


def _beyond_pool(vocabulary: Vocabulary, shapes: Indices) -> Bits:
    """The vocabulary's literals at shapes outside the pool, one column each, remembered."""
    known: dict[int, Bits] = vocabulary.memo.setdefault("columns", {})
    for index in shapes.tolist():
        if index not in known:
            known[index] = vocabulary.column(index)
    return np.stack([known[i] for i in shapes.tolist()], axis=1)


def _focused(term: LongTerm, failing: Indices, passing: Indices) -> Iterator[Cuts]:
    fails, passes = term.codes[failing].astype(np.int64), term.codes[passing].astype(np.int64)
    for sign, mass in ((">=", term.weight_upper), ("<", term.weight_lower)):
        chosen, shares = _cuts(len(term.levels), fails, passes, sign == ">=")
        if chosen.size:
            yield Cuts(term, chosen, sign, mass * shares)
    equal = np.unique(fails)[:MOST_EQUAL]
    if isinstance(term.expr, Name) and equal.size:
        yield Cuts(term, equal, "==", np.full(len(equal), term.weight_upper / len(term.levels)))


def _cuts(levels: int, fails: Indices, passes: Indices, upper: bool) -> tuple[Indices, NDArray[np.float64]]:
    """Cuts worth looking at, each with what it stands for, its share of the term's values. Evenly over those that
    hold at every failing value; again between the tightest of them and the nearest passing value; and again, for
    rules in which something else explains some failures, between the last passing value and the first failing one
    beyond it."""
    if not upper:  # the same from the other end
        mirrored, shares = _cuts(levels, levels - 1 - fails, levels - 1 - passes, True)
        return levels - mirrored[::-1], shares[::-1]
    last = int(fails.min()) if fails.size else levels - 1
    below = passes[passes < last]
    clean = int(passes.max()) + 1 if passes.size else 1
    beyond = fails[fails >= clean]
    nearest = int(below.max()) + 1 if below.size else 1
    return _spread(levels, (1, last), (nearest, last), (clean, int(beyond.min()) if beyond.size else levels - 1))


@lru_cache(maxsize=4096)
def _spread(levels: int, *spans: tuple[int, int]) -> tuple[Indices, NDArray[np.float64]]:
    """CUTS cuts over each span, with the share of the levels that each stands for (not to be written to)."""
    spread = [np.linspace(low, high, CUTS).astype(np.int64) for low, high in spans if low <= high]
    chosen = np.unique(np.concatenate(spread)) if spread else np.empty(0, dtype=np.int64)
    shares = np.diff(chosen, prepend=0) / levels  # a cut stands for the levels since the one before it,
    shares[np.isin(chosen, [low for low, _ in spans])] = 1 / levels  # but not for those that a span leaves out
    return chosen, shares
