"""The kernel target of a case file: buffers collected over the kernels, arguments resolved, macros made names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudadiag.case.expr import Expression, ExpressionError, parse, suggestion
from cudadiag.case.kernelmodels import ArgModel, FillModel, KernelModel, ToleranceModel
from cudadiag.case.targets import Buffer, Fill, Formula, Kernel, KernelTarget, KeyPath, ScalarArg, Tolerance
from cudadiag.case.template import Template

if TYPE_CHECKING:
    from cudadiag.case.convert import Conversion

_NUMBERS = ("value", "start", "step", "mean", "std", "low", "high")


def kernel_target(conversion: Conversion) -> KernelTarget:
    """The target of `kernel:` or `kernels:`. Problems go to the conversion."""
    target = conversion.model.target
    buffers: dict[str, Buffer] = {}
    if target.kernel is not None:
        path: KeyPath = ("target", "kernel")
        kernels = [_Reader(conversion, target.kernel, path, buffers).kernel()]
        reference, tolerance = target.kernel.reference, target.kernel.tolerance
    else:
        path = ("target",)
        given = enumerate(target.kernels or ())
        kernels = [_Reader(conversion, kernel, ("target", "kernels", i), buffers).kernel() for i, kernel in given]
        reference, tolerance = target.reference, target.tolerance
        _refuse_inner_references(conversion, target.kernels or ())
    place = None if reference is None else (conversion.file(reference[0], (*path, "reference")), reference[1])
    if tolerance is not None and reference is None:
        conversion.problem((*path, "tolerance"), "a tolerance without a `reference`, add one or leave it out", key=True)
    return KernelTarget(
        kernels=tuple(kernels),
        buffers=tuple(buffers.values()),
        reference=place,
        tolerance=_tolerance(conversion, tolerance or {}, (*path, "tolerance"), buffers),
        macros=_macros(conversion, kernels),
    )


def _refuse_inner_references(conversion: Conversion, kernels: tuple[KernelModel, ...]) -> None:
    for index, kernel in enumerate(kernels):
        for key in ("reference", "tolerance"):
            if getattr(kernel, key) is not None:
                message = f"`{key}` is of the whole target, move it beside `kernels`"
                conversion.problem(("target", "kernels", index, key), message, key=True)


def _tolerance(
    conversion: Conversion, given: dict[str, ToleranceModel], path: KeyPath, buffers: dict[str, Buffer]
) -> dict[str, Tolerance]:
    outputs = [buffer.name for buffer in buffers.values() if buffer.role in ("out", "inout")]
    for name in given:
        if name and name not in outputs:
            near = suggestion(name, outputs) or f", there are {', '.join(outputs) or 'none'}"
            conversion.problem((*path, name), f"no output {name!r}{near}", key=True)
    return {name: Tolerance(item.rel, item.abs) for name, item in given.items()}


def _macros(conversion: Conversion, kernels: list[Kernel]) -> dict[str, Formula]:
    """The macros that are expressions, as names. Of one that differs between kernels no name is made."""
    found: dict[str, Formula] = {}
    differing: set[str] = set()
    for kernel in kernels:
        for name, formula in kernel.define.items():
            if isinstance(formula.content, Template):
                continue
            if name in conversion.parameters:
                _check_same(conversion, name, formula)
            elif name in found and found[name].content.text != formula.content.text:
                differing.add(name)
            else:
                found[name] = formula
    return {name: formula for name, formula in found.items() if name not in differing}


def _check_same(conversion: Conversion, name: str, formula: Formula) -> None:
    """`{N: '{N}'}` hands a parameter on; any other value under a parameter's name would be read two ways."""
    if formula.content.text.strip() != name:
        message = f"{name} is a parameter of `{conversion.parameters[name][0]}` too, write '{{{name}}}' or another name"
        conversion.problem(formula.path, message)


class _Reader:
    """One kernel; its buffers are added to those of the kernels before."""

    def __init__(self, conversion: Conversion, model: KernelModel, path: KeyPath, buffers: dict[str, Buffer]) -> None:
        self.conversion = conversion
        self.model = model
        self.path = path
        self.buffers = buffers

    def kernel(self) -> Kernel:
        model, conversion, path = self.model, self.conversion, self.path
        shared = None if model.shared is None else Formula(model.shared, (*path, "shared"))
        return Kernel(
            source=conversion.file(model.source, (*path, "source")),
            entry=model.entry,
            define={name: self.macro(name, content) for name, content in model.define.items()},
            options=model.options,
            grid=conversion.list(model.grid, (*path, "grid")),
            block=conversion.list(model.block, (*path, "block")),
            cluster=conversion.list(model.cluster or (), (*path, "cluster")),
            shared=shared,
            args=tuple(self.argument(arg, (*path, "args", index)) for index, arg in enumerate(model.args)),
        )

    def macro(self, name: str, content: Expression | Template) -> Formula:
        path = (*self.path, "define", name)
        if isinstance(content, Template):
            if content.single is not None:
                return Formula(content.single, path, shift=content.offsets[0])
            self.warn_of_bare_expression(content, path)
        return Formula(content, path)

    def warn_of_bare_expression(self, content: Template, path: KeyPath) -> None:
        """`{ROWS: q_len}` would define ROWS as the text q_len."""
        try:
            names = parse(content.text).names
        except ExpressionError:
            return
        if names and names <= self.conversion.parameters.keys():
            message = f"would be the text {content.text!r} in the source, for its value write '{{{content.text}}}'"
            self.conversion.problem(path, message)

    def argument(self, arg: ArgModel, path: KeyPath) -> str | ScalarArg:
        if arg.role == "buffer":
            if arg.name not in self.buffers:
                near = suggestion(arg.name, self.buffers) or ", declare it as {in: ...}, {out: ...} or {scratch: ...}"
                self.conversion.problem(path, f"no buffer {arg.name!r} before this{near}")
            return arg.name
        if arg.role == "scalar":
            return self.scalar(arg, path)
        if arg.name in self.buffers:
            message = f"buffer {arg.name!r} is declared before, to use it again write its bare name"
            self.conversion.problem((*path, arg.role), message)
        self.buffers[arg.name] = self.buffer(arg, path)
        return arg.name

    def scalar(self, arg: ArgModel, path: KeyPath) -> ScalarArg:
        if arg.value is not None:
            value = Formula(arg.value, (*path, "value"))
        else:
            value = Formula(parse(arg.name), (*path, "scalar"))
        return ScalarArg(arg.name, str(arg.dtype), value)

    def buffer(self, arg: ArgModel, path: KeyPath) -> Buffer:
        fill = self.fill(arg.fill, (*path, "fill")) if arg.fill is not None else None
        if fill is None and arg.role in ("in", "inout"):
            fill = Fill("zeros", {})
        shape = tuple(Formula(extent, (*path, "shape", index)) for index, extent in enumerate(arg.shape or ()))
        return Buffer(arg.name, arg.role, str(arg.dtype), shape, fill, arg.seed or 0, arg.free, path)

    def fill(self, fill: FillModel, path: KeyPath) -> Fill:
        given = {key: getattr(fill, key) for key in _NUMBERS if getattr(fill, key) is not None}
        inside = {key: (*path, key) if (*path, key) in self.conversion.document.values else path for key in given}
        numbers = {key: Formula(expression, inside[key]) for key, expression in given.items()}
        file, name = self.fill_file(fill)
        return Fill(fill.kind, numbers, None if file is None else self.conversion.file(file, path), name)

    def fill_file(self, fill: FillModel) -> tuple[str | None, str | None]:
        if fill.function is not None:
            return fill.function
        return fill.file, fill.name
