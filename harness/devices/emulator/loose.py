"""Which f32 registers may hold any NaN until something looks at their bits.

A GPU's f32 arithmetic gives one NaN, 0x7fffffff; a CPU gives others. Making every result canonical costs a comparison
and a selection in the middle of each chain of additions (measured: 1.8 times the run time of an attention kernel). But
arithmetic does not care which NaN it is given. So a register that only arithmetic writes is left *loose*: it keeps
whatever NaN the CPU made, arithmetic reads it as it is, and any other reader gets it made canonical. A register that
also takes bits from elsewhere (a load, a shuffle, integer code) is never loose: a payload there must survive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .ptx import Addr, Function, Imm, Instruction, Operand, Reg, registers_of

PLAIN = frozenset(("add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"))
"""Opcodes whose f32 results rounded to nearest come straight from the CPU."""
_CANONICAL = PLAIN | {"min", "max", "neg", "abs", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"}
_MOVES = ("mov", "selp")
_WORDS = ("f32", "b32", "u32", "s32")
_INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


def loose_registers(function: Function) -> frozenset[str]:
    """Names of the loose registers of a function."""
    return _written_only_by(function, lambda x: x.opcode in _CANONICAL and x.mods[-1:] == ("f32",), _is_no_nan)


def flushed_registers(function: Function) -> frozenset[str]:
    """Names of the registers that never hold a subnormal f32: only `.ftz` arithmetic and conversions of integers write
    them, so `.ftz` instructions need not flush them again."""
    return _written_only_by(function, _flushes, _is_no_subnormal)


def _flushes(x: Instruction) -> bool:
    if x.opcode == "cvt":
        return x.mods[-2:-1] == ("f32",) and x.mods[-1] in _INTEGERS
    return x.opcode in _CANONICAL and x.mods[-1:] == ("f32",) and "ftz" in x.mods


def _is_no_nan(bits: int) -> bool:
    return bits & 0x7FFFFFFF <= 0x7F800000


def _is_no_subnormal(bits: int) -> bool:
    return not 0 < bits & 0x7FFFFFFF < 0x00800000


def _written_only_by(
    function: Function, fits: Callable[[Instruction], bool], constant_fits: Callable[[int], bool]
) -> frozenset[str]:
    """Registers to which only fitting instructions, moves of fitting constants and moves of such registers write."""
    sources: dict[str, set[str]] = {}
    strict: set[str] = set()
    for x in function.body or ():
        if not isinstance(x, Instruction) or not x.operands:
            continue
        dest = x.operands[0]
        if isinstance(dest, Reg) and fits(x):
            sources.setdefault(dest.name, set())
        elif isinstance(dest, Reg) and x.opcode in _MOVES and x.mods[-1:] and x.mods[-1] in _WORDS:
            moved = _moved(x.operands[1 : 2 if x.opcode == "mov" else 3], constant_fits)
            if moved is None:
                strict.add(dest.name)
            else:
                sources.setdefault(dest.name, set()).update(moved)
        elif not isinstance(dest, Addr):
            strict.update(registers_of(dest))
    return _settled(sources, strict)


def _moved(operands: Iterable[Operand], constant_fits: Callable[[int], bool]) -> set[str] | None:
    """The registers that a move reads; None if it may bring in bits that do not fit."""
    found: set[str] = set()
    for op in operands:
        if isinstance(op, Reg):
            found.add(op.name)
        elif not isinstance(op, Imm) or not constant_fits(op.value):
            return None
    return found


def _settled(sources: dict[str, set[str]], strict: set[str]) -> frozenset[str]:
    """Registers that nothing strict reaches through moves."""
    loose = {name for name in sources if name not in strict}
    while True:
        fallen = {name for name in loose if not sources[name] <= loose}
        if not fallen:
            return frozenset(loose)
        loose -= fallen
