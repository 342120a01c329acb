"""Emitters: atom and red. The host's atomic instructions, so blocks on several workers agree."""

from __future__ import annotations

from .arith import EMITTERS as ARITHMETIC
from .function import FunctionBuilder
from .ops_memory import address_of, space_of
from .ptx import WIDTH, Imm, Instruction, Operand, Vec
from .unit import loop_spans, yields

_INTEGER = {
    "add": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "exch": "xchg",
    "inc": "uinc_wrap",
    "dec": "udec_wrap",
}
_PACKED = ("f16", "f16x2", "bf16", "bf16x2")


def atomic(b: FunctionBuilder, x: Instruction) -> None:
    """atom, red"""
    operands = list(x.operands)
    if any("cache_hint" in m for m in x.mods):
        operands.pop()
    dest = operands.pop(0) if x.opcode == "atom" else None
    if "shared::cluster" in x.mods or isinstance(operands[-1], Vec):
        b.unsupported(x)
    size = WIDTH[x.type] // 8
    position = 1 if x.opcode == "atom" else 0
    pointer = b.access(x, address_of(b, x, position), space_of(b, x), size)
    old = _operate(b, x, pointer, operands[1:])
    if dest is not None:
        b.store(dest, f"b{8 * size}", old)
    if not b.host and yields(x, b.index, loop_spans(b.function)):
        b.give_way()


def _operation(b: FunctionBuilder, x: Instruction) -> str:
    known = (*_INTEGER, "min", "max", "cas")
    return next((m for m in x.mods if m in known), None) or b.unsupported(x)


def _operate(b: FunctionBuilder, x: Instruction, pointer: str, values: list[Operand]) -> str:
    """The atomic itself; returns the old value as `iN`."""
    kind, op = x.type, _operation(b, x)
    bits = WIDTH[kind]
    if op == "cas":
        wanted, new = (b.operand(v, f"b{bits}") for v in values[:2])
        pair = b.emit(f"cmpxchg ptr {pointer}, i{bits} {wanted}, i{bits} {new} seq_cst seq_cst")
        return b.emit(f"extractvalue {{ i{bits}, i1 }} {pair}, 0")
    if op == "exch" or kind not in ("f32", "f64", *_PACKED):
        if bits not in (32, 64) and op != "exch":
            b.unsupported(x)
        name = _INTEGER.get(op) or (op if kind[0] == "s" else f"u{op}")
        return b.emit(f"atomicrmw {name} ptr {pointer}, i{bits} {b.operand(values[0], f'b{bits}')} seq_cst")
    return _by_loop(b, x, op, pointer, b.operand(values[0], kind if kind in ("f32", "f64") else f"b{bits}"))


def _by_loop(b: FunctionBuilder, x: Instruction, op: str, pointer: str, value: str) -> str:
    """Floating-point atomics: the plain instruction in a compare-and-swap loop. Global `atom.add.f32` flushes subnormal
    numbers, that on shared memory does not (PTX ISA, atom); packed types round each half on its own."""
    kind = x.type
    bits = WIDTH[kind]
    first, held, result = b.scratch(bits), b.scratch(bits), b.scratch(bits)
    b.store(held, f"b{bits}", value)
    b.store(first, f"b{bits}", b.emit(f"load i{bits}, ptr {pointer}, align {bits // 8}"))
    loop, done = b.fresh("cas"), b.fresh("swapped")
    b.begin(loop)
    old = b.operand(first, f"b{bits}")
    flush = ("ftz",) if kind == "f32" and op == "add" and space_of(b, x) != "shared" else ()
    rounding = ("rn",) if op == "add" and kind not in ("bf16", "bf16x2") else ()
    _plain(b, Instruction(op, (*rounding, *flush, kind), (result, first, held), None, x.loc, x.ptx_line))
    new = b.operand(result, f"b{bits}")
    pair = b.emit(f"cmpxchg ptr {pointer}, i{bits} {old}, i{bits} {new} seq_cst seq_cst")
    b.store(first, f"b{bits}", b.emit(f"extractvalue {{ i{bits}, i1 }} {pair}, 0"))
    b.end(f"br i1 {b.emit(f'extractvalue {{ i{bits}, i1 }} {pair}, 1')}, label %{done}, label %{loop}")
    b.label(done)
    b.ended = False
    return old


def _plain(b: FunctionBuilder, x: Instruction) -> None:
    """The arithmetic of an atomic. compute_80 has no bf16 addition: fma with 1, as NVRTC writes it."""
    if x.opcode == "add" and x.type in ("bf16", "bf16x2"):
        one = 0x3F80 if x.type == "bf16" else 0x3F803F80
        dest, first, second = x.operands
        x = Instruction("fma", ("rn", x.type), (dest, first, Imm(one), second), None, x.loc, x.ptx_line)
    ARITHMETIC[x.opcode](b, x)


EMITTERS = {"atom": atomic, "red": atomic}
