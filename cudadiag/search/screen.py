"""Looking for a first failing shape: where most of the rules that still could be true would show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.table import Table, make_table
from cudadiag.search.tally import Tally
from cudadiag.search.target import Floats
from cudadiag.search.vocabulary import Vocabulary

PAIR_LITERALS = 240
"""Simple literals whose conjunctions count: with equalities of all axes among them this is a covering array of
strength 2."""
MASS_PAIRS = 0.3


def screen_order(vocabulary: Vocabulary, tally: Tally, count: int, generator: np.random.Generator) -> list[int]:
    """The shapes to try next while nothing has failed: first both ends of the sweep, then greedily the shape at which
    the largest share of the rules that no pass has refuted would fail.

    Under the vocabulary's weights this runs through the corners, the neighbours of limits and powers of two, odd and
    prime values, every value of every axis, and pairs of values (the greedy covering array of Cohen et al., AETG,
    1997, falls out of the pairs of equalities). Claim: none. Costs about 1/f probes for a failing share f, fewer
    where structure helps."""
    passing = np.flatnonzero(tally.passing)
    table = make_table(vocabulary, np.empty(0, dtype=np.int64), passing)
    open_ = (tally.passes + tally.unresolved == 0)[table.shapes]
    if not open_.any():
        return []
    ends = [i for i in (vocabulary.size - 1, 0) if tally.passes[i] + tally.unresolved[i] == 0]
    passed = np.zeros(len(table.shapes), dtype=bool)
    passed[table.place[passing]] = True
    chosen: list[int] = ends[:count]
    for i in chosen:
        open_[table.place[i]] = False
        passed[table.place[i]] = True
    while len(chosen) < count and open_.any():
        column = _best(surviving_mass(table, passed), open_, generator)
        open_[column] = False
        passed[column] = True
        chosen.append(int(table.shapes[column]))
    return chosen


def surviving_mass(table: Table, passed: NDArray[np.bool_]) -> Floats:
    """For each shape of the table the prior weight of the rules that fail there and at none of the `passed` shapes."""
    alive = ~table.bits[:, passed].any(axis=1)
    mass = np.where(alive, table.weights, 0.0) @ table.bits
    simple = np.flatnonzero(table.simple)[:PAIR_LITERALS]
    bits = table.bits[simple].astype(np.float32)
    together = bits[:, passed] @ bits[:, passed].T
    pairs = np.where(together < 0.5, np.outer(table.weights[simple], table.weights[simple]), 0.0).astype(np.float32)
    return np.asarray((1 - MASS_PAIRS) * mass + MASS_PAIRS * ((pairs @ bits) * bits).sum(axis=0))


def _best(mass: Floats, open_: NDArray[np.bool_], generator: np.random.Generator) -> int:
    usable = np.where(open_, mass, -1.0)
    return int(generator.choice(np.flatnonzero(usable >= usable.max() * 0.98)))
