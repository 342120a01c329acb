"""Axes: lists, ranges, neighbourhoods, from YAML and from -P."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.case.axes import AxisError, expand, format_value, parse_option, powers, steps
from cudadiag.errors import UsageError


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ([1, 4, 8], (1, 4, 8)),
        ([8, 1], (8, 1)),
        (["auto", "tma", True, 2, 2.5], ("auto", "tma", True, 2, 2.5)),
        ({"from": 1, "to": 10, "step": 4}, (1, 5, 9)),
        ({"from": 1, "to": 9, "step": 4}, (1, 5, 9)),
        ({"from": 9, "to": 1, "step": -4}, (9, 5, 1)),
        ({"from": 5, "to": 5, "step": 1}, (5,)),
        ({"from": 256, "to": 8192, "times": 2}, (256, 512, 1024, 2048, 4096, 8192)),
        ({"from": 1, "to": 100, "times": 3}, (1, 3, 9, 27, 81)),
        ({"from": 0.1, "to": 0.5, "step": 0.1}, (0.1, 0.2, 0.3, 0.4, 0.5)),
        ({"from": 1.0, "to": 4, "times": 1.5}, (1.0, 1.5, 2.25, 3.375)),
        ({"around": [64, 16]}, (15, 16, 17, 63, 64, 65)),
        ({"around": [16, 17]}, (15, 16, 17, 18)),
        ([1, {"around": [16]}, {"from": 32, "to": 128, "times": 2}, "x"], (1, 15, 16, 17, 32, 64, 128, "x")),
    ],
)
def test_what_an_axis_declares(spec: Any, values: tuple[Any, ...]) -> None:
    made = expand(spec)
    assert made == values
    assert [type(value) for value in made] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ([1, 2, 1], (2,), "duplicate value 1, every value stands once"),
        ([16, {"around": [15]}], (1,), "duplicate value 16"),
        ([1, True], (1,), "true and 1 cannot be told apart"),
        ([1, 1.0], (1,), "1.0 and 1 cannot be told apart"),
        ([1, "1"], (1,), "'1' and 1 cannot be told apart"),
        ([], (), "an axis without values"),
        (5, (), "an axis is a list such as [1, 2, 4], for one value write [5]"),
        ([1, [2]], (1,), "a list in a list"),
        ([1, None], (1,), "nothing among the values"),
        ([1, {"from": 1, "to": 3}], (1,), "a range has either `step` or `times`"),
        ({"from": 1, "to": 3, "step": 1, "times": 2}, (), "a range has either `step` or `times`"),
        ({"from": 1, "step": 1}, (), "a range without `to`"),
        ({"from": 1, "to": 9, "times": 1}, ("times",), "`times: 1` never arrives"),
        ({"from": -4, "to": 9, "times": 2}, ("from",), "from -4 multiplying never arrives"),
        ({"from": 9, "to": 4, "times": 2}, ("to",), "multiplying never gets from 9 down to 4"),
        ({"from": 1, "to": 9, "stop": 2}, ("stop",), "unknown key 'stop' in a range: did you mean 'step'?"),
        ({"from": 1, "to": True, "step": 2}, ("to",), "`to` is a number"),
        ({"around": 16}, ("around",), "`around` is a list of integers"),
        ({"around": [1.5]}, ("around", 0), "`around` needs integers"),
        ([float("nan")], (0,), "nan cannot be a value of an axis"),
        ({"from": 0, "to": 10**30, "step": 1}, ("step",), "a range of more than 1000000 values"),
        ({"from": 0.0, "to": 1e300, "step": 1e-300}, ("step",), "a range of more than 1000000 values"),
    ],
)
def test_a_wrong_axis_says_where_and_why(spec: Any, path: tuple[Any, ...], message: str) -> None:
    with pytest.raises(AxisError) as caught:
        expand(spec)
    assert caught.value.path == path
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("q=9,17,33", (9, 17, 33)),
        ("n=256..8192:x2", (256, 512, 1024, 2048, 4096, 8192)),
        ("k=1..12:+3", (1, 4, 7, 10)),
        ("k=10..1:-3", (10, 7, 4, 1)),
        ("m=1..4", (1, 2, 3, 4)),
        ("m=-2..1", (-2, -1, 0, 1)),
        ("m=1..3,8,16..64:x2", (1, 2, 3, 8, 16, 32, 64)),
        ("f=0.1..0.3:+0.1", (0.1, 0.2, 0.3)),
        ("f=.5,2.", (0.5, 2.0)),
        ("mode=auto,tma", ("auto", "tma")),
        ("mode=on,off,yes", ("on", "off", "yes")),
        ("flag=true,false", (True, False)),
        ("v='9',\"a,b\",'true'", ("9", "a,b", "true")),
        ("path=../x,./y", ("../x", "./y")),
        ("empty=''", ("",)),
        (" n = 3 , 4 ", (3, 4)),
        ("h=0x10", (16,)),
        ("eq=a=b", ("a=b",)),
    ],
)
def test_an_option_declares_an_axis(text: str, values: tuple[Any, ...]) -> None:
    axis = parse_option(text)
    assert axis.name == text.split("=")[0].strip()
    assert axis.values == values
    assert [type(value) for value in axis.values] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q", "-P q: write -P name=values, such as -P q=1,2,4"),
        ("=3", "-P =3: '' is not a name"),
        ("1x=3", "-P 1x=3: '1x' is not a name"),
        ("min=3", "-P min=3: 'min' is a word of the expression language"),
        ("q=", "-P q=: no values, write -P q=1,2,4"),
        ("q=1,,2", "-P q=1,,2: an empty value, write '' for the empty text"),
        ("q=1,2,", "-P q=1,2,: an empty value"),
        ("q=1,1", "-P q=1,1: duplicate value 1"),
        ("q=1e3", "-P q=1e3: 1e3 is read in more than one way, write 1000 for the integer, or 1.0e3"),
        ("q=017", "-P q=017: 017 is read in more than one way, write 17"),
        ("q=a..b", "-P q=a..b: 'a' is not a number"),
        ("q=1..9:x1", "-P q=1..9:x1: `times: 1` never arrives"),
        ("q=9..1", "-P q=9..1: a step of 1 never gets from 9 to 1, turn its sign"),
        ("q=1..9:y2", "-P q=1..9:y2: '1..9:y2' is no range, write 256..8192:x2"),
        ("q=1..999999999", "-P q=1..999999999: a range of more than 1000000 values"),
    ],
)
def test_a_wrong_option_says_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        parse_option(text)
    assert caught.value.exit_code == 2


@settings(deadline=None)
@given(st.integers(-(10**20), 10**20), st.integers(0, 3000), st.integers(1, 10**18))
def test_a_range_never_overshoots_and_stops_as_late_as_it_can(first: int, count: int, step: int) -> None:
    last = first + count * step + step // 2
    values = steps(first, last, step)
    assert values == tuple(range(first, last + 1, step))
    assert int(values[-1]) <= last < int(values[-1]) + step


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(0, 10**12), st.integers(2, 10))
def test_a_geometric_range_never_overshoots(first: int, more: int, times: int) -> None:
    values = [int(value) for value in powers(first, first + more, times)]
    assert values[0] == first
    assert all(after == before * times for before, after in itertools.pairwise(values))
    assert values[-1] <= first + more < values[-1] * times


scalars = st.integers(-(10**30), 10**30) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
plain = st.text(alphabet="abcxyz-/", min_size=1, max_size=6)


@settings(deadline=None)
@given(st.lists(scalars | plain, min_size=1, max_size=5))
def test_what_a_list_declares_the_option_declares_too(values: list[Any]) -> None:
    """Written as reports print it, a value comes back as it was; but 1e30, which the option calls ambiguous."""
    try:
        declared = expand(values)
    except AxisError:
        return
    if any(isinstance(value, float) and "e" in repr(value) and "." not in repr(value) for value in values):
        return
    assert parse_option("v=" + ",".join(map(format_value, declared))).values == declared


@settings(deadline=None)
@given(st.text(max_size=30) | st.text(alphabet="0123456789.,:x+-'\"e ", max_size=20).map("n={}".format))
def test_any_option_is_an_axis_or_a_usage_error(text: str) -> None:
    try:
        axis = parse_option(text)
    except UsageError:
        return
    assert axis.values
    assert len({format_value(value) for value in axis.values}) == len(axis.values)
