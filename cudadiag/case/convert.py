"""From the checked model of a case file to a Case: names resolved, files found, what does not fit together reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from cudadiag.case.axes import format_value
from cudadiag.case.case import Case, CaseLimits
from cudadiag.case.expr import Expression, ExpressionError, suggestion
from cudadiag.case.gating import GateSelection, Selector
from cudadiag.case.kernels import kernel_target
from cudadiag.case.models import CaseModel
from cudadiag.case.problems import CaseError, Problem
from cudadiag.case.pythonfile import default_kwargs
from cudadiag.case.shapes import quantity_names
from cudadiag.case.targets import (
    Build,
    CommandTarget,
    Formula,
    KernelTarget,
    KeyPath,
    Plant,
    PythonTarget,
    Requires,
    Target,
)
from cudadiag.case.template import Template
from cudadiag.case.yamltext import Document, offset_mark
from cudadiag.model import Axis, Scalar


class Conversion:
    """One case file on its way to a Case. Problems are collected, so that several are reported together."""

    def __init__(self, document: Document, model: CaseModel, path: Path) -> None:
        self.document = document
        self.model = model
        self.path = path
        self.folder = path.resolve().parent
        self.problems: list[Problem] = []
        self.parameters: dict[str, KeyPath] = {}

    def case(self) -> Case:
        """The case. Raises CaseError with all problems found."""
        model = self.model
        self.collect_parameters()
        if model.leaks and model.observer != "memcheck":
            self.problem(("leaks",), "only memcheck sees what is never freed: add `observer: memcheck`")
        target = self.target()
        case = Case(
            name=model.case,
            title=model.title or "",
            path=self.path,
            folder=self.folder,
            target=target,
            axes=tuple(Axis(name, values) for name, values in model.sweep.items()),
            fixed=model.set,
            named=self.in_order(target.macros if isinstance(target, KernelTarget) else {}),
            derive=tuple(model.derive),
            where=tuple(Formula(condition, self.item(("where",), i)) for i, condition in enumerate(model.where)),
            emulator=model.emulator,
            limits=CaseLimits(model.limits.timeout, model.limits.grace, model.limits.output, model.limits.memory),
            timing_launches=model.timing.launches,
            build=self.build(),
            success=model.success,
            env=self.formulas(model.env, ("env",)),
            observer=model.observer,
            leaks=model.leaks,
            isolation=model.isolation,
            requires=self.requires(),
            plant=self.plant(target),
            gate=self.gate(),
            document=self.document,
        )
        self.check_case(case)
        self.raise_problems()
        return case

    def problem(self, path: KeyPath, message: str, *, offset: int | None = None, key: bool = False) -> None:
        mark = self.document.key_mark(path) if key else offset_mark(self.document, path, offset)
        self.problems.append(Problem(mark, message))

    def raise_problems(self) -> None:
        if self.problems:
            raise CaseError(self.document.file, self.problems)

    def item(self, path: KeyPath, index: int) -> KeyPath:
        """The path of an item, where a list may have been written as its only item."""
        return (*path, index) if (*path, index) in self.document.values else path

    def formulas(self, contents: Mapping[str, Expression | Template], path: KeyPath) -> dict[str, Formula]:
        return {name: Formula(content, (*path, name)) for name, content in contents.items()}

    def list(self, contents: Iterable[Expression | Template], path: KeyPath) -> tuple[Formula, ...]:
        return tuple(Formula(content, self.item(path, index)) for index, content in enumerate(contents))

    def collect_parameters(self) -> None:
        """Axes, fixed parameters and derived quantities share one space of names."""
        model = self.model
        for section, names in (("sweep", model.sweep), ("set", model.set), ("derive", model.derive)):
            for name in names:
                if name in self.parameters:
                    other = self.parameters[name][0]
                    self.problem((section, name), f"{name!r} stands in `{other}` too, keep one", key=True)
                self.parameters.setdefault(name, (section, name))
        for name in model.emulator:
            if name not in model.set:
                known = suggestion(name, model.set) or ", only names of `set` can be overridden"
                self.problem(("emulator", name), f"no fixed parameter {name!r}{known}", key=True)

    def in_order(self, macros: Mapping[str, Formula]) -> dict[str, Formula]:
        """`derive` and macros, each after those it needs. A circle is a problem."""
        waiting = {**macros, **self.formulas(self.model.derive, ("derive",))}
        ordered: dict[str, Formula] = {}
        while waiting:
            ready = [name for name, formula in waiting.items() if not formula.names & waiting.keys()]
            if not ready:
                name, formula = next(iter(waiting.items()))
                others = ", ".join(sorted(formula.names & waiting.keys()))
                self.problem(formula.path, f"{name} and {others} are defined by each other, break the circle")
                return ordered
            for name in ready:
                ordered[name] = waiting.pop(name)
        return ordered

    def file(self, name: str, path: KeyPath) -> Path:
        """A file that must exist, relative to the case file."""
        found = self.folder / name
        if not found.is_file():
            near = suggestion(
                Path(name).name, [p.name for p in found.parent.glob("*")] if found.parent.is_dir() else []
            )
            self.problem(path, f"no file {name} in {self.folder}{near}")
        return found

    def target(self) -> Target:
        target = self.model.target
        if target.command is not None:
            return self.command_target()
        if target.python is not None:
            return self.python_target()
        return kernel_target(self)

    def command_target(self) -> CommandTarget:
        command = self.model.target.command
        assert command is not None
        path: KeyPath = ("target", "command")
        folder = self.folder / command.cwd if command.cwd else self.folder
        if not folder.is_dir():
            self.problem((*path, "cwd"), f"no folder {command.cwd} in {self.folder}")
        if self.model.isolation == "sequence":
            self.problem(
                ("isolation",), "a command runs one shape, write alone; sequence is for kernel and python targets"
            )
        argv = (*path, "argv") if (*path, "argv") in self.document.values else path
        return CommandTarget(self.list(command.argv, argv), folder)

    def python_target(self) -> PythonTarget:
        python = self.model.target.python
        assert python is not None
        path: KeyPath = ("target", "python")
        place = (*path, "function") if (*path, "function") in self.document.values else path
        file = self.file(python.function[0], place)
        if python.args is not None:
            kwargs = self.formulas(python.args, (*path, "args"))
        else:
            given, problem = default_kwargs(
                file, python.function[1], [*self.model.sweep, *self.model.set], self.model.derive
            )
            kwargs = {name: Formula(parse_name(name), place) for name in given}
            if problem is not None:
                self.problem(place, problem)
        return PythonTarget(file, python.function[1], kwargs, python.interpreter)

    def build(self) -> Build | None:
        build = self.model.build
        if build is None:
            return None
        path: KeyPath = ("build", "argv") if ("build", "argv") in self.document.values else ("build",)
        return Build(self.list(build.argv, path), build.timeout)

    def requires(self) -> Requires:
        given = self.model.requires
        arch = []
        for part in (given.arch or "").split(","):
            match = re.fullmatch(r"\s*(>=|<=|==|!=|>|<)?\s*(\d{2,3})\s*", part)
            if match is not None:
                arch.append((match[1] or "==", int(match[2])))
            elif given.arch is not None:
                self.problem(("requires", "arch"), f"{part!r} is no compute capability, write '>=90' or '>=80,<100'")
        return Requires(given.device, tuple(arch), given.memory)

    def gate(self) -> GateSelection:
        given = self.model.gate
        return GateSelection(
            self.selectors(given.smoke, "smoke"),
            self.selectors(given.boundaries, "boundaries"),
            self.selectors(given.known_bad, "known_bad"),
            given.every,
            given.repeat,
            given.leave_out,
        )

    def selectors(self, given: Iterable[Expression | dict[str, Scalar]], key: str) -> tuple[Selector, ...]:
        """Conditions with their place; the values of a shape must be on their axes."""
        found: list[Selector] = []
        for index, selector in enumerate(given):
            path = self.item(("gate", key), index)
            if isinstance(selector, Expression):
                found.append(Formula(selector, path))
                continue
            for name, value in selector.items():
                self.check_on_axis(name, value, (*path, name))
            found.append(selector)
        return tuple(found)

    def check_on_axis(self, name: str, value: Scalar, path: KeyPath) -> None:
        axis = self.model.sweep.get(name)
        if axis is None:
            known = suggestion(name, self.model.sweep) or f", the sweep has {', '.join(self.model.sweep) or 'none'}"
            self.problem(path, f"no parameter {name!r} in `sweep`{known}", key=True)
        elif not any(value == other and type(value) is type(other) for other in axis):
            self.problem(path, f"{format_value(value)} is not on the axis {name}, take one of its values")

    def plant(self, target: Target) -> Plant | None:
        plant = self.model.plant
        if plant is None:
            return None
        if not isinstance(target, KernelTarget):
            self.problem(("plant",), "a fault can be planted in a kernel target only, leave it out")
            return None
        sources = {kernel.source for kernel in target.kernels if kernel.entry == plant.entry}
        if not sources:
            entries = [kernel.entry for kernel in target.kernels]
            near = suggestion(plant.entry, entries) or f", the target has {', '.join(entries)}"
            self.problem(("plant", "entry"), f"no kernel {plant.entry!r}{near}")
        source = self.file(plant.source, ("plant", "source")) if plant.source is not None else None
        self.check_marker(plant.marker, source or next(iter(sources), None))
        return Plant(plant.kind, plant.entry, plant.marker, plant.line, plant.pc, source)

    def check_marker(self, marker: str | None, source: Path | None) -> None:
        if marker is None or source is None or not source.is_file():
            return
        count = sum(marker in line for line in source.read_text(encoding="utf-8", errors="replace").splitlines())
        if count != 1:
            self.problem(
                ("plant", "marker"), f"{count} lines of {source.name} contain {marker!r}, it must be exactly one"
            )

    def check_case(self, case: Case) -> None:
        """Every name in every formula stands for something."""
        parameters = dict.fromkeys([*self.parameters, *case.named])
        quantities = dict.fromkeys(quantity_names(case))
        texts = {**parameters, "case_dir": None, **({"build_dir": None} if case.build else {})}
        for formula in case.named.values():
            self.check_names(formula, parameters)
        for formula in case.where:
            self.check_names(formula, quantities)
        for formula in case.env.values():
            self.check_names(formula, texts)
        for selector in (*case.gate.smoke, *case.gate.boundaries, *case.gate.known_bad):
            if isinstance(selector, Formula):
                self.check_names(selector, quantities)
        for formula in _target_formulas(case.target):
            self.check_names(formula, texts if isinstance(case.target, CommandTarget) else parameters)
        if case.build is not None:
            for formula in case.build.argv:
                self.check_names(formula, dict.fromkeys([*case.fixed, "case_dir", "build_dir"]))

    def check_names(self, formula: Formula, known: Mapping[str, object]) -> None:
        try:
            formula.content.check_names(known)
        except ExpressionError as error:
            self.problem(formula.path, error.message, offset=error.offset + formula.shift)


def parse_name(name: str) -> Expression:
    """The expression that is one parameter."""
    from cudadiag.case.expr import parse

    return parse(name)


def _target_formulas(target: Target) -> Iterable[Formula]:
    match target:
        case CommandTarget(argv=argv):
            return argv
        case PythonTarget(kwargs=kwargs):
            return kwargs.values()
        case KernelTarget():
            return target.formulas()
