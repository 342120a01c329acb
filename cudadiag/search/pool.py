"""The shapes that rules are compared on. Small sweeps: all. Large ones: a fixed choice, so that a step costs
milliseconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.columns import Quantity

MOST = 1536
"""Shapes of the largest sweep that is compared whole."""
CHOSEN = 768
"""Shapes chosen of a larger one; those that are run, or that rules still differ about, join them."""


def choose_pool(quantities: Sequence[Quantity], size: int) -> NDArray[np.int64]:
    """Indices, ascending: everything up to MOST shapes; beyond, the ends, the extreme of every quantity, one shape
    for each value of each axis (as far as half the pool reaches), and a fixed random rest."""
    if size <= MOST:
        return np.arange(size, dtype=np.int64)
    generator = np.random.default_rng(0)
    chosen = {0, size - 1}
    order = generator.permutation(size)
    for q in quantities:
        for extreme in (0, len(q.levels) - 1):
            hits = np.flatnonzero(q.codes == extreme)
            chosen.update(int(i) for i in (hits[0], hits[-1], generator.choice(hits)))
    axes = [q for q in quantities if not q.derived]
    for q in axes:
        _, first = np.unique(q.codes[order], return_index=True)
        share = CHOSEN // (2 * len(axes))
        step = max(1, len(first) // share)
        chosen.update(int(i) for i in order[first[::step]])
    for i in order:
        if len(chosen) >= CHOSEN:
            break
        chosen.add(int(i))
    return np.array(sorted(chosen), dtype=np.int64)
