"""The joint between core files and the disassembler: which instruction was at the pc of an exception."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from pathlib import Path

from cudadiag.evidence import Reading
from cudadiag.evidence.core import CoreException, CoreReading
from cudadiag.evidence.core.disassembly import cubin_at, instruction_at
from harness.disassembly import disassemble

MOST_PLACES = 8
NO_INSTRUCTION = "no instruction"
"""What stands for the instruction where the disassembler says there is none."""
_COMPLAINT = re.compile(r"(Unrecognized operation[^\n]*|Illegal instruction found|Undefined[^\n]*)")


def with_instructions(reading: Reading, core_path: str | None) -> Reading:
    """The reading with the instruction of the first exception, or of where running warps stand, of its core file.

    Unchanged where there is no core file, no disassembler, or no code at that pc.
    """
    core = reading.core
    if core is None or core_path is None:
        return reading
    try:
        data = Path(core_path).read_bytes()
    except OSError:
        return reading
    return replace(reading, core=_with_first(core, data))


def _with_first(core: CoreReading, data: bytes) -> CoreReading:
    if core.exceptions:
        return replace(core, exceptions=(_asked(core.exceptions[0], data), *core.exceptions[1:]))
    asked: dict[int | None, CoreException] = {}  # warps of one kernel mostly stand at one or two places
    for warp in core.running:
        if warp.pc not in asked and len(asked) < MOST_PLACES:
            asked[warp.pc] = _asked(warp, data)
    return replace(core, running=tuple(_as_asked(warp, asked.get(warp.pc)) for warp in core.running))


def _as_asked(warp: CoreException, asked: CoreException | None) -> CoreException:
    return warp if asked is None else replace(warp, instruction=asked.instruction)


_listing = functools.lru_cache(maxsize=2)(disassemble)
"""Several places mostly lie in one and the same code."""


def _asked(found: CoreException, data: bytes) -> CoreException:
    code = cubin_at(data, found.pc) if found.pc is not None else None
    listing = _listing(code) if code is not None else None
    if listing is None or found.pc is None:
        return found
    instruction = instruction_at(listing.text, found.pc)
    if instruction is not None:
        return replace(found, instruction=instruction.text)
    complaint = _COMPLAINT.search(listing.complaints)
    return replace(found, instruction=f"{NO_INSTRUCTION}: {complaint[1]}") if complaint else found
