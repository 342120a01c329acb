"""An expression over whole columns at once: numpy's int64 where it is provably exact, else row by row.

A sweep has up to a million shapes, and every derived quantity and condition is evaluated for each. Machine integers
wrap silently where Python's do not, so an operation is done on arrays only when bounds of its operands show that its
result fits; otherwise the whole expression is evaluated for each row (each distinct combination of inputs once).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cudadiag.case.expr import Expression
from cudadiag.case.expr.evaluate import evaluate_tree, next_pow2
from cudadiag.case.expr.tree import Binary, Call, Compare, ExpressionError, Group, Literal, Logic, Name, Node, Unary

Array = npt.NDArray[Any]
Column = Array | list[Any]
"""One value per shape: an int64, float64 or bool array, or a list of whatever Python values."""

_INT64 = (-(1 << 63), (1 << 63) - 1)
_EXACT_REAL = 1 << 53


class RowError(Exception):
    """An expression failed at one row, the first in order at which it fails."""

    def __init__(self, row: int, error: ExpressionError) -> None:
        super().__init__(str(error))
        self.row = row
        self.error = error


class _NotExact(Exception):
    """Arrays cannot do this exactly; rows can."""


def as_column(values: Sequence[Any]) -> Column:
    """The narrowest column that holds the values exactly, type for type."""
    kinds = {type(value) for value in values}
    if kinds == {int} and all(_INT64[0] <= value <= _INT64[1] for value in values):
        return np.array(values, dtype=np.int64)
    if kinds == {float}:
        return np.array(values, dtype=np.float64)
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    return list(values)


def column(expression: Expression, inputs: Mapping[str, Column], length: int) -> Column:
    """The value of an expression at each of `length` rows. `inputs` holds its names. Raises RowError."""
    try:
        return np.broadcast_to(_vector(expression.tree, inputs), (length,)).copy()
    except _NotExact:
        return as_column(by_rows(expression, inputs, length))


def by_rows(expression: Expression, inputs: Mapping[str, Column], length: int) -> list[Any]:
    """The same, evaluated for each row; equal inputs are evaluated once. Raises RowError."""
    names = sorted(expression.names)
    rows = zip(*(_python(inputs[name]) for name in names), strict=True) if names else [()] * length
    known: dict[Any, Any] = {}
    values: list[Any] = []
    for index, row in enumerate(rows):
        key = (row, tuple(map(type, row)))  # 1, 1.0 and true are equal as keys, but not the same value
        if key not in known:
            try:
                known[key] = evaluate_tree(expression.tree, dict(zip(names, row, strict=True)), expression.text)
            except ExpressionError as error:
                raise RowError(index, error) from None
        values.append(known[key])
    return values


def _python(values: Column) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _vector(node: Node, inputs: Mapping[str, Column]) -> Array:
    """The array of a node. Raises _NotExact where it might differ from the rows in the least."""
    match node:
        case Literal(value=value):
            return _leaf(as_column([value]))
        case Name(name=name):
            return _leaf(inputs[name])
        case Unary(op=op, operand=operand):
            return _unary(op, _vector(operand, inputs))
        case Binary(op=op, left=left, right=right):
            return _BINARY[op](_vector(left, inputs), _vector(right, inputs))
        case Logic(op=op, operands=operands):
            return _logic(op, [_vector(operand, inputs) for operand in operands])
        case Compare():
            return _chain(node, inputs)
        case Call(function=function, arguments=arguments):
            if len(arguments) == 1 and isinstance(arguments[0], Group):
                arguments = arguments[0].items
            return _call(function, [_vector(argument, inputs) for argument in arguments])
    raise _NotExact


def _leaf(values: Column) -> Array:
    if isinstance(values, np.ndarray) and values.size:
        return values
    raise _NotExact


def _bounds(array: Array) -> tuple[int, int]:
    return int(array.min()), int(array.max())


def _whole(array: Array) -> Array:
    """The array as int64: true and false count as 1 and 0."""
    if array.dtype.kind == "f":
        raise _NotExact
    return array if array.dtype == np.int64 else array.astype(np.int64)


def _fits(*results: int) -> None:
    if not all(_INT64[0] <= result <= _INT64[1] for result in results):
        raise _NotExact


def _reals(*arrays: Array) -> tuple[Array, ...]:
    """The arrays as float64, where no integer among them is too large for it."""
    for array in arrays:
        if array.dtype.kind != "f" and max(map(abs, _bounds(_whole(array)))) > _EXACT_REAL:
            raise _NotExact
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise _NotExact
    return tuple(array.astype(np.float64) for array in arrays)


def _corners(function: Callable[[int, int], int], left: Array, right: Array) -> None:
    """A function that is monotone in each operand has its extremes at the corners."""
    _fits(*(function(a, b) for a in _bounds(left) for b in _bounds(right)))


def _ring(function: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    """+ - and *."""

    def apply(left: Array, right: Array) -> Array:
        if "f" in (left.dtype.kind, right.dtype.kind):
            with np.errstate(over="ignore"):
                return np.asarray(function(*_reals(left, right)))
        left, right = _whole(left), _whole(right)
        _corners(function, left, right)
        return np.asarray(function(left, right))

    return apply


def _divide(left: Array, right: Array) -> Array:
    left, right = _reals(left, right)
    if (right == 0).any():
        raise _NotExact
    with np.errstate(over="ignore"):
        return np.asarray(left / right)


def _divisor(left: Array, right: Array) -> tuple[Array, Array]:
    """Whole operands of // and %, no division by zero and none of -2^63 by -1."""
    left, right = _whole(left), _whole(right)
    if (right == 0).any() or _bounds(left)[0] == _INT64[0]:
        raise _NotExact
    return left, right


