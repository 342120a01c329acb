"""Case files: what is run, over which shapes, how. `load(path)` or `from_command(...)` gives a `Case`.

`case.sweep` is the ordered set of legal shapes, `case.request(shape, ...)` what the harness runs for one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cudadiag.case.axes import format_value, parse_option
from cudadiag.case.case import Case, CaseLimits
from cudadiag.case.loading import from_command, load, load_text
from cudadiag.case.locate import Found, all_cases, find_case, locate
from cudadiag.case.problems import CaseError, Mark, Problem

if TYPE_CHECKING:
    from cudadiag.case.schema import json_schema
    from cudadiag.case.startercase import KINDS as STARTER_KINDS
    from cudadiag.case.startercase import starter, starter_files

__all__ = [
    "STARTER_KINDS",
    "Case",
    "CaseError",
    "CaseLimits",
    "Found",
    "Mark",
    "Problem",
    "all_cases",
    "find_case",
    "format_value",
    "from_command",
    "json_schema",
    "load",
    "load_text",
    "locate",
    "parse_option",
    "starter",
    "starter_files",
]

_LATER = {
    "STARTER_KINDS": ("startercase", "KINDS"),
    "json_schema": ("schema", "json_schema"),
    "starter": ("startercase", "starter"),
    "starter_files": ("startercase", "starter_files"),
}


def __getattr__(name: str) -> Any:
    """What needs pydantic is imported on first use: a command that reads no case file must not pay for it."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _LATER[name]
    return getattr(import_module(f"cudadiag.case.{module}"), attribute)
