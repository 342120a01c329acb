"""Just enough of a cubin (a 64-bit ELF file of machine code): its functions, its line table, overwriting
instructions; and the names of the kernels of PTX.

Loaded by path in the child, where nothing but the standard library may be expected. The line table is DWARF 2 to 4
(https://dwarfstd.org, section 6.2); addresses in it are relocated by `.rel(a).debug_line`.
"""

from __future__ import annotations

import re
import struct

INSTRUCTION_BYTES = 16  # of every architecture since sm_70
_ILLEGAL = b"\xff" * INSTRUCTION_BYTES
# Opcodes of sm_70 to sm_120, read off nvdisasm's output; the bits above the mask tell the forms of the operands apart.
_OPCODE_MASK = 0x1FF
_ATOMICS = (0x18A, 0x18B, 0x18C, 0x18D, 0x18E, 0x1A2, 0x1A3, 0x1A6, 0x1A8, 0x1A9)  # ATOM, ATOMS, ATOMG, RED, REDG
_EFFECTS = frozenset((0x185, 0x186, 0x188, 0x11D, 0x143, 0x144, 0x150, *_ATOMICS))  # ST, STG, STS, BAR, CALL, RET
_CONDITIONS = frozenset((0x00B, 0x00C, 0x01C, 0x02A, 0x034, 0x08C, 0x09C))  # what sets predicates: ISETP and the like
_ALWAYS = 7  # the predicate PT
_SHT_RELA, _SHT_REL = 4, 9
_STT_FUNC = 2
_PTX_ENTRY = re.compile(rb"^\s*(?:\.visible\s+)?\.entry\s+([\w$]+)", re.MULTILINE)


class BadCubin(Exception):
    """The bytes are not what was expected, or hold no machine code at the asked place."""


class Section:
    """One section header, with its name."""

    def __init__(self, name: str, fields: tuple[int, ...]) -> None:
        self.name = name
        _, self.kind, _, _, self.offset, self.size, self.link, self.info, _, self.entry_size = fields


