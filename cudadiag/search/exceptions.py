"""A simple rule with stray exceptions: said only where it explains the evidence in fewer bits than the bare list
does."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cudadiag.search.expr import Expr, Op
from cudadiag.search.table import make_table
from cudadiag.search.tally import Tally
from cudadiag.search.vocabulary import Vocabulary

MOST_LITERALS = 400
MOST_SHARE = 0.1


@dataclass(frozen=True)
class Stray:
    """The rule, and the shapes that were run and go against it."""

    rule: Expr
    exceptions: tuple[int, ...]


def best_with_exceptions(vocabulary: Vocabulary, tally: Tally) -> Stray | None:
    """The rule of one or two literals with the shortest description of the evidence, exceptions listed by index.

    Claim: none about shapes that were not run. Source: minimum description length (Rissanen). Costs no probe."""
    failing, passing = np.flatnonzero(tally.failing), np.flatnonzero(tally.passing)
    tested = np.sort(np.concatenate([failing, passing]))
    table = make_table(vocabulary, failing, passing)
    truth = table.bits[:, table.place[tested]]
    wrong_is = tally.failing[tested]
    each = math.log2(max(2, len(tested))) + 1
    log = -np.log2(table.weights)
    scored: list[tuple[float, tuple[int, ...], str]] = [
        (float(log[r] + each * e), (int(r),), "one") for r, e in enumerate((truth != wrong_is).sum(axis=1))
    ]
    scored = sorted(scored)[:MOST_LITERALS]
    rows = np.array([s[1][0] for s in scored])
    simple = rows[table.simple[rows]][: MOST_LITERALS // 4]
    for join in ("and", "or"):
        both = truth[rows][:, None] & truth[simple] if join == "and" else truth[rows][:, None] | truth[simple]
        wrong = (both != wrong_is).sum(axis=2)
        cost = log[rows][:, None] + log[simple] + 2 + each * wrong
        i, j = np.unravel_index(int(cost.argmin()), cost.shape)
        scored.append((float(cost[i, j]), (int(rows[i]), int(simple[j])), join))
    cost_bits, best, join = min(scored)
    share = float(wrong_is.mean())
    bare = len(tested) * (-share * math.log2(share) - (1 - share) * math.log2(1 - share)) if 0 < share < 1 else 0.0
    literals = tuple(table.condition(r) for r in best)
    rule: Expr = literals[0] if join == "one" else Op(join, literals)
    exceptions = tested[vocabulary.truth(rule, tested) != wrong_is]
    if not 0 < len(exceptions) <= max(1, MOST_SHARE * len(tested)) or cost_bits >= bare:
        return None
    return Stray(rule, tuple(int(i) for i in exceptions))
