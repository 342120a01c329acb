"""What every family of emitters shares: reading modifiers so that none is overlooked, and short IR idioms.

Values are textual LLVM IR names or constants of type `iN`; floats are `iN` bit patterns too and become `float` or
`double` only inside an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ..builder import Builder
from ..ptx import WIDTH, Instruction, Operand, Pair, Reg, Sink

Emitter = Callable[[Builder, Instruction], None]

ROUNDINGS = ("rn", "rz", "rm", "rp")
HALF_KINDS = ("f16", "bf16", "f16x2", "bf16x2")
QUIET_F32 = str(0x7FFFFFFF)
"""The NaN that f32 arithmetic gives on a GPU, whatever NaN went in."""


class Code(Protocol):
    """Where IR goes: the Builder of a function, or the text of a helper function."""

    def emit(self, rhs: str) -> str: ...

    def call(self, helper: str, result: str, arguments: Iterable[tuple[str, str]]) -> str: ...

    def intrinsic(self, name: str, result: str, arguments: Iterable[tuple[str, str]]) -> str: ...


class Mods:
    """The modifiers of an instruction, taken one by one. What is left at `done` is a modifier nobody knew: refused."""

    def __init__(self, b: Builder, x: Instruction) -> None:
        self._builder, self._instruction = b, x
        self._left = list(x.mods)

    def flag(self, name: str) -> bool:
        """Take a modifier if it is there."""
        if name in self._left:
            self._left.remove(name)
            return True
        return False

    def one(self, *choices: str) -> str:
        """Take the one of `choices` that is there; "" where none is."""
        found = next((m for m in self._left if m in choices), "")
        if found:
            self._left.remove(found)
        return found

    def kind(self, *allowed: str) -> str:
        """Take the last modifier, a type that must be one of `allowed`."""
        if not self._left or self._left[-1] not in allowed:
            self._builder.unsupported(self._instruction)
        return self._left.pop()

    def done(self) -> None:
        """Raises Unsupported for a modifier that was not taken."""
        if self._left:
            self._builder.unsupported(self._instruction)


def bits_of(kind: str) -> int:
    return WIDTH[kind]


def signed(kind: str) -> bool:
    return kind[0] == "s"


def operands(b: Builder, x: Instruction, kind: str, count: int) -> list[str]:
    """The first `count` sources (operands 1, 2, ...) as values of `kind`."""
    if len(x.operands) <= count:
        b.unsupported(x)
    return [b.operand(x.operands[k], kind) for k in range(1, count + 1)]


def numbers(b: Builder, x: Instruction, kind: str, count: int) -> list[str]:
    """As `operands`, for arithmetic, to which all f32 NaNs are alike."""
    if len(x.operands) <= count:
        b.unsupported(x)
    return [b.raw(x.operands[k], kind) for k in range(1, count + 1)]


def is_loose(b: Builder, op: Operand) -> bool:
    """Whether a destination may keep any NaN the CPU made (see loose.py)."""
    return isinstance(op, Reg) and op.name in b.loose


def destinations(op: Operand) -> tuple[Operand, Operand]:
    """The two destinations of `d|p`; a single one comes with a sink."""
    return (op.first, op.second) if isinstance(op, Pair) else (op, Sink())


# -- idioms ----------------------------------------------------------------------------------------------------------


def select(c: Code, condition: str, kind: str, yes: str, no: str) -> str:
    return c.emit(f"select i1 {condition}, {kind} {yes}, {kind} {no}")


def resize(c: Code, value: str, held: int, wanted: int, sign: bool = False) -> str:
    """An integer of `held` bits as one of `wanted` bits."""
    if held == wanted:
        return value
    how = "trunc" if held > wanted else "sext" if sign else "zext"
    return c.emit(f"{how} i{held} {value} to i{wanted}")


def minimum(c: Code, width: int, left: str, right: str, sign: bool = False) -> str:
    low = c.emit(f"icmp {'slt' if sign else 'ult'} i{width} {left}, {right}")
    return select(c, low, f"i{width}", left, right)


def maximum(c: Code, width: int, left: str, right: str, sign: bool = False) -> str:
    high = c.emit(f"icmp {'sgt' if sign else 'ugt'} i{width} {left}, {right}")
    return select(c, high, f"i{width}", left, right)


def as_float(c: Code, value: str) -> str:
    return c.emit(f"bitcast i32 {value} to float")


def float_bits(c: Code, value: str) -> str:
    return c.emit(f"bitcast float {value} to i32")


def as_double(c: Code, value: str) -> str:
    return c.emit(f"bitcast i64 {value} to double")


def double_bits(c: Code, value: str) -> str:
    return c.emit(f"bitcast double {value} to i64")


def flush(c: Code, value: str) -> str:
    """.ftz: a subnormal f32 (bits) becomes a zero of its sign."""
    exponent = c.emit(f"and i32 {value}, {0x7F800000}")
    tiny = c.emit(f"icmp eq i32 {exponent}, 0")
    zero = c.emit(f"and i32 {value}, {-0x80000000}")
    return select(c, tiny, "i32", zero, value)


def saturate(c: Code, value: str) -> str:
    """.sat: f32 bits clamped to [+0, 1]; a NaN becomes +0."""
    number = as_float(c, value)
    above = c.emit(f"fcmp ogt float {number}, 0.0")
    low = select(c, above, "float", number, "0.0")
    over = c.emit(f"fcmp ogt float {low}, 1.0")
    return float_bits(c, select(c, over, "float", "1.0", low))


INVALID_F64 = str(0xFFF8000000000000)
"""The NaN of an invalid f64 operation without a NaN operand."""
_QUIET_BIT = str(1 << 51)


def is_nan_f64(c: Code, value: str) -> str:
    number = as_double(c, value)
    return c.emit(f"fcmp uno double {number}, {number}")


def quiet_f64(c: Code, result: str, sources: Iterable[str]) -> str:
    """f64 bits where a NaN is the last NaN among the sources, made quiet: f64 arithmetic keeps payloads."""
    nan = INVALID_F64
    for source in sources:
        nan = select(c, is_nan_f64(c, source), "i64", c.emit(f"or i64 {source}, {_QUIET_BIT}"), nan)
    return select(c, is_nan_f64(c, result), "i64", nan, result)


def quiet(c: Code, number: str) -> str:
    """A float as bits, any NaN as the one NaN a GPU's f32 arithmetic gives."""
    nan = c.emit(f"fcmp uno float {number}, 0.0")
    return select(c, nan, "i32", QUIET_F32, float_bits(c, number))
