"""Whole columns at once give exactly what row by row gives: values, types and the first failing row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cudadiag.case.expr import Expression, ExpressionError, parse
from cudadiag.case.expr.columns import Column, RowError, as_column, by_rows, column

NAMES = ("a", "b", "r", "t", "s")
edges = st.sampled_from([0, 1, -1, 2, 31, 62, 63, 64, 2**31, -(2**31), 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)])
leaves = st.one_of(
    st.sampled_from(NAMES), st.integers(0, 70).map(str), st.sampled_from(["1.5", "True", "2 ** 62", "'x'"])
)


PATTERNS = [
    *(
        f"({{}}) {op} ({{}})"
        for op in [
            "+",
            "-",
            "*",
            "/",
            "//",
            "%",
            "**",
            "<<",
            ">>",
            "&",
            "|",
            "^",
            "==",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            "and",
            "or",
        ]
    ),
    *(f"{function}({{}})" for function in ("-", "+", "~", "not ", "abs", "next_pow2", "log2")),
    *(f"{function}({{}}, {{}})" for function in ("min", "max", "ceil_div")),
    "({}) in [{}, {}]",
    "({}) < ({}) <= ({})",
    "max([{}, {}])",
]


@st.composite
def texts(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(leaves)
    pattern = draw(st.sampled_from(PATTERNS))
    return pattern.format(*(draw(texts(depth - 1)) for _ in range(pattern.count("{}"))))


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Column], int]:
    length = draw(st.integers(1, 5))
    small = draw(st.booleans())
    whole = st.integers(-9, 99) if small else edges | st.integers()
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "a": whole,
        "b": st.integers(-3, 70) if small else edges,
        "r": st.floats(allow_nan=False, allow_infinity=False),
        "t": st.booleans(),
        "s": st.sampled_from(["x", "y"]),
    }
    rows = {name: draw(st.lists(kind, min_size=length, max_size=length)) for name, kind in kinds.items()}
    return {name: as_column(values) for name, values in rows.items()}, length


def _outcome(function: Any, expression: Expression, table: tuple[dict[str, Column], int]) -> Any:
    columns, length = table
    try:
        values = function(expression, {name: columns[name] for name in expression.names}, length)
    except RowError as error:
        return error.row, error.error.message, error.error.offset
    return values.tolist() if isinstance(values, np.ndarray) else values


@settings(deadline=None)
@given(texts(), tables())
@example("(a) * (b)", ({"a": as_column([2**32]), "b": as_column([2**31])}, 1))
@example("(a) // (b)", ({"a": as_column([-(2**63)]), "b": as_column([-1])}, 1))
@example("(a) < (r)", ({"a": as_column([2**53 + 1]), "r": as_column([2.0**53])}, 1))
@example("(a) << (b)", ({"a": as_column([1, -1]), "b": as_column([63, 62])}, 2))
@example("(a) % (b)", ({"a": as_column([5, 5]), "b": as_column([3, 0])}, 2))
@example("(t) and (a)", ({"t": as_column([True, False]), "a": as_column([7, 8])}, 2))
def test_columns_equal_rows(text: str, table: tuple[dict[str, Column], int]) -> None:
    try:
        expression = parse(text)
    except ExpressionError:
        return  # such as a text where only a list can stand
    ours, rows = _outcome(column, expression, table), _outcome(by_rows, expression, table)
    assert repr(ours) == repr(rows)  # repr tells 1, 1.0 and True, and 0.0 and -0.0, apart; nan equals itself


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, 2], np.int64), ([1.0], np.float64), ([True], np.bool_), ([1, 2.0], list), (["x"], list), ([2**63], list)],
)
def test_a_column_keeps_the_type_of_every_value(values: list[Any], kind: Any) -> None:
    made = as_column(values)
    if kind is list:
        assert made == values
        assert isinstance(made, list)
    else:
        assert isinstance(made, np.ndarray)
        assert made.dtype == kind
        assert made.tolist() == values


def test_a_million_rows_stay_in_arrays() -> None:
    rows = as_column(list(range(1_000_000)))
    result = column(parse("n * 4096 > 2 ** 31 and n % 3 == 0"), {"n": rows}, 1_000_000)
    assert isinstance(result, np.ndarray)
    assert int(result.sum()) == sum(1 for n in range(1_000_000) if n * 4096 > 2**31 and n % 3 == 0)


def test_log2_falls_back_to_rows() -> None:
    assert column(parse("log2(n)"), {"n": as_column([3, 8])}, 2) == pytest.approx([math.log2(3), 3.0])
