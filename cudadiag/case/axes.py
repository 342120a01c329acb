"""The values of an axis: lists, ranges, neighbourhoods; from YAML and from the command line's `-P`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from cudadiag.case.expr import RESERVED, suggestion
from cudadiag.case.scalars import plain_scalar
from cudadiag.errors import UsageError
from cudadiag.model import Axis, Scalar

MAX_VALUES = 1_000_000
"""Values of one axis."""


_Path = tuple[str | int, ...]
_Placed = tuple[Scalar, _Path]
"""A value and where in the axis it was written."""


class AxisError(ValueError):
    """A wrong axis. `path` leads from the axis to the mistake, as list indices and keys."""

    def __init__(self, message: str, path: _Path = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


def expand(spec: Any) -> tuple[Scalar, ...]:
    """The ordered values that a YAML axis declares. Raises AxisError.

    A list of scalars and ranges, or one range: {from, to, step}, {from, to, times} or {around: [...]}.
    """
    items: list[_Placed]
    if isinstance(spec, dict):
        items = [(value, ()) for value in _range(spec, ())]
    elif isinstance(spec, list):
        items = [pair for index, item in enumerate(spec) for pair in _item(item, index)]
    else:
        one = format_value(spec)
        raise AxisError(f"an axis is a list such as [1, 2, 4], for one value write [{one}] or move it to `set:`")
    if not items:
        raise AxisError("an axis without values, give at least one")
    if len(items) > MAX_VALUES:
        raise AxisError(f"an axis of {len(items)} values, the limit is {MAX_VALUES}")
    _refuse_duplicates(items)
    return tuple(value for value, _ in items)


def format_value(value: Any) -> str:
    """A value as command lines, environments and reports show it: true and false in small letters."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return value if isinstance(value, str) else repr(value)


