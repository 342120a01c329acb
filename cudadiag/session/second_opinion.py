"""The joint between core files and cuda-gdb: where it is, its answer is compared with ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cudadiag.evidence import Reading
from cudadiag.evidence.core.debugger import opinion
from harness.debugger import ask_core


def with_opinion(reading: Reading, core_path: str | None) -> Reading:
    """The reading with cuda-gdb's opinion on its core file; unchanged where there is no core file or no cuda-gdb."""
    if reading.core is None or core_path is None:
        return reading
    text = ask_core(Path(core_path))
    return (
        reading if text is None else replace(reading, core=replace(reading.core, opinion=opinion(reading.core, text)))
    )
