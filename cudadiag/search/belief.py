"""What is believed about a sweep: one rule for each outcome seen, and which outcome wins where two rules hold.

A shape that would both hang and fault shows only one of them, so the rules are learnt under each order of precedence:
the rule of an outcome must hold where that outcome was seen, must not where a shape passes or shows one of lower
precedence, and is free where one of higher precedence was seen. Orders are weighed by how well rules fit under them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.space import Posterior, posterior
from cudadiag.search.table import Indices, Table, make_table
from cudadiag.search.tally import Label, Tally
from cudadiag.search.target import NEVER, Floats, Noise, Target
from cudadiag.search.vocabulary import Vocabulary

MOST_ORDERED = 3
"""Outcomes whose orders are all tried; with more, each outcome's rule must say no where any other was seen."""
PASS = -1
"""In an array of labels: the shape passes."""


@dataclass(frozen=True)
class View:
    """The rules under one order of precedence (positions in `Belief.labels`), with the order's share of the weight."""

    order: tuple[int, ...]
    posteriors: tuple[Posterior, ...]
    share: float


@dataclass(frozen=True)
class Belief:
    """All views that fit, likeliest first; none where no rule of the vocabulary fits some outcome."""

    table: Table
    labels: tuple[Label, ...]
    views: tuple[View, ...]
    noise: Noise

    @property
    def empty(self) -> bool:
        return not self.views

    @cached_property
    def chances(self) -> Floats:
        """Share of the belief that expects each label at each shape of the table: shape (labels, table shapes)."""
        total = np.zeros((len(self.labels), len(self.table.shapes)))
        for view in self.views:
            free = np.full(len(self.table.shapes), view.share)
            for label, fitted in zip(view.order, view.posteriors, strict=True):
                votes = np.clip(fitted.votes, 0.0, 1.0)
                total[label] += free * votes
                free = free * (1 - votes)
        return total

    def expected(self, view: View | None = None) -> NDArray[np.int64]:
        """The label that the likeliest rules give each shape of the table (PASS or a position in `labels`)."""
        chosen = view or self.views[0]
        result = np.full(len(self.table.shapes), PASS, dtype=np.int64)
        for label, fitted in reversed(list(zip(chosen.order, chosen.posteriors, strict=True))):
            result[fitted.bits[0]] = label
        return result

    def certainty(self) -> float:
        """Share of the belief that expects exactly what the likeliest rules do, for every shape of the table."""
        best = self.expected()
        return sum(view.share * _agreement(view) for view in self.views if np.array_equal(self.expected(view), best))


def _agreement(view: View) -> float:
    """Share of a view's rules that make its prediction: what a rule says where one of higher precedence holds is
    never seen."""
    agreement = 1.0
    free = np.ones(view.posteriors[0].bits.shape[1], dtype=bool)
    for fitted in view.posteriors:
        same = (fitted.bits[:, free] == fitted.bits[0, free]).all(axis=1)
        agreement *= float(fitted.shares[same].sum())
        free &= ~fitted.bits[0]
    return agreement


def believe(vocabulary: Vocabulary, tally: Tally, noise: Noise | None = None) -> Belief:
    """Fit rules to the evidence, under the noise that the evidence shows, or under another one."""
    labels = tuple(sorted(set(tally.labels.values()), key=str))
    number = {label: i for i, label in enumerate(labels)}
    failing = np.flatnonzero(tally.failing)
    shown = np.array([number[tally.labels[i]] for i in failing.tolist()], dtype=np.int64)
    passing = np.flatnonzero(tally.passing)
    table = make_table(vocabulary, failing, passing)
    assumed = noise or Noise.measured(tally)
    fit = _Fit(table, tally, assumed, failing, shown, passing)
    views = [v for v in (fit.view(order) for order in _orders(len(labels))) if v is not None]
    if not views:
        return Belief(table, labels, (), assumed)
    evidence = np.array([sum(p.log_evidence for p in ps) for _, ps in views])
    shares = np.exp(evidence - evidence.max())
    shares /= shares.sum()
    ranked = sorted(range(len(views)), key=lambda i: (-shares[i], views[i][0]))
    return Belief(table, labels, tuple(View(*views[i], float(shares[i])) for i in ranked), assumed)


def _orders(count: int) -> Sequence[tuple[int, ...]]:
    return list(permutations(range(count))) if count <= MOST_ORDERED else [tuple(range(count))]


class _Fit:
    """Fits each outcome's rule once for each set of outcomes below it."""

    def __init__(
        self, table: Table, tally: Tally, noise: Noise, failing: Indices, shown: Indices, passing: Indices
    ) -> None:
        self.table, self.failing, self.shown, self.passing, self.noise = table, failing, shown, passing, noise
        self.runs = tally.passes[passing].astype(float)
        self.strict = len(set(shown.tolist())) > MOST_ORDERED
        self.known: dict[tuple[int, frozenset[int]], Posterior] = {}

    def view(self, order: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[Posterior, ...]] | None:
        fitted = []
        for i, label in enumerate(order):
            below = frozenset(order) - {label} if self.strict else frozenset(order[i + 1 :])
            found = self._posterior(label, below)
            if found.empty:
                return None
            fitted.append(found)
        return order, tuple(fitted)

    def _posterior(self, label: int, below: frozenset[int]) -> Posterior:
        key = (label, below)
        if key not in self.known:
            lower = self.failing[np.isin(self.shown, list(below))]
            others = np.concatenate([self.passing, lower])
            runs = np.concatenate([self.runs, np.full(len(lower), NEVER)])
            target = Target(self.failing[self.shown == label], others, runs, self.noise)
            self.known[key] = posterior(self.table, target)
        return self.known[key]
