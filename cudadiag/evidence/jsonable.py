"""Frozen dataclasses to plain JSON values and back, driven by their annotations: for what the ledger keeps of a
reading."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Dataclasses, tuples, mappings and enums as dicts, lists and strings; fields that hold their default are left
    out."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value) if not _is_default(value, f)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


def _is_default(value: Any, field: dataclasses.Field[Any]) -> bool:
    current = getattr(value, field.name)
    if field.default is not dataclasses.MISSING:
        return bool(current == field.default)
    return field.default_factory is not dataclasses.MISSING and bool(current == field.default_factory())


def from_json(kind: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass `kind` from its JSON form. Unknown keys are ignored: an older reader must read a newer ledger.

    Raises ValueError (or TypeError) where a value does not fit its field.
    """
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: _value(hints[name], data[name]) for name in names if name in data})


def _value(hint: Any, data: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [option for option in typing.get_args(hint) if option is not type(None)]
        return None if data is None else _value(inner[0], data)
    if origin is tuple:
        item, *rest = typing.get_args(hint)
        if rest == [Ellipsis]:
            return tuple(_value(item, entry) for entry in data)
        return tuple(_value(each, entry) for each, entry in zip((item, *rest), data, strict=True))
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast(type[Any], hint), data)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(data)
    return data
