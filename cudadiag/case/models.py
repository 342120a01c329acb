"""The case file as pydantic models: the reference of its keys. Used at the border only; inside are frozen dataclasses.

The docstrings and descriptions here are what `cudadiag schema` and docs/reference/case-file.md print.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from cudadiag.case.fields import (
    AxesField,
    BytesField,
    CommandField,
    EnvironmentField,
    ExpressionMapField,
    ExpressionsField,
    PatternField,
    PlaceField,
    ScalarMapField,
    SecondsField,
    SelectorsField,
    TextField,
    describe,
    wrong,
)
from cudadiag.case.kernelmodels import KernelModel, Model, ToleranceField

ObserverName = Literal["plain", "blocking", "memcheck", "racecheck", "initcheck", "synccheck", "coredump"]


class PythonModel(Model):
    """A Python function, called once per shape in a fresh interpreter."""

    function: PlaceField = Field(description="file.py:function")
    args: ExpressionMapField | None = Field(
        default=None, description="keyword arguments; default every parameter that the function takes"
    )
    interpreter: TextField | None = Field(
        default=None, description="the Python to run it with, default the one cudadiag runs in"
    )


class CommandModel(Model):
    """Any program. It is started without a shell."""

    argv: CommandField = Field(description="the words of the command; {expression} is replaced by its value")
    cwd: TextField | None = Field(
        default=None, description="the working folder, relative to the case file; default the case file's folder"
    )


def _python(value: Any) -> Any:
    return {"function": value} if isinstance(value, str) else value


def _argv(value: Any) -> Any:
    return value if isinstance(value, dict) else {"argv": value}


PythonField = Annotated[PythonModel, BeforeValidator(_python, json_schema_input_type=PythonModel | PlaceField)]
CommandTargetField = Annotated[CommandModel, BeforeValidator(_argv, json_schema_input_type=CommandModel | CommandField)]


class TargetModel(Model):
    """What is run: exactly one of kernel, kernels, python and command."""

    kernel: KernelModel | None = Field(default=None, description="one CUDA kernel")
    kernels: tuple[KernelModel, ...] | None = Field(
        default=None, description="several kernels, launched in order, sharing buffers by name"
    )
    python: PythonField | None = Field(default=None, description="a Python function")
    command: CommandTargetField | None = Field(default=None, description="any program")
    reference: PlaceField | None = Field(
        default=None, description="with `kernels`: file.py:function that computes the outputs"
    )
    tolerance: ToleranceField | None = Field(default=None, description="with `kernels`: how far an output may be off")

    @model_validator(mode="before")
    @classmethod
    def _no_service(cls, value: Any) -> Any:
        if isinstance(value, dict) and "service" in value:
            advice = "write a `command` that starts the server, sends its requests and ends"
            raise wrong(f"a `service` target is not supported, {advice}", path=("service",))
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> TargetModel:
        given = [kind for kind in ("kernel", "kernels", "python", "command") if getattr(self, kind) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise wrong(f"a target is exactly one of kernel, kernels, python and command, here {found}")
        if self.kernels == ():
            raise wrong("`kernels` is empty, list at least one", path=("kernels",))
        for key in ("reference", "tolerance"):
            if getattr(self, key) is not None and self.kernels is None:
                raise wrong(f"`{key}` stands here only with `kernels`, move it below `{given[0]}`", path=(key,))
        return self


class LimitsModel(Model):
    """Bounds of one probe."""

    timeout: SecondsField = Field(
        default=30.0, description="wall time, then SIGTERM, then SIGKILL to the whole process group"
    )
    grace: SecondsField = Field(default=2.0, description="between SIGTERM and SIGKILL")
    output: BytesField = Field(
        default=16 << 20, description="kept of each stream, half head and half tail; default 16 MiB"
    )
    memory: BytesField | None = Field(default=None, description="host address space of the child")


class TimingModel(Model):
    """Kernel time by device events, after the launch that is judged."""

    launches: int = Field(default=20, strict=True, ge=0, le=100_000, description="timed launches; 0 for none")


class RequiresModel(Model):
    """What the case needs; where it is missing the outcome is `unresolved`, with the reason."""

    device: Literal["cuda", "emulator"] | None = Field(default=None, description="the only kind of device it runs on")
    arch: TextField | None = Field(default=None, description="compute capability such as '>=90', '90', '>=80,<100'")
    memory: BytesField | None = Field(default=None, description="free device memory")


class PlantModel(Model):
    """A fault put in after compilation, on either device. For planted cases only."""

    kind: Literal["illegal-instruction"] = Field(description="the fault")
    entry: TextField = Field(description="the kernel it is put into")
    marker: TextField | None = Field(
        default=None,
        description="text of one line of the source: what others would see of that line is overwritten",
    )
    line: int | None = Field(default=None, ge=1, strict=True, description="or the line's number")
    pc: int | None = Field(default=None, ge=0, strict=True, description="or the offset in the machine code")
    source: TextField | None = Field(default=None, description="the .cu file, where the target has several")

    @model_validator(mode="after")
    def _one_place(self) -> PlantModel:
        if sum(place is not None for place in (self.marker, self.line, self.pc)) != 1:
            raise wrong("`plant` needs exactly one of marker, line and pc")
        return self


class BuildModel(Model):
    """A command run once before the first probe."""

    argv: CommandField = Field(description="the words of the command; {build_dir} is where it may write")
    timeout: SecondsField = Field(default=600.0, description="wall time")


BuildField = Annotated[BuildModel, BeforeValidator(_argv, json_schema_input_type=BuildModel | CommandField)]


class GateModel(Model):
    """Which shapes `cudadiag gate` runs, besides those of its baseline and those that failed before."""

    smoke: SelectorsField = Field(default=(), description="shapes that are always run: every one that matches")
    boundaries: SelectorsField = Field(
        default=(), description="conditions: shapes on both sides of where they change are run"
    )
    known_bad: SelectorsField = Field(
        default=(), description="the first shapes that match, and their neighbours that do not"
    )
    every: bool = Field(default=False, strict=True, description="run every shape")
    repeat: int | None = Field(
        default=None, strict=True, ge=1, le=1000, description="fresh processes of each shape; default `--repeat`"
    )
    leave_out: TextField | None = Field(default=None, description="why the gate does not run this case")


def _case_name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", value):
        raise wrong(f"needs a name of letters, digits and _ . -, not {describe(value)}")
    return value


CaseNameField = Annotated[
    str, PlainValidator(_case_name), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"})
]


class CaseModel(Model):
    """A case: a target, a sweep, and how to run it."""

    case: CaseNameField = Field(description="its name")
    title: TextField | None = Field(default=None, description="one line for people")
    target: TargetModel = Field(description="what is run")
    sweep: AxesField = Field(
        default_factory=dict, description="the parameters and their ordered values; the last one is fastest"
    )
    set: ScalarMapField = Field(default_factory=dict, description="fixed parameters")
    derive: ExpressionMapField = Field(
        default_factory=dict, description="named quantities; the rule search may use them"
    )
    where: ExpressionsField = Field(
        default=(), description="conditions of legal shapes; the others are left out of the sweep"
    )
    emulator: ScalarMapField = Field(
        default_factory=dict, description="values of fixed parameters on the emulated device"
    )
    limits: LimitsModel = Field(default=LimitsModel(), description="bounds of one probe")
    timing: TimingModel = Field(default=TimingModel(), description="kernel time")
    build: BuildField | None = Field(default=None, description="a command run once before")
    success: PatternField | None = Field(
        default=None, description="regular expression that standard output must match for a pass"
    )
    env: EnvironmentField = Field(default_factory=dict, description="environment variables of the target")
    observer: ObserverName = Field(default="blocking", description="the one that judges")
    leaks: bool = Field(
        default=False,
        strict=True,
        description="device memory that is never freed is a fault; needs `observer: memcheck`",
    )
    isolation: Literal["alone", "sequence"] = Field(
        default="alone", description="alone: every shape in a process of its own; sequence: all in one, in sweep order"
    )
    requires: RequiresModel = Field(default=RequiresModel(), description="what the case needs")
    plant: PlantModel | None = Field(default=None, description="a fault put in after compilation")
    gate: GateModel = Field(
        default=GateModel(), description="which shapes `cudadiag gate` runs; default the ends of the sweep"
    )
