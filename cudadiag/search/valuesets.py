"""Rules of the form "this axis has one of these values, and ...", for sets that no arithmetic describes.

"length in {2798, 2838, 2926, 2966} and beam >= 3": the set has a subset of the axis' values for every pattern, so it is
learnt value by value, beside one simple literal over other quantities.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cudadiag.search.columns import Quantity
from cudadiag.search.expr import ALWAYS, Const, Expr, Name, Op, names
from cudadiag.search.table import Indices, Table
from cudadiag.search.target import Target
from cudadiag.search.vocabulary import Bits

MOST_LEVELS = 64
SHAPES_PER_LEVEL = 2
"""An axis is only worth a set where each value stands for several shapes: else the set is just a list of the shapes
run."""
MOST_BESIDE = 250
MOST_SETS = 40
MASS_SETS = 0.02


@dataclass(frozen=True)
class SetRule:
    """One such rule: its spelling, truth on the table and log weight (prior, then evidence)."""

    expr: Expr
    bits: Bits
    log_prior: float
    log_weight: float


def set_rules(table: Table, target: Target) -> list[SetRule]:
    """The set rules that fit, each twice: with all values not tried yet outside the set, and with all of them inside.

    The two disagree exactly at the untried values, so halving asks for those. Claim: none by itself. Costs one probe
    for each value of the axis. Prior: every subset alike, so each value seen costs one bit. With a flaky fault there
    are none."""
    if len(target.noise.log_likelihood) > 1:
        return []
    found: list[SetRule] = []
    for quantity in table.vocabulary.quantities:
        levels = len(quantity.levels)
        if quantity.derived or levels > MOST_LEVELS or table.vocabulary.size < SHAPES_PER_LEVEL * levels:
            continue
        found += _sets_on(table, quantity, target.fails, target.others)
    return sorted(found, key=lambda rule: -rule.log_weight)[:MOST_SETS]


def _sets_on(table: Table, quantity: Quantity, fails: Indices, passes: Indices) -> Iterator[SetRule]:
    axes = sum(not q.derived for q in table.vocabulary.quantities)
    inside = np.zeros(len(quantity.levels), dtype=bool)
    inside[quantity.codes[fails]] = True
    codes = quantity.codes[table.shapes]
    for row in _beside(table, quantity.name, fails):
        truth = table.bits[row]
        outside = np.zeros(len(quantity.levels), dtype=bool)
        outside[quantity.codes[passes[truth[table.place[passes]]]]] = True
        if (inside & outside).any() or inside.all():
            continue
        prior = math.log(MASS_SETS * table.weights[row] / axes)
        weight = prior - math.log(2) * int((inside | outside).sum())
        for chosen in dict.fromkeys((tuple(inside), tuple(~outside))):
            member = np.array(chosen)
            expr = _spell(quantity, member, table.condition(row))
            yield SetRule(expr, member[codes] & truth, prior - math.log(2) * len(inside), weight - math.log(2))


def _beside(table: Table, axis: str, fails: Indices) -> list[int]:
    """Rows of literals that may stand beside a set on `axis`: "always", and the heaviest simple ones about other
    quantities (a fixed choice; those that hold at all failing shapes)."""
    rows = [int(row) for row in np.flatnonzero(table.simple)[:MOST_BESIDE]]
    rows = [row for row in rows if axis not in names(table.condition(row))]
    rows += [row for row in range(min(MOST_BESIDE, len(table.weights))) if table.condition(row) == ALWAYS]
    return [row for row in rows if table.bits[row, table.place[fails]].all()]


def _spell(quantity: Quantity, member: Bits, beside: Expr) -> Expr:
    inside = tuple(v for v, m in zip(quantity.levels, member, strict=True) if m)
    outside = tuple(v for v, m in zip(quantity.levels, member, strict=True) if not m)
    if len(inside) == 1:
        chosen: Expr = Op("==", (Name(quantity.name), Const(inside[0])))
    elif 2 * len(inside) <= len(member):
        chosen = Op("in", (Name(quantity.name), Const(inside)))
    elif outside:
        chosen = Op("not in", (Name(quantity.name), Const(outside)))
    else:
        return beside
    return chosen if beside == ALWAYS else Op("and", (chosen, beside))
