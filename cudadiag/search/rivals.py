"""Rules that fit everything seen as well as the one named, and the shape that would tell them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Scalar
from cudadiag.search import expr, report
from cudadiag.search.answer import Rival
from cudadiag.search.columns import Quantity
from cudadiag.search.conclusion import Conclusion
from cudadiag.search.expr import Column, Expr

MOST = 3
MOST_POINTS = 2000
MOST_BETWEEN = 100
LEAST_SHARE = 0.001


def rivals(search: Any, found: Conclusion) -> tuple[Rival, ...]:
    """Up to MOST rivals for each outcome: other behaviours that some legal shape tells apart, then other spellings of
    the same behaviour that only a shape outside the sweep does (one axis moved; whether it is legal the case knows).

    Claim: none; being indistinguishable is information. Costs no probe."""
    result: list[Rival] = []
    outside = _Outside(search, found)
    for (label, rule), fitted in zip(found.rules, found.belief.views[0].posteriors, strict=True):
        outcome = report.label_text(found.belief.labels[label]) or ""
        legal = _legal_rivals(search, found, fitted)
        same = outside.rivals(rule, [s.expr for s in fitted.spellings[0][1:]])
        for other, shape, is_legal in [*legal, *same][:MOST]:
            result.append(Rival(outcome, expr.words(other), expr.text(other), shape, is_legal))
    return tuple(result)


def _legal_rivals(search: Any, found: Conclusion, fitted: Any) -> list[tuple[Expr, Mapping[str, Scalar], bool]]:
    table, rows = found.belief.table, []
    for u in range(1, len(fitted.spellings)):
        if fitted.shares[u] < LEAST_SHARE:
            break
        differ = table.shapes[fitted.bits[u] != fitted.bits[0]]
        untested = differ[search.untested[differ]]
        if untested.size:
            rows.append((fitted.spellings[u][0].expr, search.sweep.shape(int(untested.min())), True))
    return rows


class _Outside:
    """Shapes just outside the sweep: those near the boundary of the prediction with one axis moved off its values."""

    def __init__(self, search: Any, found: Conclusion) -> None:
        self.sweep = search.sweep
        self.axes = [q for q in found.belief.table.vocabulary.quantities if not q.derived]
        self.names = {a.name for a in search.sweep.axes}
        first = search.tally.first or 0
        base = sorted({first, max(first - 1, 0), min(first + 1, len(self.sweep) - 1), len(self.sweep) - 1, 0})
        self.points = [dict(self.sweep.shape(i)) | {q.name: v} for i in base for q in self.axes for v in _between(q)][
            :MOST_POINTS
        ]

    def rivals(self, rule: Expr, others: list[Expr]) -> Iterator[tuple[Expr, Mapping[str, Scalar] | None, bool]]:
        if not self.points or not expr.names(rule) <= self.names:
            return
        mine = self._truth(rule)
        for other in others:
            if not expr.names(other) <= self.names:
                continue
            differ = np.flatnonzero(mine != self._truth(other))
            if differ.size:
                yield other, self.points[int(differ[0])], False

    def _truth(self, rule: Expr) -> NDArray[np.bool_]:
        wanted = expr.names(rule)
        columns: dict[str, Column] = {
            q.name: np.array([p[q.name] for p in self.points]) for q in self.axes if q.name in wanted
        }
        for name in wanted - set(columns):
            columns[name] = np.array([p[name] for p in self.points])
        return np.asarray(expr.evaluate(rule, columns, len(self.points)), dtype=bool)


def _between(quantity: Quantity) -> list[Scalar]:
    """Values an integer axis does not have but could: between its values, and beyond both ends (an even choice of a
    long axis)."""
    if not quantity.integer:
        return []
    known = {int(v) for v in quantity.levels}
    chosen = [int(v) for v in quantity.levels[:: max(1, len(quantity.levels) // MOST_BETWEEN)]]
    new = {(a + b) // 2 for a, b in pairwise(chosen)} | {v + d for v in chosen for d in (-1, 1)}
    low, high = min(known), max(known)
    new |= {2 * high, 4 * high, max(1, low // 2)}
    return [v for v in sorted(new) if v not in known and v >= min(low, 1)]
