"""Helper functions for directed rounding: `cd_<op>_<rn|rz|rm|rp>_<f32|f64>`, on bit patterns.

f32 goes through f64 rounded to odd (see softfloat). f64 has no wider type: those helpers change the processor's
rounding mode around one operation (LLVM's constrained intrinsics in a strictfp function) and put it back.
"""

from __future__ import annotations

from collections.abc import Sequence

from .common import ROUNDINGS, Code, as_double, as_float, double_bits, quiet_f64, select
from .functions import constant
from .softfloat import narrow, odd_quotient, odd_root, odd_sum
from .text import HelperText, define

_LLVM_MODE = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}
_CONSTRAINED = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "fma": "fma", "sqrt": "sqrt"}
ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "sqrt": 1}


def exact_zero(c: Code, total: str, a: str, b: str) -> str:
    """Rounding down, a sum that cancels exactly is -0 (only +0 + +0 stays +0)."""
    zero = c.emit(f"fcmp oeq double {total}, 0.0")
    both = c.emit(f"or i64 {double_bits(c, a)}, {double_bits(c, b)}")
    plain = c.emit(f"icmp eq i64 {both}, 0")
    return select(c, zero, "double", select(c, plain, "double", "0.0", "-0.0"), total)


def sum_f64(c: Code, a: str, b: str, mode: str) -> str:
    """a + b of exact doubles, rounded to odd, with the zero that `mode` gives."""
    total = odd_sum(c, a, b)
    return exact_zero(c, total, a, b) if mode == "rm" else total


def wide_operation(c: Code, op: str, values: Sequence[str], mode: str) -> str:
    """An operation on doubles that came from f32 or narrower, rounded to odd."""
    if op in ("add", "sub"):
        right = c.emit(f"fneg double {values[1]}") if op == "sub" else values[1]
        return sum_f64(c, values[0], right, mode)
    if op == "mul":
        return c.emit(f"fmul double {values[0]}, {values[1]}")
    if op == "fma":
        return sum_f64(c, c.emit(f"fmul double {values[0]}, {values[1]}"), values[2], mode)
    if op == "div":
        return odd_quotient(c, values[0], values[1])
    return odd_root(c, values[0])


def f32_body(c: Code, op: str, mode: str, values: Sequence[str], ftz: bool) -> str:
    wide = [c.emit(f"fpext float {as_float(c, value)} to double") for value in values]
    exact = wide_operation(c, op, wide, mode)
    if ftz:
        exact = flush_exact(c, exact, "f32", mode)
    return narrow(c, exact, "f32", mode)


def flush_exact(c: Code, exact: str, kind: str, mode: str) -> str:
    """.ftz of a result not yet rounded. A GPU flushes what would lie below the smallest normal number if rounded
    to the format's precision with an unbounded exponent (tininess after rounding)."""
    precision, smallest = _TINY[kind]
    last = smallest * (1 - 2.0**-precision)  # the largest number below, had it the full precision
    middle = smallest * (1 - 2.0 ** -(precision + 1))  # goes up to the smallest normal number: ties go to even
    magnitude = c.intrinsic("llvm.fabs.f64", "double", [("double", exact)])
    if mode == "rn":
        tiny = c.emit(f"fcmp olt double {magnitude}, {constant(middle)}")
    else:
        tiny = c.emit(f"fcmp olt double {magnitude}, {constant(smallest)}")
    if mode in ("rm", "rp"):
        negative = c.emit(f"icmp slt i64 {double_bits(c, exact)}, 0")
        outward = negative if mode == "rm" else c.emit(f"xor i1 {negative}, true")
        below = c.emit(f"fcmp ole double {magnitude}, {constant(last)}")
        tiny = select(c, outward, "i1", below, tiny)
    zero = c.intrinsic("llvm.copysign.f64", "double", [("double", "0.0"), ("double", exact)])
    return select(c, tiny, "double", zero, exact)


_TINY = {"f32": (24, 2.0**-126), "f16": (11, 2.0**-14)}
"""Precision and smallest normal number of the formats that know .ftz."""


def f64_body(c: HelperText, op: str, mode: str, values: Sequence[str]) -> str:
    numbers = [as_double(c, value) for value in values]
    name = f"llvm.experimental.constrained.{_CONSTRAINED[op]}.f64"
    c.declared.add("declare void @llvm.set.rounding(i32)")
    c.declared.add(f"declare double @{name}({', '.join(['double'] * len(numbers))}, metadata, metadata)")
    arguments = ", ".join(f"double {number}" for number in numbers)
    c.line(f"call void @llvm.set.rounding(i32 {_LLVM_MODE[mode]}) strictfp")
    result = c.emit(
        f'call double @{name}({arguments}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp'
    )
    c.line(f"call void @llvm.set.rounding(i32 {_LLVM_MODE['rn']}) strictfp")
    return double_bits(c, result)


def _define_all() -> None:
    for op, arity in ARITY.items():
        for mode in ROUNDINGS:

            def f32(c: Code, *values: str, op: str = op, mode: str = mode) -> str:
                return f32_body(c, op, mode, values, False)

            def flushing(c: Code, *values: str, op: str = op, mode: str = mode) -> str:
                return f32_body(c, op, mode, values, True)

            def f64(c: HelperText, *values: str, op: str = op, mode: str = mode) -> str:
                return f64_body(c, op, mode, values)

            define(f"cd_{op}_{mode}_f32", "i32", ["i32"] * arity, f32)
            define(f"cd_{op}_{mode}_ftz_f32", "i32", ["i32"] * arity, flushing)
            define(f"cd_{op}_{mode}_f64", "i64", ["i64"] * arity, f64, "nounwind noinline strictfp")


def rounded(c: Code, op: str, mode: str, kind: str, values: Sequence[str]) -> str:
    """`op` on bit patterns of `kind` ("f32", "ftz_f32" or "f64"), rounded in direction `mode`; its bits."""
    width = "i64" if kind == "f64" else "i32"
    result = c.call(f"cd_{op}_{mode}_{kind}", width, [(width, value) for value in values])
    return quiet_f64(c, result, nan_order(op, values)) if kind == "f64" else result


def nan_order(op: str, values: Sequence[str]) -> Sequence[str]:
    """The operands of an f64 operation, the one whose NaN wins last."""
    if op == "fma":
        return [values[0], values[2], values[1]]
    return values[::-1] if op == "div" else values


_define_all()
