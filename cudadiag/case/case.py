"""A case: what is run, over which shapes, how. Frozen; made by `load` from a file or by `from_command` without one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudadiag.case.axes import format_value
from cudadiag.case.expr import ExpressionError, suggestion
from cudadiag.case.gating import GateSelection
from cudadiag.case.problems import CaseError, Problem
from cudadiag.case.targets import Build, Formula, KernelTarget, KeyPath, Plant, PythonTarget, Requires, Target
from cudadiag.errors import UsageError
from cudadiag.model import Axis, Scalar, Shape, Sweep

if TYPE_CHECKING:
    from cudadiag.case.yamltext import Document
    from harness.records import Limits, ProbeRequest


@dataclass(frozen=True)
class CaseLimits:
    """Bounds of one probe: seconds and bytes."""

    timeout_s: float = 30.0
    grace_s: float = 2.0
    output_bytes: int = 16 << 20
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Case:
    """A target, a sweep, and how to run it. `path` is None for a case given on the command line."""

    name: str
    title: str
    path: Path | None
    folder: Path  # relative paths of the case start here
    target: Target
    axes: tuple[Axis, ...]
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    named: Mapping[str, Formula] = field(default_factory=dict)  # `derive` and macros, each after those it needs
    derive: tuple[str, ...] = ()  # those of `named` that are columns of the sweep
    where: tuple[Formula, ...] = ()
    emulator: Mapping[str, Scalar] = field(default_factory=dict)
    limits: CaseLimits = CaseLimits()
    timing_launches: int = 20
    build: Build | None = None
    success: str | None = None
    env: Mapping[str, Formula] = field(default_factory=dict)
    observer: str = "blocking"
    leaks: bool = False
    isolation: str = "alone"
    requires: Requires = field(default_factory=Requires)
    plant: Plant | None = None
    gate: GateSelection = field(default_factory=GateSelection)
    document: Document | None = field(default=None, repr=False, compare=False)

    @cached_property
    def sweep(self) -> Sweep:
        """The legal shapes with their derived quantities. Raises CaseError: too many, or an expression that fails."""
        from cudadiag.case.shapes import build_sweep

        return build_sweep(self)

    def on_device(self, device: str) -> Case:
        """This case with the fixed parameters it has on that device ("emulator" overrides some)."""
        if device.partition(":")[0] != "emulator" or not self.emulator:
            return self
        return dataclasses.replace(self, fixed={**self.fixed, **self.emulator}, emulator={})

    def with_axes(self, overrides: Sequence[Axis]) -> Case:
        """This case with axes replaced (in place), fixed parameters replaced by axes (put last), as `-P` asks.

        Raises UsageError for a name that the case does not have.
        """
        refuse_twice(overrides)
        axes, fixed, emulator = list(self.axes), dict(self.fixed), dict(self.emulator)
        names = [axis.name for axis in axes]
        for override in overrides:
            if override.name in names:
                axes[names.index(override.name)] = override
            elif override.name in fixed:
                del fixed[override.name]
                emulator.pop(override.name, None)
                axes.append(override)
                names.append(override.name)
            else:
                known = [*names, *fixed]
                near = suggestion(override.name, known) or f"; it has {', '.join(known) or 'none'}"
                raise UsageError(f"-P {override.name}: the case {self.name} has no such parameter{near}")
        return dataclasses.replace(self, axes=tuple(axes), fixed=fixed, emulator=emulator)

    def with_where(self, text: str) -> Case:
        """This case with one more condition on its shapes, as an option gives it. Raises ExpressionError."""
        from cudadiag.case.expr import parse
        from cudadiag.case.shapes import quantity_names

        condition = parse(text)
        condition.check_names(dict.fromkeys(quantity_names(self)))
        return dataclasses.replace(self, where=(*self.where, Formula(condition, ("--where",))))

    def shape(self, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """A shape in axis order from any mapping, as `-P` gives it. An axis with one value may be left out.

        Raises UsageError for a missing or unknown parameter. The values need not be on the axes.
        """
        names = [axis.name for axis in self.axes]
        for name in values:
            if name not in names:
                near = suggestion(name, names) or f"; it has {', '.join(names) or 'none'}"
                raise UsageError(f"the case {self.name} has no parameter {name!r} on an axis{near}")
        shape: dict[str, Scalar] = {}
        for axis in self.axes:
            if axis.name in values:
                shape[axis.name] = values[axis.name]
            elif len(axis.values) == 1:
                shape[axis.name] = axis.values[0]
            else:
                raise UsageError(f"no value for {axis.name}: add -P {axis.name}={format_value(axis.values[0])}")
        return shape

    def values(self, shape: Shape) -> dict[str, Any]:
        """All of a shape by name: fixed parameters, its own, macros that are numbers, `derive`. Raises CaseError."""
        values: dict[str, Any] = {**self.fixed, **shape}
        for name, formula in self.named.items():
            values[name] = self.evaluate(formula, values)
        return values

    def evaluate(self, formula: Formula, values: Mapping[str, Any]) -> Any:
        """The value of a formula of this case. Raises CaseError at its place, with the shape at which it failed."""
        try:
            return formula.value(values)
        except ExpressionError as error:
            shape = {axis.name: values[axis.name] for axis in self.axes if axis.name in values}
            raise self.error(
                formula.path, f"{error.message}{at_shape(shape)}", offset=error.offset + formula.shift
            ) from None

    def error(self, path: KeyPath, message: str, *, offset: int | None = None) -> UsageError:
        """A problem at a place of the case file; of an option or a case without one, a UsageError that names it."""
        if self.document is None or (path and str(path[0]).startswith("--")):
            return UsageError(f"{'.'.join(map(str, path)) or self.name}: {message}")
        from cudadiag.case.yamltext import offset_mark

        return CaseError(self.document.file, [Problem(offset_mark(self.document, path, offset), message)])

    def request(
        self,
        shape: Shape | Sequence[Shape],
        *,
        folder: str | Path,
        observer: str | None = None,
        device: str = "none",
        memory_model: str = "exact",
        check: bool = True,
        leak_check: bool = False,
        timing: bool = False,
        timeout_s: float | None = None,
        build_dir: str | Path | None = None,
        interpreter: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ProbeRequest:
        """What the harness runs for one shape, or for several in one process. No expression is left in it.

        `observer` None: the case's own. On the emulated device the case's `emulator:` values hold. `check`: compare
        with the reference; `leak_check`: also record what is never freed; `timing`: also time launches; `env` wins
        over the case's. Raises CaseError where an expression fails, UsageError for a shape that does not fit.
        """
        from cudadiag.case.requests import Settings, build_request

        settings = Settings(
            folder=str(folder),
            observer=observer or self.observer,
            device=device,
            memory_model=memory_model,
            check=check,
            leak_check=leak_check,
            timing=timing,
            timeout_s=timeout_s,
            build_dir=None if build_dir is None else str(build_dir),
            interpreter=interpreter,
            env=dict(env or {}),
        )
        shapes = [shape] if isinstance(shape, Mapping) else list(shape)
        return build_request(self.on_device(device), shapes, settings)

    def build_command(self, build_dir: str | Path) -> tuple[list[str], Path, float] | None:
        """The build's words, the folder it runs in and its limit in seconds; None where the case has no `build:`."""
        if self.build is None:
            return None
        values = {**self.fixed, "build_dir": str(build_dir), "case_dir": str(self.folder)}
        return [str(self.evaluate(word, values)) for word in self.build.argv], self.folder, self.build.timeout_s

    def hashes(self) -> dict[str, str]:
        """SHA-256 by file of all the case consists of: itself, sources and what they include, data, scripts."""
        from cudadiag.case.sources import hashes

        return hashes(self)

    def record(self) -> dict[str, Any]:
        """The case for a ledger's first line: name, path, axes, fixed parameters and hashes, as JSON values."""
        return {
            "name": self.name,
            "title": self.title,
            "path": None if self.path is None else str(self.path),
            "target": self.target.kind,
            "axes": {axis.name: list(axis.values) for axis in self.axes},
            "fixed": dict(self.fixed),
            "derive": {name: self.named[name].content.text for name in self.derive},
            "where": [formula.content.text for formula in self.where],
            "hashes": self.hashes(),
        }

    @property
    def needs_device(self) -> bool:
        """Whether the target cannot run without a CUDA device or the emulated one."""
        return isinstance(self.target, KernelTarget)

    @property
    def can_sequence(self) -> bool:
        """Whether several shapes can run in one process."""
        return isinstance(self.target, (KernelTarget, PythonTarget))


def refuse_twice(axes: Sequence[Axis]) -> None:
    """Raises UsageError where two `-P` declare one parameter: which of them should hold?"""
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"-P {name} is given twice: write its values in one, -P {name}=1,2,4")


def at_shape(shape: Mapping[str, Scalar]) -> str:
    """` at q_len=9 prefix=256` for a message, nothing for a case without axes."""
    words = " ".join(f"{name}={format_value(value)}" for name, value in shape.items())
    return f" at {words}" if words else ""


def harness_limits(limits: CaseLimits, timeout_s: float | None) -> Limits:
    """The bounds of a case as the harness takes them."""
    from harness.records import Limits

    return Limits(
        timeout_s=timeout_s if timeout_s is not None else limits.timeout_s,
        grace_s=limits.grace_s,
        stream_bytes=limits.output_bytes,
        memory_bytes=limits.memory_bytes,
    )
