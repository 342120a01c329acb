"""Conditions as small trees: evaluated over columns of shapes, written in the case language, and said in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Scalar

Column = NDArray[Any]
"""One value per shape: int64, float64, bool or (strings, mixtures) object."""

LARGEST = 1 << 60
"""Integers saturate here: every constant that matters is far below, and the next operation cannot overflow unseen."""

_PRECEDENCE = {"or": 1, "and": 2, "in": 4, "not in": 4, "+": 5, "-": 5, "*": 6, "//": 6, "%": 6}
_COMPARE = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Name:
    """A parameter or a derived quantity."""

    name: str


@dataclass(frozen=True)
class Const:
    """A number, string or truth value; for `in` and `not in` a tuple of them. `name`: what the case calls it."""

    value: Scalar | tuple[Scalar, ...]
    name: str | None = None


@dataclass(frozen=True)
class Op:
    """`+ - * // %`, a comparison, `in`, `not in`, `and`, `or`, or a function: abs, ceil_div, next_pow2, is_pow2,
    not_pow2."""

    op: str
    args: tuple[Expr, ...]


Expr = Name | Const | Op

ALWAYS: Expr = Const(True)


def op(name: str, *args: Expr | int) -> Op:
    return Op(name, tuple(Const(a) if isinstance(a, int) else a for a in args))


@lru_cache(maxsize=65536)
def names(expr: Expr) -> frozenset[str]:
    if isinstance(expr, Name):
        return frozenset({expr.name})
    if isinstance(expr, Op):
        return frozenset().union(*(names(a) for a in expr.args))
    return frozenset()


def says_a_constant_by_name(expr: Expr) -> bool:
    if isinstance(expr, Op):
        return any(says_a_constant_by_name(a) for a in expr.args)
    return isinstance(expr, Const) and expr.name is not None


def evaluate(expr: Expr, columns: Mapping[str, Column], size: int, known: dict[int, Any] | None = None) -> Column:
    """The value of `expr` for each of `size` shapes. Raises KeyError for a name without a column.

    Integer results saturate at ±2^60. A remainder or quotient by zero or less is 0: callers leave such terms out.
    `known` remembers parts by identity: conditions over one term share its object, so it is worked out once."""
    value = _evaluate(expr, columns, {} if known is None else known)
    return np.full(size, value) if isinstance(expr, Const) else np.asarray(value)


def _evaluate(expr: Expr, columns: Mapping[str, Column], known: dict[int, Any]) -> Any:
    """A column, or for a constant its plain value."""
    if isinstance(expr, Name):
        return columns[expr.name]
    if isinstance(expr, Const):
        return expr.value
    key = id(expr)
    if key not in known:
        known[key] = _apply(expr.op, [_evaluate(a, columns, known) for a in expr.args])
    return known[key]


def _membership(values: Column, wanted: tuple[Scalar, ...]) -> Column:
    hit = np.zeros(len(values), dtype=bool)
    for value in wanted:
        hit |= np.asarray(values == value, dtype=bool)
    return hit


def _apply(name: str, args: list[Any]) -> Column:
    if name in ("and", "or"):
        return np.asarray(reduce(np.logical_and if name == "and" else np.logical_or, args))
    if name in ("in", "not in"):
        hit = _membership(*args)
        return hit if name == "in" else ~hit
    if name in _COMPARE:
        return _compare(name, *args)
    if len(args) == 1:
        return _function(name, args[0])
    a, b = args
    match name:
        case "+":
            return _saturated(a + b)
        case "-":
            return _saturated(a - b)
        case "*":
            return _product(np.asarray(a), np.asarray(b))
    if isinstance(b, int) and b > 0 and np.asarray(a).dtype == np.int64:
        return _divided(name, np.asarray(a), b)
    positive = np.asarray(b) > 0
    safe = np.where(positive, b, 1)
    result = a // safe if name == "//" else a % safe if name == "%" else -(-a // safe)
    return np.where(positive, result, 0)


def _divided(name: str, a: Column, b: int) -> Column:
    """`a // b`, `a % b` or the quotient rounded up. By a power of two the bits say it, many times as fast."""
    if b & (b - 1):
        return np.asarray(a // b if name == "//" else a % b if name == "%" else -(-a // b))
    shift = b.bit_length() - 1
    return np.asarray(a >> shift if name == "//" else a & (b - 1) if name == "%" else -(-a >> shift))


def _function(name: str, value: Column) -> Column:
    if name == "next_pow2":
        return _next_pow2(value)
    if name == "abs":
        return np.asarray(np.abs(value))
    single_bit = np.asarray(value & (value - 1) == 0)
    return single_bit if name == "is_pow2" else ~single_bit


def _compare(name: str, a: Column, b: Column) -> Column:
    match name:
        case "==":
            return np.asarray(a == b, dtype=bool)
        case "!=":
            return np.asarray(a != b, dtype=bool)
        case "<":
            return np.asarray(a < b)
        case "<=":
            return np.asarray(a <= b)
        case ">":
            return np.asarray(a > b)
        case _:
            return np.asarray(a >= b)


def _saturated(values: Column) -> Column:
    return np.asarray(np.clip(values, -LARGEST, LARGEST))


def _product(a: Column, b: Column) -> Column:
    if a.dtype != np.int64 or b.dtype != np.int64:
        return np.asarray(a * b)
    rough = a.astype(float) * b
    if np.abs(rough).max(initial=0) < LARGEST:
        return np.asarray(a * b)
    with np.errstate(over="ignore"):
        exact = a * b
    limited = np.where(np.abs(rough) < LARGEST, exact, np.where(rough > 0, LARGEST, -LARGEST))
    return np.asarray(limited, dtype=np.int64)


def _next_pow2(values: Column) -> Column:
    bits = np.ceil(np.log2(np.maximum(values, 1).astype(float))).astype(np.int64)
    power = np.left_shift(np.int64(1), np.minimum(bits, 60))
    # log2 rounds: correct one step either way.
    power = np.where((power >> 1 >= values) & (power > 1), power >> 1, power)
    return np.asarray(np.where((power < values) & (power < LARGEST), power << 1, power))


def text(expr: Expr, outer: int = 0) -> str:
    """The expression in the case language."""
    if isinstance(expr, Name):
        return expr.name
    if isinstance(expr, Const):
        return expr.name or _constant(expr.value)
    if expr.op in ("is_pow2", "not_pow2"):
        inner = text(expr.args[0], 7)
        return _bracket(f"({inner} & ({inner} - 1)) {'==' if expr.op == 'is_pow2' else '!='} 0", 4, outer)
    if expr.op in ("ceil_div", "next_pow2", "abs"):
        return f"{expr.op}({', '.join(text(a) for a in expr.args)})"
    level = 4 if expr.op in _COMPARE else _PRECEDENCE[expr.op]
    parts = [text(a, level + (i > 0 or level == 4)) for i, a in enumerate(expr.args)]
    return _bracket(f" {expr.op} ".join(parts), level, outer)


def _bracket(inner: str, level: int, outer: int) -> str:
    return f"({inner})" if level < outer else inner


def _constant(value: Scalar | tuple[Scalar, ...]) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_constant(v) for v in value) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, int) and value >= 1 << 20:
        for near, suffix in ((value, ""), (value + 1, " - 1"), (value - 1, " + 1")):
            if near & (near - 1) == 0:
                return f"2**{near.bit_length() - 1}{suffix}"
    return str(value)


def words(expr: Expr) -> str:
    """The condition as a person would say it."""
    if expr == ALWAYS:
        return "whatever the shape"
    if isinstance(expr, Op):
        if expr.op in ("and", "or"):
            parts = [words(a) for a in expr.args]
            nested = [isinstance(a, Op) and a.op in ("and", "or") for a in expr.args]
            return f" {expr.op} ".join(f"({p})" if n else p for p, n in zip(parts, nested, strict=True))
        if expr.op in ("is_pow2", "not_pow2"):
            return f"{text(expr.args[0])} is {'' if expr.op == 'is_pow2' else 'not '}a power of two"
        special = _words_of_comparison(expr)
        if special:
            return special
    return text(expr)


def _words_of_comparison(expr: Op) -> str | None:
    if expr.op not in _COMPARE:
        return None
    left, right = expr.args
    if isinstance(right, Const) and right.name:
        return f"{text(expr)} ({_constant(right.value)})"
    if isinstance(left, Op) and left.op == "%" and right == Const(0) and expr.op in ("==", "!="):
        kind = "is a multiple of" if expr.op == "==" else "is not a multiple of"
        return f"{text(left.args[0])} {kind} {text(left.args[1])}"
    return None


def to_json(expr: Expr) -> Any:
    """Names as {"name": n}, constants as themselves (tuples as lists) or, where the case names them, as {"name": n,
    "value": v}, operations as {"op": o, "args": [...]}."""
    if isinstance(expr, Name):
        return {"name": expr.name}
    if isinstance(expr, Const):
        if expr.name:
            return {"name": expr.name, "value": expr.value}
        return list(expr.value) if isinstance(expr.value, tuple) else expr.value
    return {"op": expr.op, "args": [to_json(a) for a in expr.args]}