def check_name(name: str) -> str | None:
    """What is wrong with a parameter's name, None if nothing is."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return f"{name!r} is not a name, use letters, digits and _, not a digit first"
    if name in RESERVED:
        return f"{name!r} is a word of the expression language, choose another name"
    return None


def _item(item: Any, index: int) -> Iterator[_Placed]:
    if isinstance(item, dict):
        for value in _range(item, (index,)):
            yield value, (index,)
    elif isinstance(item, (bool, int, str)):
        yield item, (index,)
    elif isinstance(item, float):
        if not math.isfinite(item):
            raise AxisError(f"{item} cannot be a value of an axis, use a finite number", (index,))
        yield item, (index,)
    else:
        shown = "nothing" if item is None else "a list in a list"
        raise AxisError(f"{shown} among the values, write numbers, texts, true, false or a range", (index,))


def _refuse_duplicates(items: list[_Placed]) -> None:
    seen: dict[Any, Scalar] = {}
    for value, path in items:
        for key in (value, format_value(value)):
            if key in seen:
                raise AxisError(_duplicate(value, seen[key]), path)
        seen[value] = seen[format_value(value)] = value


def _duplicate(value: Scalar, earlier: Scalar) -> str:
    shown = format_value(value)
    if type(value) is type(earlier):
        return f"duplicate value {shown}, every value stands once"
    both = " and ".join(repr(one) if isinstance(one, str) else format_value(one) for one in (value, earlier))
    return f"{both} cannot be told apart in a command line or a report, keep one"


_RANGE_KEYS = ("from", "to", "step", "times", "around")
_EXAMPLE = "{from: 1, to: 64, times: 2}"


def _range(spec: dict[str, Any], path: _Path) -> tuple[Scalar, ...]:
    for key in spec:
        if key not in _RANGE_KEYS:
            known = suggestion(key, _RANGE_KEYS) or f", known here: {', '.join(_RANGE_KEYS)}"
            raise AxisError(f"unknown key {key!r} in a range{known}", (*path, key))
    if "around" in spec:
        if len(spec) > 1:
            raise AxisError("`around` stands alone, write other ranges as items of their own", path)
        return _around(spec["around"], (*path, "around"))
    kind = _check_range(spec, path)
    make = steps if kind == "step" else powers
    try:
        return make(spec["from"], spec["to"], spec[kind])
    except AxisError as error:
        raise AxisError(error.message, (*path, *(error.path or (kind,)))) from None


def _check_range(spec: dict[str, Any], path: _Path) -> str:
    """Whether a range goes by "step" or by "times"; its numbers are numbers."""
    for key in ("from", "to"):
        if key not in spec:
            raise AxisError(f"a range without `{key}`, write {_EXAMPLE}", path)
    for key, value in spec.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise AxisError(f"`{key}` is a number, not {value!r}", (*path, key))
    if ("step" in spec) == ("times" in spec):
        raise AxisError(f"a range has either `step` or `times`, write {_EXAMPLE}", path)
    return "step" if "step" in spec else "times"


def _around(spec: Any, path: _Path) -> tuple[int, ...]:
    if not isinstance(spec, list) or not spec:
        raise AxisError("`around` is a list of integers, such as {around: [16, 64]}", path)
    for index, value in enumerate(spec):
        if isinstance(value, bool) or not isinstance(value, int):
            raise AxisError(f"`around` needs integers, not {format_value(value)}", (*path, index))
    return tuple(sorted({value + offset for value in spec for offset in (-1, 0, 1)}))


def steps(first: int | float, last: int | float, step: int | float) -> tuple[Scalar, ...]:
    """`first`, `first + step`, ... up to `last`: included where it is hit, never overshot. Raises AxisError."""
    if step == 0:
        raise AxisError("a step of 0 never arrives, use 1 or more")
    if (last - first) * step < 0:
        raise AxisError(f"a step of {step} never gets from {first} to {last}, turn its sign")
    if all(isinstance(number, int) for number in (first, last, step)):
        _refuse_long((int(last) - int(first)) // int(step) + 1)
        return tuple(range(int(first), int(last) + (1 if step > 0 else -1), int(step)))
    # Decimal: 0.1 + 2 * 0.1 must be 0.3, as it is written, not 0.30000000000000004.
    start, stride = Decimal(repr(first)), Decimal(repr(step))
    count = int((Decimal(repr(last)) - start) / stride) + 1
    _refuse_long(count)
    return tuple(float(start + index * stride) for index in range(count))


def powers(first: int | float, last: int | float, times: int | float) -> tuple[Scalar, ...]:
    """`first`, `first * times`, ... up to `last`: included where it is hit, never overshot. Raises AxisError."""
    if times <= 1:
        raise AxisError(f"`times: {times}` never arrives, use 2 or more")
    if first <= 0:
        raise AxisError(f"from {first} multiplying never arrives, start above 0", ("from",))
    if last < first:
        raise AxisError(f"multiplying never gets from {first} down to {last}, exchange them", ("to",))
    if isinstance(first, int) and not isinstance(times, int):
        raise AxisError(f"`times: {times}` leaves the integers, use a whole number, or write from as {float(first)}")
    if isinstance(first, int):
        values: list[Scalar] = []
        value = first
        while value <= last:
            values.append(value)
            value *= int(times)
        return tuple(values)
    factor, real = Decimal(repr(times)), Decimal(repr(first))
    reals: list[Scalar] = []
    while real <= Decimal(repr(last)):
        reals.append(float(real))
        _refuse_long(len(reals))
        real *= factor
    return tuple(reals)


def _refuse_long(count: int) -> None:
    if count > MAX_VALUES:
        raise AxisError(f"a range of more than {MAX_VALUES} values, use a larger step or `times`")


_OPTION_RANGE = re.compile(r"(?P<first>[^.].*?|\.\d+)\.\.(?P<last>[^:]+)(?::(?P<how>[x+-])(?P<by>.+))?")


def parse_option(text: str) -> Axis:
    """The axis that one `-P` declares: `q=9,17,33`, `n=256..8192:x2`, `k=1..64:+3`, `m=1..8`, mixed with commas.

    A value in quotes is a text whatever it looks like; true and false are booleans. Raises UsageError.
    """
    name, equals, body = text.partition("=")
    name = name.strip()
    if not equals:
        raise UsageError(f"-P {text}: write -P name=values, such as -P {name or 'n'}=1,2,4")
    if (wrong := check_name(name)) is not None:
        raise UsageError(f"-P {text}: {wrong}")
    if not body.strip():
        raise UsageError(f"-P {text}: no values, write -P {name}=1,2,4")
    try:
        values = tuple(value for item in _split_items(body) for value in _option_item(item.strip()))
        _refuse_duplicates([(value, ()) for value in values])
    except AxisError as error:
        raise UsageError(f"-P {text}: {error.message}") from None
    return Axis(name, values)


def _split_items(body: str) -> list[str]:
    """`a,'b,c',d` at the commas outside quotes."""
    items = re.findall(r"((?:'[^']*'|\"[^\"]*\"|[^,])*)(?:,|$)", body)
    # findall ends with the empty match at the end of the text unless the text itself ended in a comma.
    return items[:-1] if not body.endswith(",") else items


def _option_item(item: str) -> tuple[Scalar, ...]:
    if not item:
        raise AxisError("an empty value, write '' for the empty text")
    if len(item) >= 2 and item[0] == item[-1] and item[0] in "'\"":
        return (item[1:-1],)
    match = _OPTION_RANGE.fullmatch(item)
    if match is None:
        if re.match(r"[-+]?\d[\d.]*\.\.", item):
            raise AxisError(f"{item!r} is no range, write 256..8192:x2 or 1..64:+3; quote a text with two points")
        return (_option_scalar(item),)
    first, last = _option_number(match["first"]), _option_number(match["last"])
    how, by = match["how"] or "+", _option_number(match["by"] or "1")
    if how == "x":
        return powers(first, last, by)
    return steps(first, last, -by if how == "-" else by)


def _option_scalar(item: str) -> Scalar:
    value, trap = plain_scalar(item)
    if trap is not None and item[:1] in "+-.0123456789":
        raise AxisError(f"{item} is read in more than one way, {trap.write}")
    if trap is not None or value is None or isinstance(value, str):
        return item
    if isinstance(value, float) and not math.isfinite(value):
        raise AxisError(f"{item} cannot be a value of an axis, use a finite number")
    return value


def _option_number(item: str) -> int | float:
    value = _option_scalar(item.strip())
    if isinstance(value, (bool, str)):
        raise AxisError(f"{item!r} is not a number, a range is 256..8192:x2 or 1..64:+3; quote a text with two points")
    return value
