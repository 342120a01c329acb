"""From a case and a shape to the harness's ProbeRequest. harness/targets/*.py are the schemas of the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cudadiag.case.case import Case, harness_limits
from cudadiag.case.kernelrequest import kernel_step, kernel_target
from cudadiag.case.targets import CommandTarget, Formula, KernelTarget, PythonTarget
from cudadiag.errors import UsageError
from cudadiag.model import Shape
from harness.records import ProbeRequest


@dataclass(frozen=True)
class Settings:
    """How one probe is run; see Case.request."""

    folder: str
    observer: str
    device: str
    memory_model: str
    check: bool
    leak_check: bool
    timing: bool
    timeout_s: float | None
    build_dir: str | None
    interpreter: str | None
    env: Mapping[str, str]


def build_request(case: Case, shapes: Sequence[Shape], settings: Settings) -> ProbeRequest:
    """The request. Raises CaseError where an expression fails, UsageError for shapes that do not fit the case."""
    shapes = [case.shape(shape) for shape in shapes]
    if not shapes:
        raise UsageError("a probe needs at least one shape")
    if len(shapes) > 1 and not case.can_sequence:
        raise UsageError(
            f"{case.name}: a command runs one shape, several in one process need a kernel or python target"
        )
    last = _values(case, shapes[-1], settings)
    interpreter = case.target.interpreter if isinstance(case.target, PythonTarget) else None
    return ProbeRequest(
        target=_target(case, shapes, settings),
        folder=settings.folder,
        observer=settings.observer,
        device=settings.device,
        memory_model=settings.memory_model,
        leak_check=settings.leak_check,
        cwd=str(case.target.cwd if isinstance(case.target, CommandTarget) else case.folder),
        env={**_rendered(case, case.env, last), **settings.env},
        interpreter=settings.interpreter or interpreter,
        limits=harness_limits(case.limits, settings.timeout_s),
    )


def _target(case: Case, shapes: Sequence[Shape], settings: Settings) -> dict[str, Any]:
    match case.target:
        case CommandTarget(argv=argv):
            values = _values(case, shapes[0], settings)
            return {"kind": "command", "argv": [str(case.evaluate(word, values)) for word in argv]}
        case PythonTarget() as target:
            steps = [{"shape": dict(shape), "kwargs": _kwargs(case, target, shape, settings)} for shape in shapes]
            place = {"kind": "python", "file": str(target.file), "function": target.function}
            return {**place, **_one_or_steps(case, steps)}
        case KernelTarget():
            steps = [kernel_step(case, case.target, shape) for shape in shapes]
            frame = kernel_target(case, case.target, check=settings.check, timing=settings.timing)
            return {**frame, **_one_or_steps(case, steps)}


def _one_or_steps(case: Case, steps: list[dict[str, Any]]) -> dict[str, Any]:
    return steps[0] if len(steps) == 1 and case.isolation != "sequence" else {"steps": steps}


def _kwargs(case: Case, target: PythonTarget, shape: Shape, settings: Settings) -> dict[str, Any]:
    values = _values(case, shape, settings)
    return {name: case.evaluate(formula, values) for name, formula in target.kwargs.items()}


def _values(case: Case, shape: Shape, settings: Settings) -> dict[str, Any]:
    """Parameters and derived quantities, and the two folders that texts may name."""
    folders = {"case_dir": str(case.folder)}
    if settings.build_dir is not None:
        folders["build_dir"] = settings.build_dir
    return {**folders, **case.values(shape)}


def _rendered(case: Case, texts: Mapping[str, Formula], values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(case.evaluate(formula, values)) for name, formula in texts.items()}
