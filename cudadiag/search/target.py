"""What a rule has to explain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cudadiag.search.table import Indices

Floats = NDArray[np.float64]

IMPOSSIBLE = -1e6
"""Log weight of what cannot be: a deterministic rule that names a passing shape."""
FITS = IMPOSSIBLE / 2


@dataclass(frozen=True)
class Target:
    """What a rule must explain: it holds at every shape of `fails`; holding at `others[k]` costs `penalty[k]` (<=
    0)."""

    fails: Indices
    others: Indices
    penalty: Floats
