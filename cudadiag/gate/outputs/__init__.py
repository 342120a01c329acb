"""The formats a gate's report can be written in. To add one: a module with a `FORMAT`, and a line here."""

from __future__ import annotations

from cudadiag.gate.outputs import github, gitlab, json, junit, markdown, sarif
from cudadiag.gate.outputs.interface import Format

FORMATS: dict[str, Format] = {
    module.FORMAT.name: module.FORMAT for module in (junit, sarif, github, gitlab, markdown, json)
}
