"""Reference of hang_on_ragged."""

import numpy as np


def gather(nodes, width):
    """0, 1, 2, ..."""
    return np.arange(nodes * width, dtype=np.float32)
