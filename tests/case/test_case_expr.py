"""The expression language has Python's meaning, bounded, and points at every mistake."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cudadiag.case.expr import ExpressionError, parse
from cudadiag.case.expr.evaluate import MAX_BITS
from cudadiag.case.expr.tree import MAX_DEPTH, MAX_TEXT

NAMES = ("a", "b", "c")
FUNCTIONS = {
    "min": min,
    "max": max,
    "abs": abs,
    "ceil_div": lambda x, y: -(-x // y),
    "next_pow2": lambda x: 1 if x <= 1 else 1 << (x - 1).bit_length(),
    "log2": math.log2,
}

literals = st.one_of(
    st.integers(0, 40).map(str),
    st.sampled_from(["0", "1", "True", "False", "2147483648", "9223372036854775808", "0x1f", "0b101", "0o17"]),
    st.sampled_from(["0.5", "1.5e3", "2.0", ".25", "1e-3"]),
)


PATTERNS = [
    "({0})",
    "{0}{op}{1}",
    "{0} {op} {1}",
    "{0} {cmp} {1}",
    "{0} {cmp} {1} {cmp2} {2}",
    "{0} {word} {1}",
    "-{0}",
    "+{0}",
    "~{0}",
    "not {0}",
    "({0}) in [{1}, {2}]",
    "({0}) not in ({1},)",
    "{pair}({0}, {1})",
    "{one}({0})",
]
HOLES = {
    "op": ["+", "-", "*", "/", "//", "%", "<<", ">>", "&", "|", "^", "**"],
    "cmp": ["==", "!=", "<", "<=", ">", ">="],
    "cmp2": ["==", "!=", "<", "<=", ">", ">="],
    "word": ["and", "or"],
    "pair": ["min", "max", "ceil_div"],
    "one": ["abs", "next_pow2", "log2"],
}


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(literals | st.sampled_from(NAMES))
    pattern = draw(st.sampled_from(PATTERNS))
    holes = {key: draw(st.sampled_from(words)) for key, words in HOLES.items() if f"{{{key}}}" in pattern}
    inner = [draw(texts(depth - 1)) for place in range(3) if f"{{{place}}}" in pattern]
    return pattern.format(*inner, **holes)


values = st.fixed_dictionaries({name: st.integers(-50, 3000) | st.sampled_from([2**31, 2**63 - 1]) for name in NAMES})


def _python(text: str, names: dict[str, Any]) -> Any:
    """Python's own answer, or the exception; the text is generated here and only from the grammar above."""
    try:
        return eval(text, {"__builtins__": {}, **FUNCTIONS}, dict(names))  # noqa: S307
    except (ArithmeticError, TypeError, ValueError, AttributeError, MemoryError, SyntaxError) as error:
        return error


def _error_of(text: str, names: dict[str, int]) -> ExpressionError | None:
    try:
        parse(text).evaluate(names)
    except ExpressionError as error:
        return error
    return None


STRICTER = ("needs parentheses", "needs a number", "needs an integer", "needs a list")
"""Of what Python allows, this is refused: lists in arithmetic, `x in` something that is no list."""


@settings(deadline=None)
@given(texts(), values)
@example("-2 ** -b", {"a": 1, "b": 2, "c": 3})
@example("not a in [b] == c", {"a": 1, "b": 2, "c": 3})
@example("a or b < c and ~a", {"a": 0, "b": 2, "c": 3})
def test_an_expression_means_what_it_means_in_python(text: str, names: dict[str, int]) -> None:
    error = _error_of(text, names)
    if error is not None:
        assume("bits" not in error.message and "shift" not in error.message)  # bounded here, not in Python
        theirs = _python(text, names)
        refused_only_here = isinstance(theirs, complex) or any(words in error.message for words in STRICTER)
        assert refused_only_here or isinstance(theirs, Exception), f"Python says {theirs!r}, we say {error.message}"
        assert 0 <= error.offset <= len(text)
        return
    ours, theirs = parse(text).evaluate(names), _python(text, names)
    assert type(ours) is type(theirs)
    assert ours == theirs or (ours != ours and theirs != theirs)


@settings(deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="ab12 +-*/%<>=!&|^~()[],.'\"\\notinmx", max_size=40))
def test_any_text_is_an_expression_or_an_error_with_a_place(text: str) -> None:
    error = _error_of(text, {})
    assert error is None or (0 <= error.offset <= len(text) and error.message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("2 ** -1", 0.5),
        ("7 // -2", -4),
        ("-7 % 3", 2),
        ("1 < 2 < 3 > 2", True),
        ("3 not in [1, 2]", True),
        ("mode in ('auto', 'tma')", True),
        ("mode == 'auto' and n > 3", True),
        ("true and not false", True),
        ("ceil_div(n, 4)", 3),
        ("next_pow2(n)", 16),
        ("log2(8)", 3.0),
        ("min([4, n, 7])", 4),
        ("max(n, 2 ** 40)", 2**40),
        ("scores.bytes > 2 ** 31", True),
        (r"'it\'s' == mode", False),
        ("n", 9),
    ],
)
def test_values(text: str, value: Any) -> None:
    names = {"n": 9, "mode": "auto", "scores.bytes": 2**33}
    result = parse(text).evaluate(names)
    assert result == value
    assert type(result) is type(value)


