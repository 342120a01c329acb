"""Which pairs of literals fit, and which evidence none fits, remembered from one step to the next.

With more evidence fewer pairs fit, so those that fitted before are filtered instead of looked for again. A memo only:
the pairs, and their order, are the same as those found afresh (tested)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.vocabulary import Bits

KEPT = 8
Pairs = NDArray[np.int32]


@dataclass
class SurvivorMemo:
    """The last few lists of pairs, by (join, failing shapes, other shapes)."""

    lists: OrderedDict[tuple[str, frozenset[int], frozenset[int]], Pairs] = field(default_factory=OrderedDict)

    def nearest(
        self, join: str, fails: frozenset[int], others: frozenset[int]
    ) -> tuple[Pairs, frozenset[int], frozenset[int]] | None:
        """The list known for the most of this evidence, with the failing and other shapes it has not seen."""
        best = None
        for key, pairs in self.lists.items():
            if key[0] == join and key[1] <= fails and key[2] <= others:
                left = len(fails) - len(key[1]) + len(others) - len(key[2])
                if best is None or left < best[0]:
                    best = (left, pairs, fails - key[1], others - key[2])
        return None if best is None else best[1:]

    def keep(self, join: str, fails: frozenset[int], others: frozenset[int], pairs: Pairs) -> None:
        self.lists[(join, fails, others)] = pairs
        self.lists.move_to_end((join, fails, others))
        while len(self.lists) > KEPT:
            self.lists.popitem(last=False)


@dataclass
class RefutedMemo:
    """Evidence that no rule of the vocabulary fits; with more of it none fits either."""

    known: list[tuple[frozenset[int], frozenset[int]]] = field(default_factory=list)

    def covers(self, fails: NDArray[np.int64], others: NDArray[np.int64]) -> bool:
        all_fails, all_others = frozenset(fails.tolist()), frozenset(others.tolist())
        return any(f <= all_fails and o <= all_others for f, o in self.known)

    def add(self, fails: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        self.known = [*self.known, (frozenset(fails.tolist()), frozenset(others.tolist()))][-KEPT:]


def narrow(join: str, pairs: Pairs, bits: Bits, fails: list[int], others: list[int]) -> Pairs:
    """The pairs that hold at the columns `fails` and at none of the columns `others`."""
    for columns, wanted in ((fails, True), (others, False)):
        for column in columns:
            truth = bits[:, column]
            first, second = truth[pairs[:, 0]], truth[pairs[:, 1]]
            holds = first & second if join == "and" else first | second
            pairs = pairs[holds == wanted]
    return pairs
