"""What a format is: a name, and the bytes of a report. Writing them is the same for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cudadiag.gate.report import GateReport

Render = Callable[[GateReport], bytes]


@dataclass(frozen=True)
class Format:
    """`render` is pure and total: any report, also of a gate under way, gives a complete document."""

    name: str
    render: Render
    help: str
