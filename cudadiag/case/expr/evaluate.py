"""The value of an expression for one shape, with Python's semantics and bounds against blow-up."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from cudadiag.case.expr.functions import suggestion
from cudadiag.case.expr.tree import (
    Binary,
    Call,
    Compare,
    ExpressionError,
    Group,
    Literal,
    Logic,
    Name,
    Node,
    Unary,
)

MAX_BITS = 1 << 16
"""Size of the largest integer an expression may make."""

Value = Any  # int, float, str, bool, or a tuple of them


class _Wrong(Exception):
    """A value that an operation cannot take; the node's position is added where it is caught."""


def evaluate_tree(node: Node, values: Mapping[str, Value], text: str) -> Value:
    """The value of `node`. Raises ExpressionError at the operation that failed."""
    match node:
        case Literal(value=value):
            return value
        case Name(name=name):
            return _lookup(node, values, text)
        case Group(items=items):
            return tuple(evaluate_tree(item, values, text) for item in items)
        case Logic(op=op, operands=operands):
            return _logic(op, operands, values, text)
        case Compare():
            return _chain(node, values, text)
        case Unary(op=op, operand=operand):
            return _guarded(_UNARY[op], (evaluate_tree(operand, values, text),), node.at, text)
        case Binary(op=op, left=left, right=right):
            pair = (evaluate_tree(left, values, text), evaluate_tree(right, values, text))
            return _guarded(_BINARY[op], pair, node.at, text)
        case Call(function=name, arguments=arguments):
            given = tuple(evaluate_tree(argument, values, text) for argument in arguments)
            return _guarded(_CALLS[name], given, node.at, text)


def _lookup(node: Name, values: Mapping[str, Value], text: str) -> Value:
    try:
        return values[node.name]
    except KeyError:
        raise unknown_name(node, values, text) from None


def unknown_name(node: Name, known: Mapping[str, Any], text: str) -> ExpressionError:
    """The error for a name that stands for nothing."""
    near = suggestion(node.name, known)
    listed = "" if near or not known else "; known: " + ", ".join(sorted(known)[:12])
    return ExpressionError(f"unknown name {node.name!r}{near}{listed}", text, node.at)


def _logic(op: str, operands: tuple[Node, ...], values: Mapping[str, Value], text: str) -> Value:
    value: Value = None
    for operand in operands:
        value = evaluate_tree(operand, values, text)
        if bool(value) is (op == "or"):
            return value
    return value


def _chain(node: Compare, values: Mapping[str, Value], text: str) -> bool:
    left = evaluate_tree(node.first, values, text)
    for op, operand, at in node.rest:
        right = evaluate_tree(operand, values, text)
        if not _guarded(_COMPARE[op], (left, right), at, text):
            return False
        left = right
    return True


def _guarded(function: Callable[..., Value], given: tuple[Value, ...], at: int, text: str) -> Value:
    try:
        return function(*given)
    except _Wrong as error:
        message = str(error)
    except ZeroDivisionError:
        message = "division by zero"
    except OverflowError:
        message = "the result is too large for a float"
    raise ExpressionError(message, text, at)


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, tuple):
        return "a list"
    return f"the number {value}" if isinstance(value, float) or value.bit_length() <= 64 else "a huge number"


def _numbers(*values: Value) -> None:
    for value in values:
        if not isinstance(value, (int, float)):
            raise _Wrong(f"needs a number, got {_kind(value)}")


def _integers(*values: Value) -> None:
    for value in values:
        if not isinstance(value, int):
            raise _Wrong(f"needs an integer, got {_kind(value)}")


def _bounded(bits: int) -> None:
    if bits > MAX_BITS:
        raise _Wrong(f"the result would have about {bits} bits; the limit is {MAX_BITS}")


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def checked(left: Value, right: Value) -> Value:
        _numbers(left, right)
        return function(left, right)

    return checked


def _bitwise(function: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def checked(left: Value, right: Value) -> Value:
        _integers(left, right)
        return function(left, right)

    return checked


def _times(left: Value, right: Value) -> Value:
    _numbers(left, right)
    if isinstance(left, int) and isinstance(right, int):
        _bounded(left.bit_length() + right.bit_length())
    return left * right


def _power(left: Value, right: Value) -> Value:
    _numbers(left, right)
    if isinstance(left, int) and isinstance(right, int) and right > 0 and abs(left) > 1:
        _bounded(left.bit_length() * right)
    result = left**right
    if isinstance(result, complex):
        raise _Wrong("a negative number to a fractional power is not a real number")
    return result


def _shift_left(left: Value, right: Value) -> Value:
    _shift_count(left, right)
    if left:
        _bounded(left.bit_length() + right)
    return left << right if left else 0


def _shift_right(left: Value, right: Value) -> Value:
    _shift_count(left, right)
    return left >> min(right, MAX_BITS + 1)


def _shift_count(left: Value, right: Value) -> None:
    _integers(left, right)
    if right < 0:
        raise _Wrong(f"a shift by {right}")


def _ordered(function: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def checked(left: Value, right: Value) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return function(left, right)
        _numbers(left, right)
        return function(left, right)

    return checked


def _pick(function: Callable[..., Any]) -> Callable[..., Value]:
    def checked(*given: Value) -> Value:
        items = given[0] if len(given) == 1 and isinstance(given[0], tuple) else given
        if not items:
            raise _Wrong("the smallest or largest of nothing")
        _numbers(*items)
        return function(items)

    return checked


def _absolute(value: Value) -> Value:
    _numbers(value)
    return abs(value)


def _ceil_div(left: Value, right: Value) -> Value:
    _integers(left, right)
    return -(-left // right)


def next_pow2(value: Value) -> int:
    """The smallest power of two that is at least `value`; 1 for everything up to 1."""
    _integers(value)
    return 1 if value <= 1 else 1 << (int(value) - 1).bit_length()


def _log2(value: Value) -> float:
    _numbers(value)
    if not value > 0:
        raise _Wrong(f"log2 needs a number above 0, got {value}")
    return math.log2(value)


def _sign(function: Callable[[Any], Any]) -> Callable[[Value], Value]:
    def checked(value: Value) -> Value:
        _numbers(value)
        return function(value)

    return checked


def _invert(value: Value) -> Value:
    _integers(value)
    return ~int(value)


_UNARY: dict[str, Callable[[Value], Value]] = {
    "-": _sign(operator.neg),
    "+": _sign(operator.pos),
    "~": _invert,
    "not": operator.not_,
}
_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _times,
    "/": _arithmetic(operator.truediv),
    "//": _arithmetic(operator.floordiv),
    "%": _arithmetic(operator.mod),
    "**": _power,
    "<<": _shift_left,
    ">>": _shift_right,
    "&": _bitwise(operator.and_),
    "|": _bitwise(operator.or_),
    "^": _bitwise(operator.xor),
}
_COMPARE: dict[str, Callable[[Value, Value], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}
_CALLS: dict[str, Callable[..., Value]] = {
    "min": _pick(min),
    "max": _pick(max),
    "abs": _absolute,
    "ceil_div": _ceil_div,
    "next_pow2": next_pow2,
    "log2": _log2,
}
