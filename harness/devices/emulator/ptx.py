"""What a PTX module is made of: frozen dataclasses, one per syntactic thing. `ptx_reader.parse` builds them from text.

Nothing here interprets an instruction: opcodes and modifiers stay strings, so both of NVRTC's dialects (typed registers
up to sm_90, untyped `.b32` from sm_100 on) read alike. Syntax: NVIDIA's PTX ISA manual, chapters 4, 5 and 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

WIDTH: dict[str, int] = {
    **{"pred": 1, "b8": 8, "u8": 8, "s8": 8, "e4m3": 8, "e5m2": 8, "b128": 128},
    **{"b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "e4m3x2": 16, "e5m2x2": 16},
    **{"b32": 32, "u32": 32, "s32": 32, "f32": 32, "tf32": 32, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32},
    **{"b64": 64, "u64": 64, "s64": 64, "f64": 64, "f32x2": 64},
}
"""Bits of every PTX type name."""


class PtxError(Exception):
    """The text is not PTX as this reader knows it; the message names the line."""


@dataclass(frozen=True)
class Reg:
    """A register or special register (`%tid.x`), as an operand; `negated` for `!%p`."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class Imm:
    """A constant. `kind` "int": `value` is the (possibly negative) number; "f32", "f64": `value` is the bit pattern."""

    value: int
    kind: str = "int"


@dataclass(frozen=True)
class Sym:
    """A name that is no register: variable, function, label, call parameter; with a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Sink:
    """`_`: a destination nobody reads."""


@dataclass(frozen=True)
class Addr:
    """`[base+offset]`."""

    base: Reg | Sym | Imm
    offset: int = 0


@dataclass(frozen=True)
class Vec:
    """`{a, b, ...}`: a vector operand."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """`d|p`: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Group:
    """`(a, b, ...)`: the arguments or results of a call."""

    items: tuple[Operand, ...]


Operand = Reg | Imm | Sym | Sink | Addr | Vec | Pair | Group


def registers_of(op: Operand) -> Iterator[str]:
    """Names of the registers an operand mentions, special ones included."""
    if isinstance(op, Reg):
        yield op.name
    elif isinstance(op, Addr):
        yield from registers_of(op.base)
    elif isinstance(op, Pair):
        yield from registers_of(op.first)
        yield from registers_of(op.second)
    elif isinstance(op, (Vec, Group)):
        for item in op.items:
            yield from registers_of(item)


@dataclass(frozen=True)
class Loc:
    """A source position. `function` is the inlined function's (mangled) name, `parent` the place it was inlined at."""

    file: str
    line: int
    column: int = 0
    function: str | None = None
    parent: Loc | None = None


@dataclass(frozen=True)
class Instruction:
    """One instruction: `opcode` "add", `mods` ("rn", "f32"), operands in PTX order; `guard` from `@%p` / `@!%p`."""

    opcode: str
    mods: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Reg | None = None
    loc: Loc | None = None
    ptx_line: int = 0

    @property
    def name(self) -> str:
        """The whole opcode as PTX spells it."""
        return ".".join((self.opcode, *self.mods))

    @property
    def type(self) -> str:
        """The last modifier that is a type: the instruction's (source) type; "" if it has none."""
        return next((m for m in reversed(self.mods) if m in WIDTH), "")


@dataclass(frozen=True)
class Label:
    """A jump target inside a function body."""

    name: str


@dataclass(frozen=True)
class Variable:
    """A declared variable or parameter. `size` in bytes (0 for an unsized `extern` array). `init`: items of `type`,
    numbers or symbols whose address is meant."""

    name: str
    space: str  # "global", "const", "shared", "local", "param"
    type: str
    align: int
    size: int
    init: tuple[Imm | Sym, ...] = ()
    array: bool = False


@dataclass(frozen=True)
class Prototype:
    """What `.callprototype` says of an indirect call: byte sizes of result and parameters."""

    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]


@dataclass(frozen=True)
class Function:
    """A kernel (`entry`) or device function; `body` is None for a declaration."""

    name: str
    entry: bool
    params: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    body: tuple[Instruction | Label, ...] | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict)
    registers: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: Mapping[str, Prototype] = field(default_factory=dict)
    directives: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def width(self, name: str) -> int | None:
        """Bits of the register `name` (1 for predicates), None where it is no register of this function.

        `registers` holds single names, `ranges` the prefix of a range (`.reg .b32 %r<9>` -> {"%r": 32}).
        """
        found = self.registers.get(name)
        if found is not None:
            return found
        prefix = name.rstrip("0123456789")
        return self.ranges.get(prefix) if prefix != name else None


@dataclass(frozen=True)
class Module:
    """A whole PTX text."""

    version: str
    target: str
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
