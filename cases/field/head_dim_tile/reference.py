"""Reference and table of head_dim_tile."""

import numpy as np

NONE = 1 << 28  # units of 64 bytes: 16 GiB away


def unit_table(shape, units):
    """Fill: 0, 1, 2, ... for the units there are, then the marker."""
    table = np.full(shape, NONE, np.int32)
    table[:units] = np.arange(units)
    return table


def row_norms(x):
    """Squared norms of the rows."""
    return (x.astype(np.float64) ** 2).sum(-1).astype(np.float32)
