"""The kinds of value a key of a case file takes, each checked once, with what would be right in the message."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from cudadiag.case.axes import AxisError, check_name, expand, format_value
from cudadiag.case.expr import Expression, ExpressionError, parse
from cudadiag.case.template import Template, literal_template, parse_template, split_command


def wrong(message: str, *, path: tuple[str | int, ...] = (), offset: int | None = None) -> PydanticCustomError:
    """A problem at a value, `path` below it, `offset` characters into its text."""
    return PydanticCustomError("case", "{message}", {"message": message, "path": path, "offset": offset})


def _expression(value: Any) -> Expression:
    if isinstance(value, (bool, int, float)):
        return _constant(value)
    if not isinstance(value, str):
        raise wrong(f"needs a number or an expression, not {describe(value)}")
    try:
        return parse(value)
    except ExpressionError as error:
        raise wrong(error.message, offset=error.offset) from None


def _constant(value: bool | int | float) -> Expression:
    if isinstance(value, float) and not math.isfinite(value):
        raise wrong(f"needs a finite number, not {value}")
    return parse(format_value(value))


def describe(value: Any) -> str:
    """A value of a YAML file, in words."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the text {value!r}"
    return format_value(value)


def _template(value: Any) -> Template:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return literal_template(format_value(value))
    if isinstance(value, dict) and len(value) == 1 and next(iter(value.values())) is None:
        name = next(iter(value))
        raise wrong(f"{{{name}}} is a mapping in YAML, quote it: '{{{name}}}'")
    if isinstance(value, bool):
        raise wrong(f"a truth value, write '{format_value(value)}' for the text")
    if not isinstance(value, str):
        raise wrong(f"needs a text, not {describe(value)}")
    try:
        return parse_template(value)
    except ExpressionError as error:
        raise wrong(error.message, offset=error.offset) from None


def _macro(value: Any) -> Expression | Template:
    """A number is itself, true and false are 1 and 0, a text stays a text with its {expressions} replaced."""
    if isinstance(value, (bool, int, float)):
        return _constant(int(value) if isinstance(value, bool) else value)
    return _template(value)


def _command(value: Any) -> Any:
    """A list of words, or one text split as a shell would."""
    if isinstance(value, list) and value:
        return value
    if not isinstance(value, str) or not value.strip():
        raise wrong(f"needs a command such as [./bench, --q, '{{q_len}}'], not {describe(value)}")
    try:
        return split_command(value)
    except ExpressionError as error:
        raise wrong(error.message, offset=error.offset) from None


def _axis(value: Any) -> tuple[Any, ...]:
    try:
        return expand(value)
    except AxisError as error:
        raise wrong(error.message, path=error.path) from None


def _scalar(value: Any) -> int | float | str | bool:
    if not isinstance(value, (bool, int, float, str)):
        raise wrong(f"needs a number, a text, true or false, not {describe(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise wrong(f"needs a finite number, not {value}")
    return value


def _extent(value: Any) -> Any:
    """One expression, or a list of one to three: x, y, z."""
    if isinstance(value, list) and not 1 <= len(value) <= 3:
        raise wrong(f"{len(value)} numbers, write one to three: [x, y, z]")
    return one_or_more(value)


def _dimensions(value: Any) -> Any:
    if not isinstance(value, list):
        raise wrong(f"needs a list of extents such as [streams, 64], not {describe(value)}")
    return value


def one_or_more(value: Any) -> Any:
    """A single value is short for a list of it."""
    return value if isinstance(value, list) else [value]


_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
    "TIB": 1 << 40,
}


