"""The sweep of a case: every combination of its axes that `where:` allows, with the derived quantities as columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from cudadiag.case.axes import MAX_VALUES, format_value
from cudadiag.case.expr import Expression, ExpressionError
from cudadiag.case.expr.tree import Binary, Literal, Node
from cudadiag.case.targets import ITEMSIZE, Formula, Kernel, KernelTarget, KeyPath
from cudadiag.model import Axis, Scalar, Sweep

if TYPE_CHECKING:
    from cudadiag.case.case import Case

MAX_SHAPES = MAX_VALUES
_FEW = 512
"""Up to so many shapes plain Python is quicker than importing numpy."""


def build_sweep(case: Case) -> Sweep:
    """The legal shapes in sweep order. Raises CaseError: no shape, too many, or an expression that fails at one."""
    _refuse_too_many(case)
    table = _Table(case, _grid(case.axes))
    for condition in case.where:
        table = table.filtered(condition)
    if not table.length:
        raise case.error(("where",), "no shape is left, loosen a condition")
    shapes = tuple(zip(*(_python(table.columns[axis.name]) for axis in case.axes), strict=True)) if case.axes else ((),)
    return Sweep(case.axes, shapes, table.derived(), {n: v for n, v in constants(case).items() if _is_number(v)})


def constants(case: Case) -> dict[str, Scalar]:
    """What has a name in the case and one value at every shape: fixed parameters, and of the macros and `derive:`
    the numbers that depend on no axis. One that cannot be evaluated is left out: where it is used, that is an error."""
    known: dict[str, Scalar] = dict(case.fixed)
    for name, formula in case.named.items():
        if formula.names <= known.keys():
            try:
                value = formula.value(known)
            except ExpressionError:
                continue
            if isinstance(value, int | float):
                known[name] = value
    return known


def quantity_names(case: Case) -> list[str]:
    """Every name that a condition may use: parameters, macros that are numbers, derived quantities, buffers, launch."""
    return [*(axis.name for axis in case.axes), *case.fixed, *case.named, *quantities(case)]


def quantities(case: Case) -> dict[str, Formula]:
    """The quantities a case has without naming them: `scores.elements`, `scores.bytes`, `grid.x`, `block`, `shared`.

    With several kernels those of a launch have the kernel's name in front. A parameter of the same name hides one.
    """
    if not isinstance(case.target, KernelTarget):
        return {}
    found: dict[str, Formula] = {}
    for buffer in case.target.buffers:
        found[f"{buffer.name}.elements"] = _product(buffer.shape, (*buffer.path, "shape"))
        size = Formula(_constant(ITEMSIZE[buffer.dtype]), buffer.path)
        found[f"{buffer.name}.bytes"] = _product((*buffer.shape, size), (*buffer.path, "shape"))
    for index, kernel in enumerate(case.target.kernels):
        prefix = "" if len(case.target.kernels) == 1 else f"{_launch_name(case.target, index)}."
        found |= {f"{prefix}{name}": formula for name, formula in _launch(kernel)}
    taken = {axis.name for axis in case.axes} | case.fixed.keys() | case.named.keys()
    return {name: formula for name, formula in found.items() if name not in taken}


def _launch_name(target: KernelTarget, index: int) -> str:
    entry = target.kernels[index].entry
    earlier = sum(kernel.entry == entry for kernel in target.kernels[:index])
    return f"{entry}_{earlier + 1}" if earlier else entry


def _launch(kernel: Kernel) -> Iterable[tuple[str, Formula]]:
    for word, extents in (("grid", kernel.grid), ("block", kernel.block)):
        yield from ((f"{word}.{letter}", formula) for letter, formula in zip("xyz", extents, strict=False))
        yield word, _product(extents, extents[0].path)
    if kernel.shared is not None:
        yield "shared", kernel.shared


def _constant(value: int) -> Expression:
    return Expression(str(value), Literal(value, 0))


def _product(formulas: Iterable[Formula], path: KeyPath) -> Formula:
    """The product of some formulas as one; 1 for none."""
    parts = [formula.content for formula in formulas]
    tree: Node = Literal(1, 0)
    for index, part in enumerate(part for part in parts if isinstance(part, Expression)):
        tree = part.tree if index == 0 else Binary("*", tree, part.tree, 0)
    return Formula(Expression(" * ".join(f"({part.text})" for part in parts) or "1", tree), path)


def _refuse_too_many(case: Case) -> None:
    count = math.prod(len(axis.values) for axis in case.axes)
    if count > MAX_SHAPES:
        longest = max(case.axes, key=lambda axis: len(axis.values))
        sizes = " x ".join(f"{axis.name} {len(axis.values)}" for axis in case.axes)
        message = f"{count} shapes ({sizes}), the limit is {MAX_SHAPES}: shorten {longest.name}"
        raise case.error(("sweep", longest.name), message)


def _is_number(value: Scalar) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


Columns = dict[str, Any]


def _grid(axes: tuple[Axis, ...]) -> Columns:
    """One column per axis over the whole grid, the last axis fastest."""
    count = math.prod(len(axis.values) for axis in axes)
    if count <= _FEW:
        rows = list(itertools.product(*(axis.values for axis in axes)))
        return {axis.name: [row[index] for row in rows] for index, axis in enumerate(axes)}
    import numpy as np

    from cudadiag.case.expr.columns import as_column

    columns: Columns = {}
    repeat = count
    for axis in axes:
        repeat //= len(axis.values)
        index = np.arange(count) // repeat % len(axis.values)
        values = as_column(axis.values)
        columns[axis.name] = [values[i] for i in index.tolist()] if isinstance(values, list) else values[index]
    return columns


class _Table:
    """Columns over some shapes; the derived ones are computed when they are asked for."""

    def __init__(self, case: Case, columns: Columns) -> None:
        self.case = case
        self.columns = columns
        self.length = len(next(iter(columns.values()))) if columns else 1
        self.formulas: Mapping[str, Formula] = {**quantities(case), **case.named}

    def column(self, name: str) -> Any:
        if name not in self.columns:
            if name in self.case.fixed:
                self.columns[name] = _repeated(self.case.fixed[name], self.length)
            else:
                self.columns[name] = self.of(self.formulas[name])
        return self.columns[name]

    def of(self, formula: Formula) -> Any:
        """The values of a formula at every shape. Raises CaseError with the first shape at which it fails."""
        expression = formula.content
        if not isinstance(expression, Expression):
            raise TypeError("only expressions have columns")
        inputs = {name: self.column(name) for name in expression.names}
        if self.length <= _FEW:
            return self.rows(formula, expression, inputs)
        from cudadiag.case.expr.columns import RowError, column

        try:
            return column(expression, inputs, self.length)
        except RowError as error:
            raise self.failed(formula, error.row, error.error) from None

    def rows(self, formula: Formula, expression: Expression, inputs: Columns) -> list[Any]:
        values = []
        for row in range(self.length):
            try:
                values.append(expression.evaluate({name: column[row] for name, column in inputs.items()}))
            except ExpressionError as error:
                raise self.failed(formula, row, error) from None
        return values

    def failed(self, formula: Formula, row: int, error: ExpressionError) -> Exception:
        shape = " ".join(
            f"{axis.name}={format_value(_python(self.columns[axis.name])[row])}" for axis in self.case.axes
        )
        return self.case.error(formula.path, f"{error.message} at {shape}", offset=error.offset + formula.shift)

    def filtered(self, condition: Formula) -> _Table:
        """The shapes at which a condition holds. Later conditions see only these, so one may guard the next."""
        keep = [bool(value) for value in _python(self.of(condition))]
        chosen = [index for index, kept in enumerate(keep) if kept]
        take: Callable[[Any], Any] = lambda values: (  # noqa: E731
            [values[index] for index in chosen] if isinstance(values, list) else values[chosen]
        )
        table = _Table(self.case, {axis.name: take(self.columns[axis.name]) for axis in self.case.axes})
        if not self.case.axes:
            table.length = len(chosen)
        return table

    def derived(self) -> dict[str, tuple[Scalar, ...]]:
        """The columns of the sweep: what `derive:` names and what a kernel target has; numbers only, true as 1."""
        names = [*self.case.derive, *quantities(self.case)]
        columns = {name: _python(self.column(name)) for name in names}
        return {
            name: tuple(int(value) if isinstance(value, bool) else value for value in values)
            for name, values in columns.items()
            if all(isinstance(value, (int, float)) for value in values)
        }


def _repeated(value: Scalar, length: int) -> Any:
    if length <= _FEW:
        return [value] * length
    import numpy as np

    from cudadiag.case.expr.columns import as_column

    one = as_column([value])
    return one * length if isinstance(one, list) else np.repeat(one, length)


def _python(values: Any) -> list[Any]:
    return values if isinstance(values, list) else list(values.tolist())
