"""The kernel target's part of a request, as the docstring of harness/targets/kernel.py asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cudadiag.case.case import Case, at_shape
from cudadiag.case.targets import Buffer, Fill, Formula, Kernel, KernelTarget, ScalarArg
from cudadiag.model import Shape

_INTEGER_RANGES = {f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)
}


def kernel_target(case: Case, target: KernelTarget, *, check: bool, timing: bool) -> dict[str, Any]:
    """The keys of a kernel target that do not depend on the shape."""
    plant = case.plant
    return {
        "kind": "kernel",
        "check": check and target.reference is not None,
        "timing": {"launches": case.timing_launches} if timing and case.timing_launches else None,
        "plant": None
        if plant is None
        else {key: str(value) if key == "source" else value for key, value in vars(plant).items() if value is not None},
    }


def kernel_step(case: Case, target: KernelTarget, shape: Shape) -> dict[str, Any]:
    """The step keys of one shape. Raises CaseError where an expression fails or a value is not what it must be."""
    step = _Step(case, shape)
    reference = target.reference
    return {
        "shape": dict(shape),
        "params": step.values,
        "buffers": [step.buffer(buffer) for buffer in target.buffers],
        "kernels": [step.kernel(kernel) for kernel in target.kernels],
        "reference": None if reference is None else {"file": str(reference[0]), "function": reference[1]},
        "tolerance": _tolerance(target),
    }


def _tolerance(target: KernelTarget) -> dict[str, Any] | None:
    if not target.tolerance:
        return None
    each = {name: {"rel": item.rel, "abs": item.abs} for name, item in target.tolerance.items()}
    return each.get("", each)


class _Step:
    """Evaluates the formulas of one shape."""

    def __init__(self, case: Case, shape: Shape) -> None:
        self.case = case
        self.shape = shape
        self.values = case.values(shape)

    def buffer(self, buffer: Buffer) -> dict[str, Any]:
        extents = [self.integer(extent, least=0) for extent in buffer.shape]
        made: dict[str, Any] = {"name": buffer.name, "role": buffer.role, "dtype": buffer.dtype, "shape": extents}
        if buffer.fill is not None:
            made |= {"fill": self.fill(buffer.fill), "seed": buffer.seed}
        return made | ({} if buffer.free else {"free": False})

    def fill(self, fill: Fill) -> dict[str, Any]:
        numbers = {key: self.case.evaluate(formula, self.values) for key, formula in fill.numbers.items()}
        made: dict[str, Any] = {"kind": fill.kind, **numbers}
        if fill.file is not None:
            made["file"] = str(fill.file)
        if fill.name is not None:
            made["function" if fill.kind == "function" else "name"] = fill.name
        return made

    def kernel(self, kernel: Kernel) -> dict[str, Any]:
        return {
            "source": str(kernel.source),
            "entry": kernel.entry,
            "define": {name: self.macro(formula) for name, formula in kernel.define.items()},
            "options": list(kernel.options),
            "grid": self.extent(kernel.grid),
            "block": self.extent(kernel.block),
            "shared": 0 if kernel.shared is None else self.integer(kernel.shared, least=0),
            "cluster": self.extent(kernel.cluster) if kernel.cluster else None,
            "args": [arg if isinstance(arg, str) else self.scalar(arg) for arg in kernel.args],
        }

    def macro(self, formula: Formula) -> int | float | str:
        value = self.case.evaluate(formula, self.values)
        return int(value) if isinstance(value, bool) else value

    def extent(self, formulas: Sequence[Formula]) -> list[int]:
        """x, y and z; those left out are 1. Zero may stand: CUDA refuses an empty grid, and a case may show that."""
        given = [self.integer(formula, least=0) for formula in formulas]
        return [*given, *[1] * (3 - len(given))]

    def scalar(self, arg: ScalarArg) -> dict[str, Any]:
        value = self.case.evaluate(arg.value, self.values)
        allowed = _INTEGER_RANGES.get(arg.dtype)
        if allowed is not None:
            value = self.whole(arg.value, value)
            if not allowed[0] <= value <= allowed[1]:
                raise self.wrong(arg.value, f"{value} does not fit {arg.dtype}")
        elif arg.dtype == "bool":
            value = bool(value)
        elif not isinstance(value, (int, float)):
            raise self.wrong(arg.value, f"needs a number for {arg.dtype}, got the text {value!r}")
        return {"scalar": value, "dtype": arg.dtype, "name": arg.name}

    def integer(self, formula: Formula, *, least: int) -> int:
        value = self.whole(formula, self.case.evaluate(formula, self.values))
        if value < least:
            raise self.wrong(formula, f"{value}, it must be {least} or more,")
        return value

    def whole(self, formula: Formula, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            advice = "use // for a whole result" if "/" in formula.content.text else "write it without a point"
            raise self.wrong(formula, f"{value} is a real number, {advice}")
        if not isinstance(value, int):
            raise self.wrong(formula, f"needs a whole number, got {value!r}")
        return int(value)

    def wrong(self, formula: Formula, message: str) -> Exception:
        return self.case.error(formula.path, message + at_shape(self.shape))
