"""What the rules say about every legal shape, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.belief import PASS, Belief, View
from cudadiag.search.expr import Expr
from cudadiag.search.table import Indices
from cudadiag.search.target import Floats

LEAST_SHARE = 0.001
"""Spellings that weigh less are not followed beyond the table."""


@dataclass(frozen=True)
class Conclusion:
    """The likeliest rules, in order of precedence, and what they predict.

    `predicted[i]` is a position in `labels` or PASS, for every legal shape; `certainty` the share of the belief that
    predicts exactly this, `certainty_first` the share that has the same first failing shape. `split` is a legal
    shape, outside the table, about which the spellings of the likeliest rules differ most (None: they do not),
    `doubt` the smaller share of them about it."""

    belief: Belief
    rules: tuple[tuple[int, Expr], ...]
    predicted: NDArray[np.int64]
    certainty: float
    certainty_first: float
    split: int | None
    doubt: float

    @property
    def first(self) -> int | None:
        hits = np.flatnonzero(self.predicted != PASS)
        return int(hits[0]) if hits.size else None

    @property
    def fingerprint(self) -> str:
        """A short name for this prediction, carried by the attacks on it."""
        return blake2b(self.predicted.astype(np.int8).tobytes(), digest_size=5).hexdigest()


def conclude(belief: Belief) -> Conclusion | None:
    """The likeliest prediction, None where no rule fits."""
    if belief.empty:
        return None
    best = belief.views[0]
    rules = tuple((label, fitted.rule) for label, fitted in zip(best.order, best.posteriors, strict=True))
    if belief.table.complete:
        predicted = np.full(belief.table.vocabulary.size, PASS, dtype=np.int64)
        predicted[belief.table.shapes] = belief.expected()
        return Conclusion(belief, rules, predicted, belief.certainty(), _certainty_first(belief, predicted), None, 0.0)
    predicted, agreement, split, doubt = _beyond_table(belief, best)
    certainty = belief.certainty() * agreement
    return Conclusion(belief, rules, predicted, certainty, certainty, split, doubt)


def _certainty_first(belief: Belief, predicted: NDArray[np.int64]) -> float:
    hits = np.flatnonzero(predicted != PASS)
    first = int(hits[0]) if hits.size else -1
    total = 0.0
    for view in belief.views:
        if len(view.posteriors) == 1:
            fitted = view.posteriors[0]
            firsts = np.where(fitted.bits.any(axis=1), fitted.bits.argmax(axis=1), -1)
            total += view.share * float(fitted.shares[firsts == first].sum())
        else:
            # Outcomes are independent in the belief: no outcome earlier, and one of them there.
            earlier = [float(p.shares @ p.bits[:, :first].any(axis=1)) if first > 0 else 0.0 for p in view.posteriors]
            total += view.share * float(np.prod([1 - e for e in earlier]))
    return min(total, 1.0)


def _beyond_table(belief: Belief, view: View) -> tuple[NDArray[np.int64], float, int | None, float]:
    """Predictions for all legal shapes where the table has only some of them; the share of spellings that agree with
    them everywhere, and the shape they differ about most."""
    size = belief.table.vocabulary.size
    predicted = np.full(size, PASS, dtype=np.int64)
    agreement, worst = 1.0, np.zeros(size)
    for label, fitted in reversed(list(zip(view.order, view.posteriors, strict=True))):
        spellings = [s for group in fitted.spellings for s in group if s.share >= LEAST_SHARE] or [
            fitted.spellings[0][0]
        ]
        vocabulary = belief.table.vocabulary
        likeliest = vocabulary.packed_truth(spellings[0].expr)
        predicted[vocabulary.unpacked(likeliest)] = label
        total = sum(s.share for s in spellings)
        against, same = np.zeros(size), 0.0  # share of the spellings that say otherwise, for each shape
        for spelling in spellings:
            differs = vocabulary.packed_truth(spelling.expr) ^ likeliest
            if differs.any():
                against[vocabulary.unpacked(differs)] += spelling.share / total
            else:
                same += spelling.share / total
        agreement *= same
        worst = np.maximum(worst, np.minimum(against, 1 - against))
    split = _most_split(belief, worst)
    return predicted, agreement, split, 0.0 if split is None else float(worst[split])


def _most_split(belief: Belief, doubt: Floats) -> int | None:
    inside: Indices = belief.table.shapes
    outside = doubt.copy()
    outside[inside] = 0.0
    most = np.flatnonzero(outside >= outside.max(initial=0.0) * 0.98)
    return int(most[len(most) // 2]) if outside.max(initial=0.0) > 1e-6 else None
