"""Which shapes of a sweep a condition or some values of parameters mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cudadiag.case.expr import Expression, ExpressionError
from cudadiag.gate.baseline import Entry
from cudadiag.model import Scalar, Sweep

FEW = 512  # shapes up to which plain Python is quicker than numpy


@dataclass(frozen=True)
class Covered:
    """The shapes (indices in sweep order) that an entry means; `why_none` where there is none."""

    indices: tuple[int, ...] = ()
    why_none: str | None = None

    @cached_property
    def inside(self) -> frozenset[int]:
        return frozenset(self.indices)


def covered(entry: Entry, sweep: Sweep, fixed: Mapping[str, Scalar]) -> Covered:
    """The shapes of an entry of the baseline. Never raises: a rule that cannot be evaluated covers none."""
    if entry.rule is not None:
        try:
            indices = where(entry.rule, sweep, fixed)
        except ExpressionError as error:
            return Covered(why_none=f"its rule does not fit the case: {error.message}")
        return Covered(indices, None if indices else "its rule holds at no shape of the sweep")
    names = {axis.name for axis in sweep.axes}
    for shape in entry.shapes:
        if unknown := sorted(set(shape) - names):
            return Covered(why_none=f"the case has no parameter {unknown[0]!r}")
    indices = tuple(i for i in range(len(sweep)) if any(agrees(sweep, i, shape) for shape in entry.shapes))
    return Covered(indices, None if indices else "none of its shapes is in the sweep")


def where(condition: Expression, sweep: Sweep, fixed: Mapping[str, Scalar]) -> tuple[int, ...]:
    """The shapes at which a condition holds. Raises ExpressionError."""
    if len(sweep) > FEW:
        return _where_columns(condition, sweep, fixed)
    holds = truth(condition, sweep, fixed)
    return tuple(i for i in range(len(sweep)) if holds(i))


def _where_columns(condition: Expression, sweep: Sweep, fixed: Mapping[str, Scalar]) -> tuple[int, ...]:
    """The same over whole columns: a second for a million shapes."""
    import numpy as np

    from cudadiag.case.expr.columns import RowError, as_column, column

    at = {axis.name: j for j, axis in enumerate(sweep.axes)}
    inputs: dict[str, Any] = {}
    for name in condition.names:
        if name in at:
            inputs[name] = as_column([shape[at[name]] for shape in sweep.shapes])
        elif name in sweep.derived:
            inputs[name] = as_column(list(sweep.derived[name]))
        elif name in fixed:
            inputs[name] = as_column([fixed[name]] * len(sweep))
    condition.check_names(inputs)
    try:
        holds = column(condition, inputs, len(sweep))
    except RowError as error:
        raise error.error from None
    return tuple(np.flatnonzero(np.asarray(holds, dtype=bool)).tolist())


def truth(condition: Expression, sweep: Sweep, fixed: Mapping[str, Scalar]) -> Callable[[int], bool]:
    """Whether a condition holds at a shape."""
    columns = {name: sweep.derived[name] for name in condition.names if name in sweep.derived}

    def holds(index: int) -> bool:
        values: dict[str, Any] = {**fixed, **{name: column[index] for name, column in columns.items()}}
        return bool(condition.evaluate({**values, **sweep.shape(index)}))

    return holds


def agrees(sweep: Sweep, index: int, values: Mapping[str, Scalar]) -> bool:
    """Whether a shape has these values; a parameter that is not named may have any."""
    shape = sweep.shape(index)
    return all(same(shape[name], value) if name in shape else False for name, value in values.items())


def same(a: Scalar, b: Scalar) -> bool:
    """Equal, and not a truth value on one side only."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


class Neighbours:
    """Shapes one step away: one axis moved to its next value at which the shape is legal."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep

    @cached_property
    def _at(self) -> dict[tuple[tuple[str, Scalar], ...], int]:
        return {tuple(map(_key, shape)): i for i, shape in enumerate(self._sweep.shapes)}

    @cached_property
    def _places(self) -> list[dict[tuple[str, Scalar], int]]:
        return [{_key(value): i for i, value in enumerate(axis.values)} for axis in self._sweep.axes]

    def of(self, index: int) -> list[int]:
        shape = self._sweep.shapes[index]
        found = []
        for j, axis in enumerate(self._sweep.axes):
            at = self._places[j][_key(shape[j])]
            for steps in (range(at - 1, -1, -1), range(at + 1, len(axis.values))):
                found += self._first_legal(shape, j, steps)
        return found

    def _first_legal(self, shape: tuple[Scalar, ...], j: int, steps: range) -> list[int]:
        own = tuple(map(_key, shape))
        for step in steps:
            moved = (*own[:j], _key(self._sweep.axes[j].values[step]), *own[j + 1 :])
            if moved in self._at:
                return [self._at[moved]]
        return []


def _key(value: Scalar) -> tuple[str, Scalar]:
    return type(value).__name__, value