MISTAKES = {
    "": (0, "the expression ends where a value was expected"),
    "a +": (3, "the expression ends where a value was expected"),
    "(a + 1": (6, "the expression ends where a comma or ) was expected"),
    "a b": (2, "b follows without an operator between"),
    "a = 3": (2, "'=': write == to compare"),
    "a && b": (2, "&&: write `and`"),
    "a || b": (2, "||: write `or`"),
    "!a": (0, "'!': write `not`, or != to compare"),
    "a ? 1 : 2": (2, "'?': there is no conditional; use min, max or a comparison"),
    "a ≤ 3": (2, "'≤': write <="),
    "017 + a": (0, "017: a leading zero means octal in C; write 17"),
    "1_000": (0, "1_000 is not a number: write 1000"),
    "2a": (0, "2a is not a number: a * is missing, or a blank"),
    "foo(a)": (0, "no function 'foo'; there are min, max, abs, ceil_div, next_pow2, log2"),
    "cel_div(a, 2)": (0, "no function 'cel_div': did you mean 'ceil_div'?; there are"),
    "ceil_div(a)": (0, "ceil_div got 1 arguments: write ceil_div(a, b)"),
    "min + 1": (0, "min is a function: write min(a, b, ...)"),
    "a in b": (5, "`in` needs a list on its right, such as [1, 2]"),
    "'abc": (0, '"\'": the text is not closed'),
    r"'a\q'": (2, r"\q is not an escape; there are \n \t \\ \' and \""),
    "1 + not a": (4, "`not` needs parentheses here"),
    "a +* 2": (3, "'*' where a value was expected"),
    "min(a, b": (8, "the expression ends where a comma or ) was expected"),
    "a 'b'": (2, "'b' follows without an operator between"),
    "a,b": (1, "',' where a value was expected"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_has_its_place_and_what_would_be_right(text: str) -> None:
    offset, message = MISTAKES[text]
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.offset == offset
    assert caught.value.message.startswith(message)


FAILURES = {
    "1 // (a - a)": (2, "division by zero"),
    "a % 0": (2, "division by zero"),
    "mode + 1": (5, "needs a number, got the text 'auto'"),
    "a < mode": (2, "needs a number, got the text 'auto'"),
    "a & 1.5": (2, "needs an integer, got the number 1.5"),
    "streems + a": (0, "unknown name 'streems': did you mean 'streams'?"),
    "xyz": (0, "unknown name 'xyz'; known: a, mode, streams"),
    "a << -1": (2, "a shift by -1"),
    "log2(a - a)": (0, "log2 needs a number above 0, got 0"),
    "(0 - a) ** 0.5": (8, "a negative number to a fractional power is not a real number"),
    "2.0 ** 5000": (4, "the result is too large for a float"),
    "min([])": (0, "the smallest or largest of nothing"),
    "-mode": (0, "needs a number, got the text 'auto'"),
}


@pytest.mark.parametrize("text", FAILURES)
def test_a_failure_at_one_shape_has_its_place(text: str) -> None:
    offset, message = FAILURES[text]
    with pytest.raises(ExpressionError) as caught:
        parse(text).evaluate({"a": 3, "mode": "auto", "streams": 4})
    assert (caught.value.offset, caught.value.message) == (offset, message)


@pytest.mark.parametrize("text", ["2 ** 10 ** 10", "1 << 10 ** 12", "9 ** 9 ** 9", "(2 ** 60000) * (2 ** 60000)"])
def test_a_blow_up_is_refused_at_once(text: str) -> None:
    with pytest.raises(ExpressionError, match=f"bits; the limit is {MAX_BITS}"):
        parse(text).evaluate({})


def test_large_integers_are_exact() -> None:
    assert parse("2 ** 4000 + 1 - 2 ** 4000").evaluate({}) == 1
    assert parse("(n * n + 1) % 2").evaluate({"n": 2**100}) == 1


@pytest.mark.parametrize(
    "text",
    ["(" * 5000 + "1" + ")" * 5000, "-" * 3000 + "1", "not " * 900 + "1", "1+" * 1900 + "1", "2**" * 1200 + "2"],
)
def test_depth_and_length_are_bounded(text: str) -> None:
    with pytest.raises(ExpressionError, match=f"{MAX_DEPTH} operations|the limit is {MAX_TEXT}"):
        parse(text)


def test_many_alternatives_are_no_depth() -> None:
    text = " or ".join(f"n == {value}" for value in range(300))
    assert parse(text).evaluate({"n": 299}) is True


def test_and_or_stop_early() -> None:
    assert parse("n != 0 and 8 % n == 0").evaluate({"n": 0}) is False
    assert parse("n == 0 or 8 % n == 0").evaluate({"n": 0}) is True


def test_names_are_those_that_stand_for_something() -> None:
    assert parse("ceil_div(a, b) + scores.bytes + min(a, True)").names == {"a", "b", "scores.bytes"}


def test_the_command_line_shows_the_place() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("q_len +* 2")
    assert caught.value.pointed().splitlines()[1:] == ["    q_len +* 2", "           ^"]
