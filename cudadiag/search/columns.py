"""The sweep as numpy columns: one for each axis and each derived quantity, with what kind of values it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Scalar, Sweep
from cudadiag.search.expr import LARGEST, Column


@dataclass(frozen=True)
class Quantity:
    """An axis or a derived quantity over the legal shapes. `levels` are its distinct values, ascending where they are
    numbers, else in declared order; `codes[i]` is the position of shape i's value among them."""

    name: str
    derived: bool
    column: Column
    levels: tuple[Scalar, ...]
    codes: NDArray[np.int64]
    integer: bool
    numeric: bool


def quantities(sweep: Sweep) -> tuple[Quantity, ...]:
    """Axes in declared order, then derived quantities, without those that are the same for every legal shape."""
    found = [
        _quantity(axis.name, False, [s[j] for s in sweep.shapes], axis.values) for j, axis in enumerate(sweep.axes)
    ]
    found += [_quantity(name, True, values, values) for name, values in sweep.derived.items()]
    return tuple(q for q in found if len(q.levels) > 1)


def _quantity(name: str, derived: bool, values: Sequence[Scalar], declared: Sequence[Scalar]) -> Quantity:
    integer = all(isinstance(v, int) and not isinstance(v, bool) and abs(v) < LARGEST for v in values)
    numeric = integer or all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if integer:
        column = np.array(values, dtype=np.int64)
        found, codes = np.unique(column, return_inverse=True)
        return Quantity(name, derived, column, tuple(found.tolist()), codes.astype(np.int64), integer, numeric)
    present = set(map(_key, values))
    distinct = dict.fromkeys(_key(v) for v in declared if _key(v) in present)
    levels = tuple(sorted((v for _, v in distinct), key=float) if numeric else (v for _, v in distinct))
    position = {_key(v): i for i, v in enumerate(levels)}
    codes = np.fromiter((position[_key(v)] for v in values), dtype=np.int64, count=len(values))
    return Quantity(name, derived, as_column(values, integer, numeric), levels, codes, integer, numeric)


def _key(value: Scalar) -> tuple[bool, Scalar]:
    """True and 1 are equal to Python and different values to a case."""
    return isinstance(value, bool), value


def as_column(values: Sequence[Scalar], integer: bool, numeric: bool) -> Column:
    if integer:
        return np.array(values, dtype=np.int64)
    if numeric:
        return np.array([float(v) for v in values], dtype=np.float64)
    column = np.empty(len(values), dtype=object)
    column[:] = list(values)
    return column
