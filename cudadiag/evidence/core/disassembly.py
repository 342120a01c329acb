"""What `nvdisasm --print-code --print-line-info-inline` prints, as instructions with offset, text and source lines.

Pure and total. Running nvdisasm is the harness's work; `cubin_at` gives the bytes to run it on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cudadiag.evidence.core.sections import CoreFile, NotACore
from cudadiag.evidence.sanitizer.records import Frame

_SECTION = re.compile(r"\.text\.(?P<name>[^\s:,\"]+):\s*$")
_LABEL = re.compile(r"(?P<name>[$A-Za-z_][^\s:]*):\s*$")
_INSTRUCTION = re.compile(r"\s*/\*(?P<offset>[0-9a-fA-F]{4,16})\*/\s+(?P<text>[^;/]+?)\s*(?:;|/\*|$)")
_LINE = re.compile(r'\s*//## File "(?P<file>[^"]*)", line (?P<line>\d{1,9})')


@dataclass(frozen=True)
class Instruction:
    """One machine instruction. `offset` is from the start of its section, or an address in relocated code; `frames`
    are its source lines, innermost first."""

    offset: int
    text: str
    section: str | None = None  # the kernel whose section it is in
    function: str | None = None  # the last label: a device function kept apart inside the kernel, else the kernel
    frames: tuple[Frame, ...] = ()


def instructions(listing: str) -> Iterator[Instruction]:
    """Every instruction of a listing, in order."""
    section = function = None
    frames: list[Frame] = []
    fresh = True
    for line in listing.splitlines():
        place = _LINE.match(line)
        if place:
            frames = frames if not fresh else []
            fresh = False
            frames.append(Frame(file=place["file"], line=int(place["line"])))
            continue
        found = _INSTRUCTION.match(line)
        if found:
            fresh = True
            yield Instruction(int(found["offset"], 16), found["text"], section, function, tuple(frames))
            continue
        head = _SECTION.match(line)
        label = None if head else _LABEL.match(line)
        if head:
            section = function = head["name"]
            frames, fresh = [], True
        elif label and not label["name"].startswith((".L", "L_x")):
            function = label["name"]


def instruction_at(listing: str, offset: int, section: str | None = None) -> Instruction | None:
    """The instruction at an offset of a kernel's section (by its mangled name), or at an address of relocated code."""
    for found in instructions(listing):
        if found.offset == offset and (section is None or found.section == section):
            return found
    return None


def cubin_at(core: bytes, pc: int) -> bytes | None:
    """The relocated machine code in a core file that holds an address; None where there is none, or no core."""
    from cudadiag.evidence.core.image import ReaderMissing, read_image

    try:
        file = CoreFile(core)
        for section in file.sections(7):
            data = file.bytes_of(section)
            image = read_image(data)
            if image and any(f.start <= pc < f.start + f.size for f in image.functions):
                return data
    except (NotACore, ReaderMissing):
        return None
    return None
