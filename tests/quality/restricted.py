"""Evaluates the `fails` expressions of a benchmark file: a Python expression, walked by hand over an allowed part of
the grammar.

Only for the benchmark, whose conditions use a little more than the case language (`any(... for ...)`, `in`).
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Environment = Mapping[str, Any]
LARGEST_BITS = 4096


class Refused(Exception):
    """The expression uses something that is not allowed, or cannot be evaluated; the message says what and where."""


def next_pow2(value: int) -> int:
    return 1 if value <= 1 else 1 << (value - 1).bit_length()


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "next_pow2": next_pow2,
    "ceil_div": ceil_div,
    "log2": math.log2,
    "gcd": math.gcd,
    **{f.__name__: f for f in (abs, all, any, bool, int, len, max, min, set, sorted, sum)},
}
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


class Condition:
    """One expression, parsed once. `names` are the parameters (and process states) it speaks of."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError) as error:
            raise Refused(f"cannot read {text!r}: {error}") from error
        bound = {n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        used = {n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name)}
        self.names = used - bound - set(FUNCTIONS)

    def __call__(self, environment: Environment) -> bool:
        return bool(self.value(environment))

    def value(self, environment: Environment) -> Any:
        """What the expression comes to. Raises Refused where it cannot be evaluated."""
        try:
            return _value(self._tree, environment)
        except Refused:
            raise
        except (ArithmeticError, TypeError, ValueError, LookupError, RecursionError) as error:
            raise Refused(f"{self.text!r} at {dict(environment)}: {error}") from error


def _value(node: ast.expr, env: Environment) -> Any:
    match node:
        case ast.Constant(value=value) if isinstance(value, int | float | str | bool):
            return value
        case ast.Name(id=name):
            if name not in env:
                raise Refused(f"unknown name {name!r}")
            return env[name]
        case ast.BoolOp(op=op, values=values):
            return _bool_op(isinstance(op, ast.And), values, env)
        case ast.UnaryOp(op=op, operand=operand):
            return UNARY[type(op)](_value(operand, env))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _value(left, env), _value(right, env))
        case ast.Compare():
            return _compare(node, env)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, env) else orelse, env)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return tuple(_value(e, env) for e in elts)
        case ast.Set(elts=elts):
            return {_value(e, env) for e in elts}
        case ast.Subscript(value=value, slice=index):
            return _value(value, env)[_value(index, env)]
        case ast.GeneratorExp(elt=elt, generators=generators) | ast.ListComp(elt=elt, generators=generators):
            return [_value(elt, inner) for inner in _bindings(generators, env)]
        case ast.Call():
            return _call(node, env)
    raise Refused(f"{type(node).__name__} is not allowed")


def _bool_op(is_and: bool, values: list[ast.expr], env: Environment) -> Any:
    value: Any = is_and
    for part in values:
        value = _value(part, env)
        if bool(value) != is_and:
            break
    return value


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Pow | ast.LShift | ast.RShift):
        if not (isinstance(left, int) and isinstance(right, int) and 0 <= right <= LARGEST_BITS):
            raise Refused(f"powers and shifts take integers up to {LARGEST_BITS}")
        if isinstance(op, ast.Pow):
            if left.bit_length() * right > LARGEST_BITS:
                raise Refused("the power is too large")
            return left**right
        return left << right if isinstance(op, ast.LShift) else left >> right
    if type(op) not in BINARY or isinstance(left, str) or isinstance(right, str):
        raise Refused(f"{type(op).__name__} is not allowed here")
    return BINARY[type(op)](left, right)


def _compare(node: ast.Compare, env: Environment) -> bool:
    left = _value(node.left, env)
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = _value(part, env)
        if type(op) not in COMPARE:
            raise Refused(f"{type(op).__name__} is not allowed")
        if not COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _bindings(generators: list[ast.comprehension], env: Environment) -> Iterator[Environment]:
    if not generators:
        yield env
        return
    first, *rest = generators
    if not isinstance(first.target, ast.Name):
        raise Refused("a comprehension may bind one name only")
    for item in _value(first.iter, env):
        inner = {**env, first.target.id: item}
        if all(_value(test, inner) for test in first.ifs):
            yield from _bindings(rest, inner)


def _call(node: ast.Call, env: Environment) -> Any:
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
        raise Refused(f"only {', '.join(sorted(FUNCTIONS))} may be called")
    return FUNCTIONS[node.func.id](*(_value(a, env) for a in node.args))
