"""Builder: textual LLVM IR for one PTX function. What every emitter of an instruction talks to.

Every PTX register is an `iN` stack slot of its declared width (LLVM's SROA makes values of them); floats are bit-cast
where they are used, so typed and untyped PTX read alike. An emitter gets the builder and the instruction:

    def neg(b: Builder, x: Instruction) -> None:
        value = b.operand(x.operands[1], "s32")
        b.store(x.operands[0], "s32", b.emit(f"sub i32 0, {value}"))
"""

from __future__ import annotations

import re
import struct
from typing import NoReturn

from .irtext import IrText
from .loose import flushed_registers, loose_registers
from .ptx import WIDTH, Function, Imm, Instruction, Operand, Reg, Sink, Sym


class Unsupported(Exception):
    """This instruction is not emulated. Becomes `NotSupported` with the instruction's name and line at the border."""


class Builder(IrText):
    """Collects the IR lines of one function.

    `special` and `symbol` are for the translator to override: what a special register and a name's address are.
    """

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function
        self.slots: dict[str, int] = {}
        self.loose, self.flushed = loose_registers(function), flushed_registers(function)
        self._values: dict[str, str] = {}  # registers whose value this basic block knows
        self._labels = 0

    def fresh(self, stem: str) -> str:
        """A new label name (without `%`)."""
        self._labels += 1
        return f"{stem}{self._labels}"

    def label(self, name: str, keep: bool = False) -> None:
        """Start the basic block `name`; the one before must have ended with a terminator. `keep`: every way here comes
        from the block before, in which no register was set since, so what is known of registers stays known."""
        self.lines.append(f"{name}:")
        if not keep:
            self._values.clear()

    def unsupported(self, x: Instruction) -> NoReturn:
        """Refuse the instruction. Raises Unsupported."""
        raise Unsupported(x.name)

    def width(self, register: str) -> int:
        """Declared bits of a register. Raises Unsupported for a name that is none."""
        found = self.function.width(register)
        if found is None:
            raise Unsupported(f"register {register}")
        return found

    def slot(self, register: str) -> str:
        """The stack slot (IR pointer value) of a register."""
        if register not in self.slots:
            self.slots[register] = self.width(register)
        return slot_name(register)

    def operand(self, op: Operand, ptx_type: str) -> str:
        """The value of an operand as `iN`, N the bits of `ptx_type` (`i1` for "pred"). A register of another width is
        truncated or zero-extended; a float constant becomes its bits (converted where the types differ)."""
        if isinstance(op, Reg) and op.name in self.loose:
            return self._resized(self._canonical(self._register(op.name)[0]), 32, WIDTH[ptx_type])
        return self.raw(op, ptx_type)

    def raw(self, op: Operand, ptx_type: str) -> str:
        """As `operand`, for readers to whom all NaNs are alike: a loose register (see loose.py) as it is."""
        bits = WIDTH[ptx_type]
        if isinstance(op, Imm):
            return constant(op, ptx_type)
        if isinstance(op, Sym):
            return self._resized(self.symbol(op), 64, bits)
        if not isinstance(op, Reg):
            raise Unsupported(f"operand {op}")
        value, held = self._register(op.name)
        value = self._resized(value, held, bits)
        return self.emit(f"xor i{bits} {value}, -1") if op.negated else value

    def store(self, dest: Operand, ptx_type: str, value: str) -> None:
        """Set a destination register (or `_`) from an `iN` value, N the bits of `ptx_type`; a wider register is filled
        by the sign for `sN` types, by zeros otherwise."""
        if isinstance(dest, Sink):
            return
        if not isinstance(dest, Reg):
            raise Unsupported(f"destination {dest}")
        bits, held = WIDTH[ptx_type], self.width(dest.name)
        if held > bits:
            value = self.emit(f"{'sext' if ptx_type[0] == 's' else 'zext'} i{bits} {value} to i{held}")
        elif held < bits:
            value = self.emit(f"trunc i{bits} {value} to i{held}")
        self.line(f"store i{held} {value}, ptr {self.slot(dest.name)}")
        self._values[dest.name] = value

    def special(self, name: str) -> tuple[str, int]:
        """(value, bits) of a special register."""
        raise Unsupported(f"special register {name}")

    def symbol(self, name: Sym) -> str:
        """The address of a variable, function or parameter as i64."""
        raise Unsupported(f"symbol {name.name}")

    def _register(self, name: str) -> tuple[str, int]:
        held = self.function.width(name)
        if held is None:
            return self.special(name)
        return self.value_of(name, held), held

    def value_of(self, name: str, bits: int) -> str:
        """The value of a register: loaded from its slot once a basic block."""
        value = self._values.get(name)
        if value is None:
            value = self._values[name] = self.emit(f"load i{bits}, ptr {self.slot(name)}")
        return value

    def _canonical(self, value: str) -> str:
        """f32 bits with any NaN made the one that a GPU's arithmetic gives."""
        number = self.emit(f"bitcast i32 {value} to float")
        nan = self.emit(f"fcmp uno float {number}, 0.0")
        return self.emit(f"select i1 {nan}, i32 {0x7FFFFFFF}, i32 {value}")

    def _resized(self, value: str, held: int, bits: int) -> str:
        if held == bits:
            return value
        return self.emit(f"{'trunc' if held > bits else 'zext'} i{held} {value} to i{bits}")


def slot_name(register: str) -> str:
    """IR name of a register's stack slot."""
    return "%R." + re.sub(r"[^\w.]", "_", register.lstrip("%"))


def host_local(name: str) -> str:
    """IR name of a variable that lives in the LLVM frame."""
    return "%V." + "".join(c if c.isalnum() else "_" for c in name)


def constant(imm: Imm, ptx_type: str) -> str:
    """An immediate as the text of an `iN` constant."""
    bits, value = WIDTH[ptx_type], imm.value
    if imm.kind == "f32" and ptx_type == "f64":
        value = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", value))[0]))[0]
    elif imm.kind == "f64" and ptx_type == "f32":
        value = struct.unpack("<I", struct.pack("<f", struct.unpack("<d", struct.pack("<Q", value))[0]))[0]
    value &= (1 << bits) - 1
    if bits == 1:
        return "true" if value else "false"
    return str(value)
