"""Arithmetic of the emulated device: `EMITTERS` by opcode, and `helpers`, the IR functions that emitted code calls.

Every emitter either produces what PTX defines for the whole instruction with all its modifiers or raises `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..builder import Builder
from ..ptx import Instruction
from . import approx, bits, carry, compare, convert, floats, halves, integer
from .common import Emitter
from .text import helpers

__all__ = ["EMITTERS", "helpers"]

_FLOATS = ("f32", "f64", "f32x2")
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def _dispatch(on_integer: Emitter | None, on_float: Emitter | None, on_half: Emitter | None = None) -> Emitter:
    """One emitter that picks by the instruction's type."""

    def emit(b: Builder, x: Instruction) -> None:
        chosen = on_float if x.type in _FLOATS else on_half if x.type in _HALVES else on_integer
        if chosen is None:
            b.unsupported(x)
        chosen(b, x)

    return emit


def _carried(plain: Emitter) -> Emitter:
    """add, sub and mad: with .cc they write the carry flag."""

    def emit(b: Builder, x: Instruction) -> None:
        (carry.chained if "cc" in x.mods else plain)(b, x)

    return emit


def _approximate(exact: Emitter | None, on_double: Emitter | None = None, on_half: Emitter | None = None) -> Emitter:
    """A function with .approx (and .full) forms beside the rounded ones."""

    def emit(b: Builder, x: Instruction) -> None:
        if "approx" not in x.mods and "full" not in x.mods:
            chosen = exact
        elif x.type in _HALVES:
            chosen = on_half
        elif x.type == "f64":
            chosen = on_double
        else:
            chosen = approx.quotient if x.opcode == "div" else approx.single
        if chosen is None:
            b.unsupported(x)
        chosen(b, x)

    return emit


_sum = _carried(_dispatch(integer.sum_or_difference, floats.arithmetic, halves.arithmetic))
_extreme = _dispatch(integer.extreme, floats.extreme, halves.extreme)
_float = _dispatch(None, floats.arithmetic, halves.arithmetic)
_roundable = _dispatch(None, floats.arithmetic)

EMITTERS: Mapping[str, Emitter] = {
    "add": _sum,
    "sub": _sum,
    "mul": _dispatch(integer.multiply, floats.arithmetic, halves.arithmetic),
    "mad": _carried(_dispatch(integer.multiply_add, floats.arithmetic)),
    "fma": _float,
    "addc": carry.chained,
    "subc": carry.chained,
    "madc": carry.chained,
    "mul24": integer.multiply24,
    "mad24": integer.multiply24,
    "sad": integer.absolute_difference,
    "div": _dispatch(integer.divide, _approximate(_roundable)),
    "rem": integer.divide,
    "neg": _dispatch(integer.negate, floats.sign, halves.sign),
    "abs": _dispatch(integer.absolute, floats.sign, halves.sign),
    "min": _extreme,
    "max": _extreme,
    "dp4a": integer.dot,
    "dp2a": integer.dot,
    "vabsdiff2": integer.lane_differences,
    "vabsdiff4": integer.lane_differences,
    **dict.fromkeys(("and", "or", "xor", "not", "cnot"), bits.logic),
    "lop3": bits.lop3,
    "shl": bits.shift,
    "shr": bits.shift,
    "shf": bits.funnel,
    "prmt": bits.permute,
    "bfe": bits.extract,
    "bfi": bits.insert,
    "bfind": bits.find_leading,
    "brev": bits.reverse,
    "clz": bits.count,
    "popc": bits.count,
    "fns": bits.find_nth,
    "szext": bits.sign_extend,
    "bmsk": bits.mask,
    "setp": compare.set_predicate,
    "set": compare.set_value,
    "selp": compare.choose,
    "slct": compare.choose_by_sign,
    "testp": compare.test_property,
    "copysign": floats.copy_sign,
    "rcp": _approximate(_roundable, approx.double),
    "sqrt": _approximate(_roundable),
    "rsqrt": _approximate(None, approx.double),
    "sin": _approximate(None),
    "cos": _approximate(None),
    "lg2": _approximate(None),
    "ex2": _approximate(None, None, approx.half),
    "tanh": _approximate(None, None, approx.half),
    "cvt": convert.convert,
}
"""Emitters of the arithmetic opcodes; mov, memory, control and warp operations belong to the translator."""
