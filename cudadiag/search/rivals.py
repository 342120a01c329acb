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
from cudadiag.search.expr import Column, Const, Expr, Op

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
        respelled = _respelled(rule, found.belief.table.vocabulary.literals.respelled)
        same = outside.rivals(rule, [*respelled, *(s.expr for s in fitted.spellings[0][1:])])
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


def _respelled(rule: Expr, spellings: Mapping[Expr, tuple[Expr, ...]]) -> list[Expr]:
    """The rule with one of its literals written in another way that is equal on all legal shapes, plain numbers
    first."""
    if rule in spellings or not isinstance(rule, Op) or rule.op not in ("and", "or"):
        return sorted(spellings.get(rule, ()), key=expr.says_a_constant_by_name)
    return [
        Op(rule.op, (*rule.args[:i], other, *rule.args[i + 1 :]))
        for i, part in enumerate(rule.args)
        for other in _respelled(part, spellings)
    ]


class _Outside:
    """Shapes just outside the sweep: those near the boundary of the prediction with one axis moved off its values."""

    def __init__(self, search: Any, found: Conclusion) -> None:
        self.sweep, self.vocabulary = search.sweep, found.belief.table.vocabulary
        self.axes = [q for q in self.vocabulary.quantities if not q.derived]
        self.names = {a.name for a in search.sweep.axes}
        first = search.tally.first or 0
        near = sorted({first, max(first - 1, 0), min(first + 1, len(self.sweep) - 1), len(self.sweep) - 1, 0})
        self.base = [dict(self.sweep.shape(i)) for i in near]

    def rivals(self, rule: Expr, others: list[Expr]) -> Iterator[tuple[Expr, Mapping[str, Scalar] | None, bool]]:
        """Those that a shape outside tells apart, with it; those that speak of derived quantities without."""
        known = expr.names(rule) <= self.names
        points = self._points([rule, *others]) if known else []
        mine = self._truth(rule, points) if points else None
        for other in others:
            if mine is None or not expr.names(other) <= self.names:
                if self._equal(rule, other):
                    yield other, None, False
                continue
            differ = np.flatnonzero(mine != self._truth(other, points))
            if differ.size:
                yield other, points[int(differ[0])], False

    def _points(self, rules: list[Expr]) -> list[dict[str, Scalar]]:
        """Values around the rules' own constants first: there a person would look."""
        around = {c + d for rule in rules for c in _integers(rule) for d in (-1, 0, 1)}
        values = [(q, [*_inside(q, around), *_between(q)]) for q in self.axes]
        return [point | {q.name: v} for point in self.base for q, moved in values for v in moved][:MOST_POINTS]

    def _equal(self, rule: Expr, other: Expr) -> bool:
        """On all legal shapes: those compared may be some of them only."""
        return bool((self.vocabulary.truth(rule) == self.vocabulary.truth(other)).all())

    def _truth(self, rule: Expr, points: list[dict[str, Scalar]]) -> NDArray[np.bool_]:
        columns: dict[str, Column] = {name: np.array([p[name] for p in points]) for name in expr.names(rule)}
        return np.asarray(expr.evaluate(rule, columns, len(points)), dtype=bool)


def _integers(rule: Expr) -> Iterator[int]:
    """The integer constants of a rule."""
    if isinstance(rule, Op):
        for part in rule.args:
            yield from _integers(part)
    elif isinstance(rule, Const) and isinstance(rule.value, int) and not isinstance(rule.value, bool):
        yield rule.value


def _inside(quantity: Quantity, values: set[int]) -> list[Scalar]:
    """Those between an integer axis' ends that are none of its values."""
    if not quantity.integer:
        return []
    known = {int(v) for v in quantity.levels}
    return [v for v in sorted(values - known) if min(known) < v < max(known)]


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
