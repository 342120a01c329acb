"""The machine code inside a core file (relocated cubins): which function an address is in, and which source line.

pyelftools reads the cubins; it is imported only here. Without it there are no names and no lines, and the reading says
so.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from cudadiag.evidence.core.lines import LineTable, line_rows
from cudadiag.evidence.names import base_name
from cudadiag.evidence.sanitizer.records import Frame

DAMAGED = (
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    OverflowError,
    struct.error,
    EOFError,
    MemoryError,
)
"""What pyelftools raises on damaged files besides its own errors."""


class ReaderMissing(Exception):
    """pyelftools is not installed."""


@dataclass(frozen=True)
class Function:
    """One function of loaded machine code. A device function that was cloned into a kernel lies inside the kernel."""

    start: int
    size: int
    symbol: str

    @property
    def name(self) -> str:
        return base_name(self.symbol) or self.symbol

    @property
    def kernel_symbol(self) -> str:
        """The kernel a clone `$kernel$callee` belongs to; for others the function itself."""
        return self.symbol.lstrip("$").split("$", 1)[0] if self.symbol.startswith("$") else self.symbol


@dataclass
class Image:
    """One cubin: its loaded functions and its line table."""

    functions: list[Function]
    lines: LineTable


class Code:
    """All loaded machine code of a core file."""

    def __init__(self, images: Iterable[Image]) -> None:
        self._by_start = sorted(
            ((function, image) for image in images for function in image.functions), key=lambda pair: pair[0].start
        )
        self._starts = [function.start for function, _ in self._by_start]
        self._longest = max((function.size for function, _ in self._by_start), default=0)

    def function_at(self, address: int) -> Function | None:
        """The innermost function around an address: the shortest one that holds it."""
        found = self._around(address)
        return min((function for function, _ in found), key=lambda f: f.size, default=None)

    def place(self, address: int) -> tuple[Frame, ...]:
        """The source place of an address with the calls inlined around it, innermost first; () where unknown."""
        for _, image in self._around(address):
            frames = image.lines.place(address)
            if frames:
                return frames
        return ()

    def _around(self, address: int) -> list[tuple[Function, Image]]:
        at = bisect.bisect_right(self._starts, address) - 1
        found = []
        while at >= 0 and self._starts[at] + self._longest > address:
            function = self._by_start[at][0]
            if function.start <= address < function.start + function.size:
                found.append(self._by_start[at])
            at -= 1
        return found


def read_image(data: bytes) -> Image | None:
    """The loaded functions and lines of one cubin; None where it is damaged. Raises ReaderMissing."""
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError as problem:
        raise ReaderMissing("pyelftools is not installed: pip install 'cudadiag[sanitizer]'") from problem
    try:
        file = ELFFile(BytesIO(data))
        rows = line_rows(_section(file, ".debug_line"), _section(file, ".debug_str"))
        return Image(_functions(file), LineTable(rows))
    except (ELFError, *DAMAGED):
        return None


def _section(file: Any, name: str) -> bytes:
    section = file.get_section_by_name(name)
    return bytes(section.data()) if section is not None else b""


def _functions(file: Any) -> list[Function]:
    symbols = file.get_section_by_name(".symtab")
    if symbols is None:
        return []
    return [
        Function(symbol["st_value"], symbol["st_size"], symbol.name)
        for symbol in symbols.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"] >= 0x1000 and symbol["st_size"]
    ]
