"""The outer ELF file of a GPU core: its section table and the rows of its tables.

A core of a busy GPU has a section or more for every thread, hundreds of thousands of them, so the table is read as one
array and only what is asked for is touched. Layout: cudacoredump.h (NVIDIA/cuda-gdb on GitHub). Rows grow with the
driver, so they are cut by the section's own entry size and read as far as they reach.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

EM_CUDA = 190
ET_CORE = 4
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_CUDA_TYPES = 0x80000000
MAX_SECTIONS = 4_000_000


class NotACore(ValueError):
    """The bytes are no GPU core file; the text says why."""


@dataclass(frozen=True)
class Section:
    """One section: `kind` counts from NVIDIA's first own type (1 managed memory, 7 relocated image, 9 devices, ...)."""

    index: int
    kind: int
    offset: int
    size: int
    entry: int
    parent: int  # index of the section this one belongs to
    row: int  # row of the parent this one belongs to


class CoreFile:
    """The sections of a GPU core file. Raises NotACore for anything else."""

    def __init__(self, data: bytes) -> None:
        if len(data) < _HEADER.size or data[:4] != b"\x7fELF":
            raise NotACore("not an ELF file")
        fields = _HEADER.unpack_from(data)
        if data[4] != 2 or data[5] != 1 or fields[2] != EM_CUDA:
            raise NotACore("an ELF file, but not of a GPU")
        if fields[1] != ET_CORE:
            raise NotACore("GPU machine code, not a core file")
        self.data = data
        self._offset, self._size = fields[6], fields[11]
        if self._size < _SECTION.size or self._offset == 0 or self._offset + self._size > len(data):
            raise NotACore("cut off: its section table is missing (a dump that was killed before it ended)")
        first = _SECTION.unpack_from(data, self._offset)
        self.count = min(fields[12] or first[5], (len(data) - self._offset) // self._size, MAX_SECTIONS)
        self.strings = self._string_section()

    def sections(self, *kinds: int) -> Iterator[Section]:
        """The sections of these kinds, in the order of the file."""
        wanted = {_CUDA_TYPES + kind for kind in kinds}
        for index in range(self.count):
            at = self._offset + index * self._size
            if int.from_bytes(self.data[at + 4 : at + 8], "little") in wanted:
                yield self._section(index)

    def _section(self, index: int) -> Section:
        fields = _SECTION.unpack_from(self.data, self._offset + index * self._size)
        return Section(index, fields[1] - _CUDA_TYPES, fields[4], fields[5], fields[9], fields[6], fields[7])

    def _string_section(self) -> bytes:
        """`.strtab`: the string section that is not the section names' (the last one, by the header)."""
        fields = _HEADER.unpack_from(self.data)
        for index in range(self.count - 1, max(-1, self.count - 50), -1):
            section = _SECTION.unpack_from(self.data, self._offset + index * self._size)
            if section[1] == 3 and index != fields[13]:
                return self.data[section[4] : section[4] + section[5]]
        return b""

    def bytes_of(self, section: Section) -> bytes:
        return self.data[section.offset : section.offset + section.size]

    def rows(self, section: Section, layout: struct.Struct) -> list[tuple[int, ...]]:
        """The rows of a table by `layout`; fields beyond the end of a shorter row (an older driver's) read as 0."""
        data, step = self.bytes_of(section), section.entry
        if step < 4:
            return []
        short = max(0, layout.size - step)
        return [
            layout.unpack(data[at : at + step][: layout.size] + bytes(short))
            for at in range(0, len(data) - step + 1, step)
        ]

    def text(self, offset: int) -> str | None:
        """A string of the file's own string table; offset 0 means none."""
        stop = self.strings.find(b"\0", offset) if 0 < offset < len(self.strings) else -1
        return self.strings[offset:stop].decode("utf-8", "replace") if stop > offset else None
