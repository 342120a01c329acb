"""Which shapes of a sweep a condition or some values of parameters mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cudadiag.case import Case
from cudadiag.case.expr import Expression, ExpressionError
from cudadiag.gate.baseline import Entry
from cudadiag.model import Scalar, Sweep


@dataclass(frozen=True)
class Covered:
    """The shapes (indices in sweep order) that an entry means; `why_none` where there is none."""

    indices: tuple[int, ...] = ()
    why_none: str | None = None


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
    holds = truth(condition, sweep, fixed)
    return tuple(i for i in range(len(sweep)) if holds(i))


def truth(condition: Expression, sweep: Sweep, fixed: Mapping[str, Scalar]) -> Callable[[int], bool]:
    """Whether a condition holds at a shape."""
    columns = {name: sweep.derived[name] for name in condition.names if name in sweep.derived}

    def holds(index: int) -> bool:
        values: dict[str, Any] = {**fixed, **{name: column[index] for name, column in columns.items()}}
        return bool(condition.evaluate({**values, **sweep.shape(index)}))

    return holds


def constants(case: Case) -> dict[str, Scalar]:
    """What a rule may use besides parameters and derived quantities: fixed parameters, and macros that are numbers and
    depend on no parameter of the sweep."""
    known: dict[str, Scalar] = dict(case.fixed)
    for name, formula in case.named.items():
        if formula.names <= known.keys():
            value = case.evaluate(formula, known)
            if isinstance(value, int | float):
                known[name] = value
    return known


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

    def of(self, index: int) -> list[int]:
        shape = self._sweep.shapes[index]
        found = []
        for j, axis in enumerate(self._sweep.axes):
            at = next(i for i, value in enumerate(axis.values) if _key(value) == _key(shape[j]))
            for values in (axis.values[:at][::-1], axis.values[at + 1 :]):
                found += self._first_legal(shape, j, values)
        return found

    def _first_legal(self, shape: tuple[Scalar, ...], j: int, values: Sequence[Scalar]) -> list[int]:
        for value in values:
            moved = tuple(map(_key, (*shape[:j], value, *shape[j + 1 :])))
            if moved in self._at:
                return [self._at[moved]]
        return []


def _key(value: Scalar) -> tuple[str, Scalar]:
    return type(value).__name__, value
