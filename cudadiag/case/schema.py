"""The JSON Schema of case files, and the reference of their keys, both from the pydantic models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cudadiag.case.models import CaseModel

SCHEMA_ID = "https://cudadiag.readthedocs.io/schema/case.schema.json"


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a case file, for editors and `cudadiag schema`.

    It says which keys there are and what kind of value they take; what only cudadiag can check (expressions, names,
    files) is left to loading.
    """
    schema = _without_titles(CaseModel.model_json_schema(by_alias=True))
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "$id": SCHEMA_ID, "title": "cudadiag case file", **schema}


def _without_titles(schema: Any, of_properties: bool = False) -> Any:
    """The schema without the titles that pydantic makes out of names; a property may be called `title`."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = schema.items() if of_properties else [(k, v) for k, v in schema.items() if k != "title"]
    return {key: _without_titles(value, key in ("properties", "$defs")) for key, value in kept}


_ORDER = (
    ("", "The case"),
    ("TargetModel", "`target`"),
    ("KernelModel", "`target.kernel`, and each of `target.kernels`"),
    ("ArgModel", "`args`: the arguments of a kernel"),
    ("FillModel", "`fill`, written out"),
    ("ToleranceModel", "`tolerance`"),
    ("PythonModel", "`target.python`"),
    ("CommandModel", "`target.command`"),
    ("BuildModel", "`build`"),
    ("LimitsModel", "`limits`"),
    ("TimingModel", "`timing`"),
    ("RequiresModel", "`requires`"),
    ("PlantModel", "`plant`"),
    ("GateModel", "`gate`"),
)


def reference() -> str:
    """Every key of a case file as Markdown tables, for docs/reference/case-file.md."""
    schema = json_schema()
    return "\n".join(line for name, title in _ORDER for line in _section(schema, name, title))


def _section(schema: Mapping[str, Any], name: str, title: str) -> Iterator[str]:
    part = schema["$defs"][name] if name else schema
    required = set(part.get("required", ()))
    yield f"### {title}\n"
    yield f"{' '.join(part['description'].split())}\n"
    yield "| key | value | |"
    yield "|---|---|---|"
    for key, value in part["properties"].items():
        notes = [value.get("description", "")]
        if key in required:
            notes.insert(0, "**needed**")
        elif (default := _default(value)) is not None:
            notes.append(f"default `{default}`")
        yield f"| `{key}` | {_kind(value)} | {'; '.join(filter(None, notes))} |"
    yield ""


def _default(value: Mapping[str, Any]) -> str | None:
    """A default worth printing: not "nothing", and not one that the description names already."""
    default = value.get("default")
    if default in (None, [], {}) or isinstance(default, dict) or "default" in value.get("description", ""):
        return None
    return (
        str(default).lower()
        if isinstance(default, bool)
        else f"{default:g}"
        if isinstance(default, float)
        else str(default)
    )


_KINDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
_LISTED = 3  # choices shown with "or"; more are separated by commas


def _kind(value: Mapping[str, Any]) -> str:
    """The kinds of value a key takes, in words."""
    if "x-kind" in value:
        return re.sub(r"(\{expressions\}|file\.py:function|512MiB|5m)", r"`\1`", value["x-kind"])
    if "enum" in value:
        return (" or " if len(value["enum"]) <= _LISTED else ", ").join(f"`{item}`" for item in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if "$ref" in value:
        return _below(value["$ref"])
    if "anyOf" in value:
        kinds = dict.fromkeys(_kind(item) for item in value["anyOf"] if item.get("type") != "null")
        return ", or ".join(kinds)
    if value.get("type") == "array":
        return f"list of {_kind(value['items'])}"
    if isinstance(value.get("additionalProperties"), dict):
        return f"mapping of name: {_kind(value['additionalProperties'])}"
    return _KINDS.get(value.get("type", ""), "mapping")


def _below(ref: str) -> str:
    """A link to the section of a model."""
    title = dict(_ORDER)[re.sub(r".*/", "", ref)]
    anchor = re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")
    return f"[mapping](#{anchor})"
