"""What the kernel must compute. Called with the inputs as numpy arrays and the parameters by name."""

from typing import Any


def row_sums(x: Any, scale: float) -> Any:
    return scale * x.sum(axis=1, dtype="float64")
