"""Line tables of GPU machine code: the DWARF 2 to 4 line program in a cubin's `.debug_line`, with NVIDIA's inlining
notes.

Pure and total: damaged tables give the rows read so far. Source: DWARF 4 standard, section 6.2; NVIDIA's extended
opcode 0x90 (two ULEB numbers: the row of the call, counted from 1, and the callee's name as an offset in `.debug_str`)
as nvcc writes it, compared with `nvdisasm --print-line-info-inline`.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from cudadiag.evidence.names import base_name
from cudadiag.evidence.sanitizer.records import Frame

MAX_ROWS = 2_000_000
MAX_INLINED = 64
_INLINED_CALL = 0x90


@dataclass(frozen=True)
class LineRow:
    """From `address` on, up to the next row: this line of this file; `caller` is the row of the inlined call, -1 for
    none."""

    address: int
    file: str | None
    line: int
    caller: int = -1
    function: str | None = None
    is_end: bool = False


class _End(Exception):
    """The table ends early."""


@dataclass
class _Bytes:
    """A cursor over a table; every read beyond its end raises _End."""

    data: bytes
    at: int = 0
    end: int = field(default=0)

    def number(self, size: int) -> int:
        if self.at + size > self.end:
            raise _End
        value = int.from_bytes(self.data[self.at : self.at + size], "little")
        self.at += size
        return value

    def uleb(self) -> int:
        return self._leb()[0]

    def sleb(self) -> int:
        value, bits = self._leb()
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def _leb(self) -> tuple[int, int]:
        """A number of seven bits a byte, and of how many bits in all."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80 or shift > 70:
                return value, shift

    def text(self) -> str:
        stop = self.data.find(b"\0", self.at, self.end)
        if stop < 0:
            raise _End
        value = self.data[self.at : stop].decode("utf-8", "replace")
        self.at = stop + 1
        return value


def line_rows(table: bytes, strings: bytes = b"") -> list[LineRow]:
    """Every row of every line program in `.debug_line`; `strings` is `.debug_str`."""
    rows: list[LineRow] = []
    cursor = _Bytes(table, 0, len(table))
    try:
        while cursor.at < len(table) and len(rows) < MAX_ROWS:
            cursor.end = len(table)
            length = cursor.number(4)
            cursor.end = min(len(table), cursor.at + length)
            following = cursor.end
            _Program(cursor, strings, rows, len(rows)).run()
            cursor.at = following
    except _End:
        pass
    return rows


class LineTable:
    """Rows in the order of their addresses, to be asked for the place of an address."""

    def __init__(self, rows: list[LineRow]) -> None:
        self._rows = rows
        self._order = sorted(
            (i for i, row in enumerate(rows) if row.address), key=lambda i: (rows[i].address, not rows[i].is_end)
        )
        self._addresses = [rows[i].address for i in self._order]

    def place(self, address: int) -> tuple[Frame, ...]:
        """Innermost first: the line of an address and of the calls inlined around it; () where the table has none.

        Each frame's `function` is the inlined function's name, None for the outermost (the function itself).
        """
        at = bisect.bisect_right(self._addresses, address) - 1
        while at > 0 and self._addresses[at - 1] == self._addresses[at] and self._rows[self._order[at]].is_end:
            at -= 1
        if at < 0 or self._rows[self._order[at]].is_end:
            return ()
        frames: list[Frame] = []
        index = self._order[at]
        while 0 <= index < len(self._rows) and len(frames) < MAX_INLINED:
            row = self._rows[index]
            frames.append(Frame(function=row.function, file=row.file, line=row.line))
            index = row.caller
        return tuple(frames)


class _Program:
    """One line program: header, then the opcodes that build rows."""

    def __init__(self, cursor: _Bytes, strings: bytes, rows: list[LineRow], first: int) -> None:
        self.cursor, self.strings, self.rows, self.first = cursor, strings, rows, first
        self.reset()

    def reset(self) -> None:
        self.address, self.file, self.line = 0, 1, 1
        self.caller = -1
        self.function: str | None = None

    def run(self) -> None:
        cursor = self.cursor
        version = cursor.number(2)
        if not 2 <= version <= 4:
            return
        header_length = cursor.number(4)
        program = cursor.at + header_length
        self.step = cursor.number(1)
        if version >= 4:
            cursor.number(1)  # operations per instruction
        cursor.number(1)  # default is_stmt
        base = cursor.number(1)
        self.line_base = base - 256 if base > 127 else base
        self.line_range = cursor.number(1) or 1
        self.opcode_base = cursor.number(1)
        self.operands = [0, *(cursor.number(1) for _ in range(max(0, self.opcode_base - 1)))]
        self.files = self._files()
        cursor.at = program
        while cursor.at < cursor.end and len(self.rows) < MAX_ROWS:
            self._opcode(cursor.number(1))

    def _files(self) -> list[str]:
        folders = [""]
        while name := self.cursor.text():
            folders.append(name)
        files = [""]
        while name := self.cursor.text():
            folder = self.cursor.uleb()
            self.cursor.uleb()
            self.cursor.uleb()
            inside = folders[folder] if 0 < folder < len(folders) and not name.startswith("/") else ""
            files.append(f"{inside}/{name}" if inside else name)
        return files

    def _opcode(self, opcode: int) -> None:
        if opcode >= self.opcode_base:
            self._special(opcode - self.opcode_base)
        elif opcode == 0:
            self._extended()
        else:
            self._standard(opcode)

    def _special(self, value: int) -> None:
        self.address += value // self.line_range * self.step
        self.line += self.line_base + value % self.line_range
        self._row()

    def _row(self, *, is_end: bool = False) -> None:
        file = self.files[self.file] if 0 < self.file < len(self.files) else None
        self.rows.append(LineRow(self.address, file, self.line, self.caller, self.function, is_end))

    def _standard(self, opcode: int) -> None:
        cursor = self.cursor
        if opcode == 1:
            self._row()
        elif opcode == 2:
            self.address += cursor.uleb() * self.step
        elif opcode == 3:
            self.line += cursor.sleb()
        elif opcode == 4:
            self.file = cursor.uleb()
        elif opcode == 8:
            self.address += (255 - self.opcode_base) // self.line_range * self.step
        elif opcode == 9:
            self.address += cursor.number(2)
        else:
            for _ in range(self.operands[opcode]):
                cursor.uleb()

    def _extended(self) -> None:
        cursor = self.cursor
        length = cursor.uleb()
        stop = cursor.at + length
        if length == 0:
            return
        opcode = cursor.number(1)
        if opcode == 1:
            self._row(is_end=True)
            self.reset()
            self.first = len(self.rows)  # rows of calls are counted from the start of their sequence
        elif opcode == 2:
            self.address = cursor.number(min(8, length - 1))
        elif opcode == _INLINED_CALL:
            context, name = cursor.uleb(), cursor.uleb()
            self.caller = self.first + context - 1 if context else -1
            self.function = self._name(name) if context else None
        cursor.at = stop

    def _name(self, offset: int) -> str | None:
        stop = self.strings.find(b"\0", offset) if offset < len(self.strings) else -1
        return base_name(self.strings[offset:stop].decode("utf-8", "replace")) if stop > offset else None