class Cubin:
    """A parsed cubin; `data` is its bytes, changed by `overwrite`. Raises BadCubin for anything that is no 64-bit
    ELF."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        try:
            self.sections = self._read_sections()
            self.symbols = self._read_symbols()
        except (OverflowError, struct.error, IndexError, ValueError) as error:
            raise BadCubin(f"not a cubin: {error}") from error

    def _read_sections(self) -> list[Section]:
        if self.data[:5] != b"\x7fELF\x02":
            raise ValueError("no 64-bit ELF header")
        (table,) = struct.unpack_from("<Q", self.data, 0x28)
        entry_size, count, names_index = struct.unpack_from("<HHH", self.data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + i * entry_size) for i in range(count)]
        names = headers[names_index][4]
        return [Section(self._text(names + header[0]), header) for header in headers]

    def _text(self, offset: int) -> str:
        return self.data[offset : self.data.index(0, offset)].decode("utf-8", "replace")

    def _read_symbols(self) -> list[tuple[str, int, int]]:
        """(name, type, section index) of every symbol."""
        table = self.section(".symtab")
        if table is None:
            return []
        names = self.sections[table.link].offset
        found = []
        for offset in range(table.offset, table.offset + table.size, 24):
            name, info, _, index, _, _ = struct.unpack_from("<IBBHQQ", self.data, offset)
            found.append((self._text(names + name), info & 15, index))
        return found

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def functions(self) -> list[str]:
        """Names of the functions that have a section of their own, as the driver knows them (mangled for C++)."""
        return [name for name, kind, _ in self.symbols if kind == _STT_FUNC and self.section(".text." + name)]

    def lines(self, function: str) -> list[tuple[int, int, str, int]]:
        """(first pc, end pc, file name, line) rows of a function, by pc. [] without line information."""
        section = self.section(".debug_line")
        if section is None:
            return []
        try:
            relocations = self._relocations(self.sections.index(section))
            rows = _LineProgram(bytes(self.data[section.offset : section.offset + section.size])).rows()
        except (OverflowError, struct.error, IndexError, ValueError) as error:
            raise BadCubin(f"unreadable line table: {error}") from error
        text = self.section(".text." + function)
        wanted = -1 if text is None else self.sections.index(text)
        return sorted(
            (begin, end, name, line)
            for operand, begin, end, name, line in rows
            if relocations.get(operand, 0) == wanted and begin < end
        )

    def _relocations(self, target: int) -> dict[int, int]:
        """Place in the target section -> index of the section that its address is in."""
        found = {}
        for section in self.sections:
            if section.info != target or section.kind not in (_SHT_REL, _SHT_RELA):
                continue
            size = 24 if section.kind == _SHT_RELA else 16
            for offset in range(section.offset, section.offset + section.size, size):
                place, info = struct.unpack_from("<QQ", self.data, offset)
                found[place] = self.symbols[info >> 32][2]
        return found

    def effects_of_line(self, function: str, path: str, line: int) -> list[int]:
        """Where a source line stores, calls, returns, waits at a barrier or changes memory atomically: pcs, in order.

        Only those: the compiler computes ahead of the branches that guard a line, and unrolls loops into several
        copies of it, but it cannot move what others would see. So the line's path meets one of these, and no other
        path does. Raises BadCubin when the line has none there, or when an earlier line's condition became a
        predicate on them: such an instruction is reached by threads that do not run the line.
        """
        base = path.rpartition("/")[2]
        rows = [row for row in self.lines(function) if row[3] == line and row[2].rpartition("/")[2] == base]
        pcs = [pc for begin, end, _, _ in rows for pc in range(begin, end, INSTRUCTION_BYTES)]
        effects = [pc for pc in pcs if self._word(function, pc) & _OPCODE_MASK in _EFFECTS]
        if not effects:
            what = "no machine code" if not pcs else "no store, call, return, barrier or atomic operation"
            raise BadCubin(f"line {line} of {base} has {what} in {function}")
        own_condition = any(self._word(function, pc) & _OPCODE_MASK in _CONDITIONS for pc in pcs)
        if not own_condition and any(self._word(function, pc) >> 12 & 15 != _ALWAYS for pc in effects):
            raise BadCubin(f"line {line} of {base} is guarded by a predicate in {function}, not by a branch")
        return effects

    def _word(self, function: str, pc: int) -> int:
        """The first half of an instruction: opcode (bits 0 to 11), predicate (12 to 15) and operands."""
        section = self.section(".text." + function)
        if section is None or not 0 <= pc <= section.size - INSTRUCTION_BYTES:
            raise BadCubin(f"there is no instruction at {pc:#x} in {function}")
        return int.from_bytes(self.data[section.offset + pc : section.offset + pc + 8], "little")

    def overwrite(self, function: str, pc: int) -> bytes:
        """Make the instruction at `pc` of a function an illegal one; returns what was there. Raises BadCubin."""
        section = self.section(".text." + function)
        if section is None or pc % INSTRUCTION_BYTES or not 0 <= pc < section.size:
            raise BadCubin(f"there is no instruction at {pc:#x} in {function}")
        place = section.offset + pc
        old = bytes(self.data[place : place + INSTRUCTION_BYTES])
        self.data[place : place + INSTRUCTION_BYTES] = _ILLEGAL
        return old


def find_function(names: list[str], entry: str) -> str | None:
    """The function named `entry`, or the only C++ function whose plain name it is; None if there is none, or
    several."""
    if entry in names:
        return entry
    mangled = [name for name in names if name.startswith(f"_Z{len(entry)}{entry}")]
    return mangled[0] if len(mangled) == 1 else None


def ptx_kernels(ptx: bytes) -> list[str]:
    """Names of the kernels of a PTX module, as the driver knows them."""
    return [name.decode() for name in _PTX_ENTRY.findall(ptx)]


class _LineProgram:
    """The state machine of a `.debug_line` section."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.found: list[tuple[int, int, int, str, int]] = []
        self._start_sequence()

    def rows(self) -> list[tuple[int, int, int, str, int]]:
        """(place of the sequence's address operand, first pc, end pc, file name, line) of every row."""
        while self.at < len(self.data):
            self._unit()
        return self.found

    def _start_sequence(self) -> None:
        self.operand = self.pc = 0
        self.file = self.line = 1
        self.open_row: tuple[int, int, int] | None = None  # pc, file, line of the row that the next one ends

    def _unit(self) -> None:
        (length,) = self._take("<I")
        end = self.at + length
        (version,) = self._take("<H")
        if not 2 <= version <= 4:
            raise ValueError(f"line table version {version}")
        (header_length,) = self._take("<I")
        program = self.at + header_length
        (self.min_length,) = self._take("<B")
        if version >= 4:
            self._take("<B")
        _, self.line_base, self.line_range, self.opcode_base = self._take("<BbBB")
        if not self.line_range or not self.opcode_base:
            raise ValueError("a line table header of zeros")
        self.operands = self._take(f"<{self.opcode_base - 1}B")
        self.files = self._files()
        self.at = program
        self._start_sequence()
        while self.at < end:
            self._step()
        self.at = end

    def _files(self) -> list[str]:
        folders = [""]
        while (folder := self._string()) != "":
            folders.append(folder)
        files = [""]
        while (name := self._string()) != "":
            folder = folders[self._unsigned()]
            self._unsigned()
            self._unsigned()
            files.append(f"{folder}/{name}" if folder else name)
        return files

    def _step(self) -> None:
        (opcode,) = self._take("<B")
        if opcode >= self.opcode_base:
            self._advance((opcode - self.opcode_base) // self.line_range)
            self.line += self.line_base + (opcode - self.opcode_base) % self.line_range
            self._emit()
        elif opcode == 0:
            self._extended()
        else:
            self._standard(opcode)

    def _standard(self, opcode: int) -> None:
        if opcode == 1:  # copy
            self._emit()
        elif opcode == 2:  # advance_pc
            self._advance(self._unsigned())
        elif opcode == 3:  # advance_line
            self.line += self._signed()
        elif opcode == 4:  # set_file
            self.file = self._unsigned()
        elif opcode == 8:  # const_add_pc
            self._advance((255 - self.opcode_base) // self.line_range)
        elif opcode == 9:  # fixed_advance_pc
            self.pc += self._take("<H")[0]
        else:
            for _ in range(self.operands[opcode - 1]):
                self._unsigned()

    def _extended(self) -> None:
        after = self._unsigned() + self.at
        (opcode,) = self._take("<B")
        if opcode == 1:  # end_sequence
            self._emit()
            self._start_sequence()
        elif opcode == 2:  # set_address: 0 here, the relocation of this place says of which function
            self.operand = self.at
            (self.pc,) = self._take("<Q")
        self.at = after  # also over the vendor's own, such as those of inlined calls

    def _advance(self, instructions: int) -> None:
        self.pc += instructions * self.min_length

    def _emit(self) -> None:
        """End the open row where the next one begins, and open that."""
        if self.open_row is not None:
            begin, file, line = self.open_row
            self.found.append((self.operand, begin, self.pc, self.files[file], line))
        self.open_row = (self.pc, self.file, self.line)

    def _take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def _string(self) -> str:
        end = self.data.index(0, self.at)
        text = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return text

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value

    def _signed(self) -> int:
        begin = self.at
        value = self._unsigned()
        bits = 7 * (self.at - begin)
        return value - (1 << bits) if value >> (bits - 1) else value
