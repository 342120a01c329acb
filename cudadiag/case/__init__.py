"""Case files: what is run, over which shapes, how. `load(path)` or `from_command(...)` gives a `Case`.

`case.sweep` is the ordered set of legal shapes, `case.request(shape, ...)` what the harness runs for one of them.
"""

from __future__ import annotations

from cudadiag.case.axes import format_value, parse_option
from cudadiag.case.case import Case, CaseLimits
from cudadiag.case.loading import from_command, load, load_text
from cudadiag.case.problems import CaseError, Mark, Problem

__all__ = [
    "Case",
    "CaseError",
    "CaseLimits",
    "Mark",
    "Problem",
    "format_value",
    "from_command",
    "load",
    "load_text",
    "parse_option",
]
