"""From a YAML document to a checked CaseModel: every pydantic error becomes a problem at its place, in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cudadiag.case.expr import suggestion
from cudadiag.case.kernelmodels import KernelModel
from cudadiag.case.models import (
    CaseModel,
    CommandModel,
    GateModel,
    LimitsModel,
    RequiresModel,
    TargetModel,
    TimingModel,
)
from cudadiag.case.problems import CaseError, Mark, Problem
from cudadiag.case.yamltext import Document, offset_mark

_Path = tuple[str | int, ...]


def check(document: Document) -> CaseModel:
    """The model of a case. Raises CaseError with everything that is wrong: YAML's traps and the model's findings."""
    try:
        model = CaseModel.model_validate(document.data)
    except ValidationError as error:
        found = [_problem(document, details) for details in error.errors() if not _echoes(document, details["loc"])]
        raise CaseError(document.file, [*document.problems, *found]) from None
    if document.problems:
        raise CaseError(document.file, document.problems)
    return model


def _echoes(document: Document, loc: _Path) -> bool:
    """Whether a finding only follows from a trap that is reported already."""
    path = _existing(document, loc)
    return any(path[:length] in document.trapped for length in range(len(path) + 1))


def _problem(document: Document, details: ErrorDetails) -> Problem:
    path = _existing(document, details["loc"])
    context = details.get("ctx") or {}
    match details["type"]:
        case "case":
            return Problem(_own_mark(document, details["loc"], path, context), context["message"])
        case "missing":
            missing = details["loc"][-1]
            return Problem(document.key_mark(path), _missing(path, str(missing)))
        case "extra_forbidden":
            return Problem(document.key_mark(path), _unknown_key(details["loc"]))
        case "literal_error":
            return Problem(document.mark(path), _not_one_of(details["input"], context["expected"]))
    return Problem(document.mark(path), _plain_words(details))


def _own_mark(document: Document, loc: _Path, path: _Path, context: dict[str, Any]) -> Mark:
    """The place of a problem of our own; a word of a command written as one text has only the whole text's place."""
    if loc and loc[-1] == "[key]":
        return document.key_mark(path)
    split = len(loc) > 1 and loc[-2] == "argv" and path[-1:] != loc[-1:]
    return offset_mark(document, (*path, *context["path"]), None if split else context["offset"])


def _existing(document: Document, loc: _Path) -> _Path:
    """The path in the file of a pydantic location, which has parts of its own where a short form was written out."""
    path: _Path = ()
    for part in loc:
        if (*path, part) in document.values:
            path = (*path, part)
    return path


_EXAMPLES = {
    "case": "case: my_kernel",
    "target": "target: {command: [./bench, '{n}']}",
    "entry": "entry: my_kernel",
    "source": "source: my_kernel.cu",
    "grid": "grid: 1",
    "block": "block: 128",
}


def _missing(path: _Path, key: str) -> str:
    where = f"`{_dotted(path)}`" if path else "the case"
    return f"{where} lacks `{key}`, add {_EXAMPLES.get(key, f'{key}:')}"


def _dotted(path: _Path) -> str:
    shown = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path if part != "")
    return "".join(shown).lstrip(".")


def _unknown_key(loc: _Path) -> str:
    key = str(loc[-1])
    model = _model_at(loc[:-1])
    known = [field.alias or name for name, field in model.model_fields.items()] if model else []
    where = f" in `{_dotted(loc[:-1])}`" if len(loc) > 1 else ""
    for section, owner in _SECTIONS.items():
        if owner is not model and key in owner.model_fields:
            place = f"it belongs below `{section}`" if section else "it belongs at the left margin"
            return f"unknown key {key!r}{where}, {place}"
    return f"unknown key {key!r}{where}{suggestion(key, known) or ', known here: ' + ', '.join(known)}"


_SECTIONS: dict[str, type[BaseModel]] = {
    "": CaseModel,
    "target": TargetModel,
    "target.kernel": KernelModel,
    "target.command": CommandModel,
    "limits": LimitsModel,
    "timing": TimingModel,
    "requires": RequiresModel,
    "gate": GateModel,
}


def _model_at(loc: _Path) -> type[BaseModel] | None:
    """The model that stands at a location, found by the annotations of the fields on the way."""
    model: type[BaseModel] | None = CaseModel
    for part in loc:
        if model is None or isinstance(part, int):
            continue
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        if part in fields:
            model = next(_models_in(fields[part].annotation), None)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _not_one_of(given: Any, expected: str) -> str:
    known = re.findall(r"'([^']*)'", expected)
    listed = f"{given!r} is none of {', '.join(known)}"
    return f"{given!r} is not known here{near}" if (near := suggestion(str(given), known)) else listed


_WORDS = {
    "int_type": "needs a whole number",
    "int_from_float": "needs a whole number",
    "float_type": "needs a number",
    "bool_type": "needs true or false",
    "dict_type": "needs a mapping",
    "model_type": "needs a mapping",
    "model_attributes_type": "needs a mapping",
    "tuple_type": "needs a list",
    "list_type": "needs a list",
}


def _plain_words(details: ErrorDetails) -> str:
    given = details["input"]
    shown = {dict: "a mapping", list: "a list", type(None): "nothing"}.get(type(given), repr(given))
    words = _WORDS.get(details["type"])
    if words is None:
        message = details["msg"].replace("Input should", "it must")
        return f"{message}, not {shown}"
    return f"{words}, not {shown}"