def _bytes(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", value) if isinstance(value, str) else None
    if match is None or match[2].upper() not in _UNITS:
        raise wrong(f"needs a size such as 512MiB or 40GiB, not {describe(value)}")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _seconds(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9:
        return float(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)", value) if isinstance(value, str) else None
    if match is None or float(match[1]) == 0:
        raise wrong(f"needs seconds above 0 such as 30, or 500ms, 5m, 2h, not {describe(value)}")
    return float(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600}[match[2]]


def _place(value: Any) -> tuple[str, str]:
    """`file.py:function`."""
    match = re.fullmatch(r"(.+\.py):([A-Za-z_]\w*)", value) if isinstance(value, str) else None
    if match is None:
        raise wrong(f"needs a Python file and a function such as reference.py:my_kernel, not {describe(value)}")
    return match[1], match[2]


def _pattern(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise wrong(f"needs a regular expression such as 'all \\d+ checks passed', not {describe(value)}")
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise wrong(f"not a regular expression: {error}", offset=getattr(error, "pos", None)) from None
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise wrong(
            f"needs a text, not {describe(value)}" if not isinstance(value, str) else "needs a text, this one is empty"
        )
    return value


def _name(value: Any) -> str:
    text = _text(value)
    if (problem := check_name(text)) is not None:
        raise wrong(problem)
    return text


def _variable(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise wrong(f"{text!r} is no name of an environment variable, use letters, digits and _, not a digit first")
    return text


def _mapping(value: Any) -> Any:
    if not isinstance(value, dict):
        raise wrong(f"needs a mapping such as {{name: value}}, not {describe(value)}")
    return value


def _selector(value: Any) -> Any:
    """Some parameters with their values, or a condition."""
    if isinstance(value, dict):
        return {_name(name): _scalar(scalar) for name, scalar in value.items()}
    if not isinstance(value, str):
        raise wrong(f"needs a shape such as {{n: 4096}} or a condition such as 'n > 1024', not {describe(value)}")
    return _expression(value)


def _kind(words: str, **schema: Any) -> dict[str, Any]:
    """A JSON Schema, with the words of the reference for this kind of value under `x-kind`."""
    return {"x-kind": words, **schema}


def _list_of(schema: dict[str, Any], words: str) -> dict[str, Any]:
    return _kind(words, anyOf=[schema, {"type": "array", "items": schema}])


def _map_of(schema: dict[str, Any]) -> dict[str, Any]:
    return _kind(f"mapping of name: {schema['x-kind']}", type="object", additionalProperties=schema)


_SCALARS = ["integer", "number", "boolean", "string"]
_SCALAR = _kind("number, text, true or false", type=_SCALARS)
_EXPRESSION = _kind("expression", type=_SCALARS)
_TEMPLATE = _kind("text with {expressions}", type=["string", "integer", "number"])
_MACRO = _kind("number or text with {expressions}", type=_SCALARS)
_RANGE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "from": {"type": "number"},
        "to": {"type": "number", "description": "included where it is hit, never overshot"},
        "step": {"type": "number"},
        "times": {"type": "number", "exclusiveMinimum": 1},
        "around": {"type": "array", "items": {"type": "integer"}, "description": "each with its two neighbours"},
    },
}
_AXIS = _kind(
    "axis", anyOf=[{"type": "array", "minItems": 1, "items": {"anyOf": [{"type": _SCALARS}, _RANGE]}}, _RANGE]
)
_NAME = _kind("name", type="string", pattern="^[A-Za-z_][A-Za-z0-9_]*$")
_TEXT = _kind("text", type="string", minLength=1)
_BYTES = _kind("bytes, or a size such as 512MiB", type=["integer", "string"])
_SECONDS = _kind("seconds, or a time such as 5m", type=["number", "string"])
_PLACE = _kind("file.py:function", type="string", pattern=r"^.+\.py:[A-Za-z_]\w*$")
_PATTERN = _kind("regular expression", type="string", format="regex")

NameField = Annotated[str, PlainValidator(_name), WithJsonSchema(_NAME)]
TextField = Annotated[str, PlainValidator(_text), WithJsonSchema(_TEXT)]
ScalarField = Annotated[int | float | str | bool, PlainValidator(_scalar), WithJsonSchema(_SCALAR)]
BytesField = Annotated[int, PlainValidator(_bytes), WithJsonSchema(_BYTES)]
SecondsField = Annotated[float, PlainValidator(_seconds), WithJsonSchema(_SECONDS)]
PlaceField = Annotated[tuple[str, str], PlainValidator(_place), WithJsonSchema(_PLACE)]
PatternField = Annotated[str, PlainValidator(_pattern), WithJsonSchema(_PATTERN)]
AxisField = Annotated[tuple[Any, ...], PlainValidator(_axis), WithJsonSchema(_AXIS)]
ExpressionField = Annotated[Expression, PlainValidator(_expression), WithJsonSchema(_EXPRESSION)]
TemplateField = Annotated[Template, PlainValidator(_template), WithJsonSchema(_TEMPLATE)]
MacroField = Annotated[Expression | Template, PlainValidator(_macro), WithJsonSchema(_MACRO)]

_SELECTOR = _kind(
    "shape or condition", anyOf=[{"type": "object", "additionalProperties": {"type": _SCALARS}}, {"type": "string"}]
)
SelectorField = Annotated[Expression | dict[str, Any], PlainValidator(_selector), WithJsonSchema(_SELECTOR)]
SelectorsField = Annotated[
    tuple[SelectorField, ...],
    BeforeValidator(one_or_more),
    WithJsonSchema(_list_of(_SELECTOR, "shape or condition, or a list of them")),
]

TextsField = Annotated[
    tuple[TextField, ...], BeforeValidator(one_or_more), WithJsonSchema(_list_of(_TEXT, "text, or a list of texts"))
]
ExpressionsField = Annotated[
    tuple[ExpressionField, ...],
    BeforeValidator(one_or_more),
    WithJsonSchema(_list_of(_EXPRESSION, "expression, or a list of expressions")),
]
ExtentField = Annotated[
    tuple[ExpressionField, ...],
    BeforeValidator(_extent),
    WithJsonSchema(_list_of(_EXPRESSION, "expression, or a list of one to three")),
]
DimensionsField = Annotated[
    tuple[ExpressionField, ...],
    BeforeValidator(_dimensions),
    WithJsonSchema(_kind("list of expressions", type="array", items=_EXPRESSION)),
]
CommandField = Annotated[
    tuple[TemplateField, ...],
    BeforeValidator(_command),
    WithJsonSchema(_list_of(_TEMPLATE, "list of words, or one text; with {expressions}")),
]
AxesField = Annotated[dict[NameField, AxisField], BeforeValidator(_mapping), WithJsonSchema(_map_of(_AXIS))]
ScalarMapField = Annotated[dict[NameField, ScalarField], BeforeValidator(_mapping), WithJsonSchema(_map_of(_SCALAR))]
ExpressionMapField = Annotated[
    dict[NameField, ExpressionField], BeforeValidator(_mapping), WithJsonSchema(_map_of(_EXPRESSION))
]
MacroMapField = Annotated[dict[NameField, MacroField], BeforeValidator(_mapping), WithJsonSchema(_map_of(_MACRO))]
VariableField = Annotated[str, PlainValidator(_variable), WithJsonSchema(_NAME)]
EnvironmentField = Annotated[
    dict[VariableField, TemplateField], BeforeValidator(_mapping), WithJsonSchema(_map_of(_TEMPLATE))
]
