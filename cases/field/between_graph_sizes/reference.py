"""Reference and slots of between_graph_sizes."""

import numpy as np

STALE = 1 << 27  # rows of 256 bytes: 32 GiB away


def slots(shape, batch):
    """Fill: every real row has a slot of its own; the others still have what an earlier step left."""
    table = np.full(shape, STALE, np.int32)
    table[:batch] = np.random.default_rng(batch).permutation(64)[:batch]
    return table


def write_rows(x, cache, batch):
    """The cache after the real rows were written."""
    cache = cache.copy()
    cache[slots((32,), batch)[:batch]] = x[:batch]
    return cache
