"""The literals against the shapes that matter now: the pool, and whatever else was run or is being compared.

In a sweep that fits the pool this is the vocabulary as it stands. In a large one, and for terms with very many
values, the evidence adds columns (shapes outside the pool) and rows (cuts between a passing and a failing value)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
class Cut:
    """A literal over a long term: its value is at least (">="), below ("<") or equal to ("==") the level `code`."""

    term: LongTerm
    code: int
    sign: str
    weight: float

    def truth(self, shapes: Indices) -> Bits:
        codes = self.term.codes[shapes]
        hits = (
            codes >= self.code if self.sign == ">=" else codes < self.code if self.sign == "<" else codes == self.code
        )
        return np.asarray(hits)

    def condition(self) -> Expr:
        if self.sign == "==":
            return Op("==", (self.term.expr, Const(self._level(self.code))))
        below, above = self._level(self.code - 1), self._level(self.code)
        return threshold(self.term.expr, below, above, self.term.integer, self.sign == ">=")[0]

    def _level(self, code: int) -> int | float:
        """A level as a number of Python's: it ends up in expressions and JSON."""
        return int(self.term.levels[code]) if self.term.integer else float(self.term.levels[code])


@dataclass(frozen=True)
class Table:
    """`bits[a, k]`: literal a at shape `shapes[k]`; `place[i]` is the column of shape i (-1: not here)."""

    vocabulary: Vocabulary
    focused: tuple[Cut, ...]  # the rows after those of the vocabulary
    weights: NDArray[np.float64]
    simple: Bits
    bits: Bits
    shapes: Indices
    place: Indices

    def condition(self, row: int) -> Expr:
        """The literal of a row."""
        known = self.vocabulary.literals.conditions
        return known[row] if row < len(known) else self.focused[row - len(known)].condition()

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
    rows = list(_focused(vocabulary, failing, passing))
    if not rows:
        return Table(vocabulary, (), known.weights, known.simple, bits, shapes, place)
    return Table(
        vocabulary,
        tuple(rows),
        np.concatenate([known.weights, [r.weight for r in rows]]),
        np.concatenate([known.simple, [r.term.simple for r in rows]]),
        np.concatenate([bits, np.stack([r.truth(shapes) for r in rows])]),
        shapes,
        place,
    )


def _beyond_pool(vocabulary: Vocabulary, shapes: Indices) -> Bits:
    """The vocabulary's literals at shapes outside the pool, one column each, remembered."""
    known: dict[int, Bits] = vocabulary.memo.setdefault("columns", {})
    new = np.array([i for i in shapes.tolist() if i not in known], dtype=np.int64)
    if new.size:
        columns, shared = vocabulary.at(new), dict[int, Any]()
        truths = [vocabulary.evaluate(c, columns, len(new), shared) for c in vocabulary.literals.conditions]
        known.update(zip(new.tolist(), np.stack(truths, axis=1), strict=True))
    return np.stack([known[i] for i in shapes.tolist()], axis=1)


def _focused(vocabulary: Vocabulary, failing: Indices, passing: Indices) -> Iterator[Cut]:
    for term in vocabulary.long_terms:
        fails, passes = term.codes[failing], term.codes[passing]
        for upper in (True, False):
            mass = term.weight_upper if upper else term.weight_lower
            for cut, share in _cuts(len(term.levels), fails, passes, upper).items():
                yield Cut(term, cut, ">=" if upper else "<", mass * share)
        if isinstance(term.expr, Name):
            for code in np.unique(fails)[:MOST_EQUAL]:
                yield Cut(term, int(code), "==", term.weight_upper / len(term.levels))


def _cuts(levels: int, fails: Indices, passes: Indices, upper: bool) -> dict[int, float]:
    """Cuts worth looking at, each with what it stands for, its share of the term's values. Evenly over those that
    hold at every failing value; again between the tightest of them and the nearest passing value; and again, for
    rules in which something else explains some failures, between the last passing value and the first failing one
    beyond it."""
    if not upper:  # the same from the other end
        mirrored = _cuts(levels, levels - 1 - fails, levels - 1 - passes, True)
        return {levels - cut: share for cut, share in mirrored.items()}
    last = int(fails.min()) if fails.size else levels - 1
    below = passes[passes < last]
    clean = int(passes.max()) + 1 if passes.size else 1
    beyond = fails[fails >= clean]
    spans = [
        (1, last),
        (int(below.max()) + 1 if below.size else 1, last),
        (clean, int(beyond.min()) if beyond.size else levels - 1),
    ]
    spread = [np.linspace(low, high, CUTS).astype(np.int64) for low, high in spans if low <= high]
    chosen = np.unique(np.concatenate(spread)) if spread else np.empty(0, dtype=np.int64)
    shares = np.diff(chosen, prepend=0) / levels  # a cut stands for the levels since the one before it,
    shares[np.isin(chosen, [low for low, _ in spans])] = 1 / levels  # but not for those that a span leaves out
    return dict(zip(chosen.tolist(), shares.tolist(), strict=True))