def _floor_divide(left: Array, right: Array) -> Array:
    return np.asarray(np.floor_divide(*_divisor(left, right)))


def _remainder(left: Array, right: Array) -> Array:
    return np.asarray(np.remainder(*_divisor(left, right)))


def _power(left: Array, right: Array) -> Array:
    left, right = _whole(left), _whole(right)
    largest, (least, most) = max(map(abs, _bounds(left))), _bounds(right)
    if least < 0 or most > 63:
        raise _NotExact
    _fits(largest**most)
    return np.asarray(np.power(left, right))


def _shift_left(left: Array, right: Array) -> Array:
    left, right = _whole(left), _whole(right)
    least, most = _bounds(right)
    if least < 0 or most > 62:
        raise _NotExact
    _fits(*(bound << most for bound in _bounds(left)))
    return np.asarray(np.left_shift(left, right))


def _shift_right(left: Array, right: Array) -> Array:
    left, right = _whole(left), _whole(right)
    if _bounds(right)[0] < 0:
        raise _NotExact
    return np.asarray(np.right_shift(left, np.minimum(right, 63)))


def _bits(function: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    def apply(left: Array, right: Array) -> Array:
        if left.dtype.kind == right.dtype.kind == "b":
            return np.asarray(function(left, right))
        return np.asarray(function(_whole(left), _whole(right)))

    return apply


def _unary(op: str, array: Array) -> Array:
    if op == "not":
        return np.logical_not(array)
    if array.dtype.kind == "f" and op != "~":
        return -array if op == "-" else array
    array = _whole(array)
    if op == "-":
        _fits(-_bounds(array)[0])
        return -array
    return ~array if op == "~" else array


def _logic(op: str, arrays: list[Array]) -> Array:
    """`and` and `or` give one of their operands, as Python's do; of one type, or the column would have two."""
    if len({array.dtype for array in arrays}) > 1:
        raise _NotExact
    value = arrays[0]
    for array in arrays[1:]:
        value = np.where(value, value, array) if op == "or" else np.where(value, array, value)
    return value


def _chain(node: Compare, inputs: Mapping[str, Column]) -> Array:
    left = _vector(node.first, inputs)
    result: Array = np.array([True])
    for op, operand, _ in node.rest:
        if op in ("in", "not in"):
            result = result & _member(op, left, operand, inputs)
            continue
        right = _vector(operand, inputs)
        result = result & _compare(op, left, right)
        left = right
    return result


def _member(op: str, left: Array, group: Node, inputs: Mapping[str, Column]) -> Array:
    found: Array = np.array([False])
    for item in group.items if isinstance(group, Group) else ():
        found = found | _compare("==", left, _vector(item, inputs))
    return found if op == "in" else np.logical_not(found)


def _compare(op: str, left: Array, right: Array) -> Array:
    if "f" in (left.dtype.kind, right.dtype.kind):
        left, right = _reals(left, right)
    return np.asarray(_COMPARE[op](left, right))


def _call(function: str, arrays: list[Array]) -> Array:
    if function in ("min", "max"):
        if len({array.dtype for array in arrays}) > 1 or arrays[0].dtype.kind == "b":
            raise _NotExact
        return _reduce(np.minimum if function == "min" else np.maximum, arrays)
    if function == "abs" and arrays[0].dtype.kind != "f":
        _fits(-_bounds(_whole(arrays[0]))[0])
        return np.abs(_whole(arrays[0]))
    if function == "ceil_div":
        return -_floor_divide(_unary("-", arrays[0]), arrays[1])
    if function == "next_pow2":
        return _next_pow2(_whole(arrays[0]))
    raise _NotExact


def _reduce(function: Callable[[Any, Any], Any], arrays: list[Array]) -> Array:
    if arrays[0].dtype.kind == "f":
        arrays = list(_reals(*arrays))
    value = arrays[0]
    for array in arrays[1:]:
        value = np.asarray(function(value, array))
    return value


def _next_pow2(array: Array) -> Array:
    distinct, inverse = np.unique(array, return_inverse=True)
    powers = [next_pow2(value) for value in distinct.tolist()]
    _fits(*powers)
    return np.array(powers, dtype=np.int64)[inverse.reshape(array.shape)]


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "+": _ring(operator.add),
    "-": _ring(operator.sub),
    "*": _ring(operator.mul),
    "/": _divide,
    "//": _floor_divide,
    "%": _remainder,
    "**": _power,
    "<<": _shift_left,
    ">>": _shift_right,
    "&": _bits(operator.and_),
    "|": _bits(operator.or_),
    "^": _bits(operator.xor),
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
