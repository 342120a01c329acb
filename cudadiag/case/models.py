"""The case file as pydantic models: the reference of its keys. Used at the border only; inside are frozen dataclasses.

The docstrings and descriptions here are what `cudadiag schema` and docs/reference/case-file.md print.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from cudadiag.case.expr import suggestion
from cudadiag.case.fields import (
    AxesField,
    BytesField,
    CommandField,
    DimensionsField,
    ExpressionField,
    ExpressionMapField,
    ExpressionsField,
    ExtentField,
    MacroMapField,
    NameField,
    PatternField,
    PlaceField,
    ScalarMapField,
    SecondsField,
    TemplateMapField,
    TextField,
    TextsField,
    describe,
    wrong,
)

Dtype = Literal[
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"
]
ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "bool": 1} | {
    f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)
}
ObserverName = Literal["plain", "blocking", "memcheck", "racecheck", "initcheck", "synccheck", "coredump"]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class FillModel(Model):
    """How a buffer is filled before the run."""

    kind: Literal["zeros", "ones", "value", "arange", "normal", "uniform", "randint", "function", "file"]
    value: ExpressionField | None = Field(None, description="kind value: every element")
    start: ExpressionField | None = Field(None, description="kind arange: the first element, default 0")
    step: ExpressionField | None = Field(None, description="kind arange: the difference, default 1")
    mean: ExpressionField | None = Field(None, description="kind normal, default 0")
    std: ExpressionField | None = Field(None, description="kind normal, default 1")
    low: ExpressionField | None = Field(None, description="kinds uniform and randint, default 0")
    high: ExpressionField | None = Field(None, description="kinds uniform (default 1) and randint: not included")
    function: PlaceField | None = Field(None, description="kind function: file.py:name")
    file: TextField | None = Field(None, description="kind file: an .npy file, or an .npz file with `name`")
    name: TextField | None = Field(None, description="kind file: the array in an .npz file")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> FillModel:
        allowed = _FILL_KEYS[self.kind]
        for key in sorted(self.model_fields_set - {"kind"} - set(allowed)):
            takes = " and ".join(f"`{name}`" for name in allowed) or "nothing more"
            raise wrong(f"fill kind {self.kind} does not take `{key}`, it takes {takes}", path=(key,))
        for key in _FILL_NEEDS.get(self.kind, ()):
            if getattr(self, key) is None:
                raise wrong(f"fill kind {self.kind} needs `{key}`")
        return self


_FILL_KEYS: dict[str, tuple[str, ...]] = {
    "zeros": (),
    "ones": (),
    "value": ("value",),
    "arange": ("start", "step"),
    "normal": ("mean", "std"),
    "uniform": ("low", "high"),
    "randint": ("low", "high"),
    "function": ("function",),
    "file": ("file", "name"),
}
_FILL_NEEDS = {"value": ("value",), "randint": ("high",), "function": ("function",), "file": ("file",)}


def _fill(value: Any) -> dict[str, Any]:
    """The short forms written out: `normal`, `3`, `tree.py:mask`, `data.npz:q`, `data.npy`."""
    if isinstance(value, (int, float)):
        return {"kind": "value", "value": value}
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        raise wrong(f"needs a fill such as normal, tree.py:mask or data.npz:q, not {describe(value)}")
    head, _, tail = value.partition(":")
    if tail and head.endswith(".py"):
        return {"kind": "function", "function": value}
    if tail and head.endswith(".npz"):
        return {"kind": "file", "file": head, "name": tail}
    if value.endswith(".npy"):
        return {"kind": "file", "file": value}
    if value in _FILL_KEYS and not _FILL_NEEDS.get(value):
        return {"kind": value}
    short = [name for name in _FILL_KEYS if not _FILL_NEEDS.get(name)]
    known = f"; there are {', '.join(short)}, a number, file.py:function, data.npz:name and data.npy"
    raise wrong(f"no fill {value!r}{suggestion(value, short) or known}")


FillField = Annotated[FillModel, BeforeValidator(_fill, json_schema_input_type=FillModel | str | float)]


class ArgModel(Model):
    """One argument of a kernel: exactly one of in, out, inout, scratch (a buffer), scalar (a number by value) and buffer."""

    in_: NameField | None = Field(None, alias="in", description="a buffer that the kernel reads; its name")
    out: NameField | None = Field(None, description="a buffer that the kernel writes; poisoned before, compared after")
    inout: NameField | None = Field(None, description="a buffer that is read and written; compared after")
    scratch: NameField | None = Field(None, description="a buffer that is neither filled nor compared")
    scalar: NameField | None = Field(None, description="a number passed by value; its name")
    buffer: NameField | None = Field(None, description="in `kernels:`, a buffer that an earlier kernel has; its bare name says the same")
    dtype: Dtype | None = Field(None, description="the type of an element")
    shape: DimensionsField | None = Field(None, description="extents of a buffer, the last one fastest; [] is one element")
    fill: FillField | None = Field(None, description="in and inout: how it is filled, default zeros")
    seed: int | None = Field(None, ge=0, strict=True, description="of a random fill, default 0")
    free: bool = Field(True, strict=True, description="false: never freed, a leak planted for `isolation: sequence`")
    value: ExpressionField | None = Field(None, description="of a scalar, default the parameter of its name")

    @property
    def role(self) -> str:
        """Which of the five it is."""
        return next(role for role in ROLES if getattr(self, _attribute(role)) is not None)

    @property
    def name(self) -> str:
        return str(getattr(self, _attribute(self.role)))

    @model_validator(mode="after")
    def _one_role(self) -> ArgModel:
        given = [role for role in ROLES if getattr(self, _attribute(role)) is not None]
        if len(given) != 1:
            raise wrong("an argument is exactly one of in, out, inout, scratch and scalar, such as {in: q, dtype: float32, shape: [64]}")
        takes, needs = _ARG_KEYS[given[0]]
        for key in ("dtype", "shape", "fill", "seed", "free", "value"):
            if key in self.model_fields_set and key not in takes:
                raise wrong(f"`{given[0]}` does not take `{key}`, leave it out", path=(key,))
        for key in needs:
            if getattr(self, key) is None:
                raise wrong(f"`{given[0]}` needs `{key}`, such as {_ARG_EXAMPLES[key]}")
        return self


ROLES = ("in", "out", "inout", "scratch", "scalar", "buffer")
_FILLED = ("dtype", "shape", "fill", "seed", "free")
_ARG_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "in": (_FILLED, ("dtype", "shape")),
    "inout": (_FILLED, ("dtype", "shape")),
    "out": (("dtype", "shape", "free"), ("dtype", "shape")),
    "scratch": (("dtype", "shape", "free"), ("dtype", "shape")),
    "scalar": (("dtype", "value"), ("dtype",)),
    "buffer": ((), ()),
}
_ARG_EXAMPLES = {"dtype": "dtype: float32", "shape": "shape: [streams, 64]"}


def _attribute(role: str) -> str:
    return "in_" if role == "in" else role


def _argument(value: Any) -> Any:
    if isinstance(value, str):
        return {"buffer": value}
    if not isinstance(value, dict):
        raise wrong(f"an argument is a mapping such as {{in: q, dtype: float32, shape: [64]}}, not {describe(value)}")
    return value


ArgField = Annotated[ArgModel, BeforeValidator(_argument, json_schema_input_type=ArgModel | str)]


class ToleranceModel(Model):
    """An output passes where |got - expected| <= abs + rel * |expected|. Both 0: equal to the bit."""

    rel: float = Field(0.0, ge=0, strict=True)
    abs: float = Field(0.0, ge=0, strict=True)


def _tolerance(value: Any) -> dict[str, Any]:
    """{rel, abs} for every output (key ""), or {output: {rel, abs}, ...}."""
    if not isinstance(value, dict):
        raise wrong(f"needs {{rel: 1e-4, abs: 1e-5}}, or one such mapping for every output, not {describe(value)}")
    return value if value and all(isinstance(item, dict) for item in value.values()) else {"": value}


ToleranceField = Annotated[
    dict[str, ToleranceModel], BeforeValidator(_tolerance, json_schema_input_type=ToleranceModel | dict[str, ToleranceModel])
]


class KernelModel(Model):
    """One CUDA C++ kernel, compiled by NVRTC to machine code for the device, with line information."""

    source: TextField = Field(description="the .cu file, relative to the case file")
    entry: TextField = Field(description="the kernel's name")
    define: MacroMapField = Field(default_factory=dict, description="preprocessor macros; usable in expressions where they are numbers")
    options: TextsField = Field((), description="more options for NVRTC")
    grid: ExtentField = Field(description="blocks: x, or [x, y, z]")
    block: ExtentField = Field(description="threads of a block: x, or [x, y, z]")
    cluster: ExtentField | None = Field(None, description="blocks of a cluster: x, or [x, y, z]")
    shared: ExpressionField | None = Field(None, description="bytes of dynamic shared memory, default 0")
    args: tuple[ArgField, ...] = Field((), description="in the order of the kernel's parameters; in `kernels:` also the name of an earlier buffer")
    reference: PlaceField | None = Field(None, description="file.py:function that computes the outputs with numpy")
    tolerance: ToleranceField | None = Field(None, description="how far an output may be off, default not at all")


class PythonModel(Model):
    """A Python function, called once per shape in a fresh interpreter."""

    function: PlaceField = Field(description="file.py:function")
    args: ExpressionMapField | None = Field(None, description="keyword arguments; default every parameter that the function takes")
    interpreter: TextField | None = Field(None, description="the Python to run it with, default the one cudadiag runs in")


class CommandModel(Model):
    """Any program. It is started without a shell."""

    argv: CommandField = Field(description="the words of the command; {expression} is replaced by its value")
    cwd: TextField | None = Field(None, description="the working folder, relative to the case file; default the case file's folder")


def _python(value: Any) -> Any:
    return {"function": value} if isinstance(value, str) else value


def _argv(value: Any) -> Any:
    return value if isinstance(value, dict) else {"argv": value}


PythonField = Annotated[PythonModel, BeforeValidator(_python, json_schema_input_type=PythonModel | str)]
CommandTargetField = Annotated[CommandModel, BeforeValidator(_argv, json_schema_input_type=CommandModel | str | list[str])]


class TargetModel(Model):
    """What is run: exactly one of kernel, kernels, python and command."""

    kernel: KernelModel | None = Field(None, description="one CUDA kernel")
    kernels: tuple[KernelModel, ...] | None = Field(None, description="several kernels, launched in order, sharing buffers by name")
    python: PythonField | None = Field(None, description="a Python function")
    command: CommandTargetField | None = Field(None, description="any program")
    reference: PlaceField | None = Field(None, description="with `kernels`: file.py:function that computes the outputs")
    tolerance: ToleranceField | None = Field(None, description="with `kernels`: how far an output may be off")

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

    timeout: SecondsField = Field(30.0, description="wall time, then SIGTERM, then SIGKILL to the whole process group")
    grace: SecondsField = Field(2.0, description="between SIGTERM and SIGKILL")
    output: BytesField = Field(16 << 20, description="kept of each stream: half head, half tail")
    memory: BytesField | None = Field(None, description="host address space of the child")


class TimingModel(Model):
    """Kernel time by device events, after the launch that is judged."""

    launches: int = Field(20, strict=True, ge=0, le=100_000, description="timed launches; 0 for none")


class RequiresModel(Model):
    """What the case needs; where it is missing the outcome is `unresolved`, with the reason."""

    device: Literal["cuda", "emulator"] | None = Field(None, description="the only kind of device it runs on")
    arch: TextField | None = Field(None, description="compute capability such as '>=90', '90', '>=80,<100'")
    memory: BytesField | None = Field(None, description="free device memory")


class PlantModel(Model):
    """A fault put in after compilation, on either device. For planted cases only."""

    kind: Literal["illegal-instruction"]
    entry: TextField = Field(description="the kernel it is put into")
    marker: TextField | None = Field(None, description="text that one line of the source contains: its first instruction is overwritten")
    line: int | None = Field(None, ge=1, strict=True, description="or the line's number")
    pc: int | None = Field(None, ge=0, strict=True, description="or the offset in the machine code")
    source: TextField | None = Field(None, description="the .cu file, where the target has several")

    @model_validator(mode="after")
    def _one_place(self) -> PlantModel:
        if sum(place is not None for place in (self.marker, self.line, self.pc)) != 1:
            raise wrong("`plant` needs exactly one of marker, line and pc")
        return self


class BuildModel(Model):
    """A command run once before the first probe."""

    argv: CommandField = Field(description="the words of the command; {build_dir} is where it may write")
    timeout: SecondsField = Field(600.0, description="wall time")


BuildField = Annotated[BuildModel, BeforeValidator(_argv, json_schema_input_type=BuildModel | str | list[str])]


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
    title: TextField | None = Field(None, description="one line for people")
    target: TargetModel = Field(description="what is run")
    sweep: AxesField = Field(default_factory=dict, description="the parameters and their ordered values; the last one is fastest")
    set: ScalarMapField = Field(default_factory=dict, description="fixed parameters")
    derive: ExpressionMapField = Field(default_factory=dict, description="named quantities; the rule search may use them")
    where: ExpressionsField = Field((), description="conditions of legal shapes; the others are left out of the sweep")
    emulator: ScalarMapField = Field(default_factory=dict, description="values of fixed parameters on the emulated device")
    limits: LimitsModel = Field(default_factory=LimitsModel, description="bounds of one probe")
    timing: TimingModel = Field(default_factory=TimingModel, description="kernel time")
    build: BuildField | None = Field(None, description="a command run once before")
    success: PatternField | None = Field(None, description="regular expression that standard output must match for a pass")
    env: TemplateMapField = Field(default_factory=dict, description="environment variables of the target")
    observer: ObserverName = Field("blocking", description="the one that judges")
    isolation: Literal["alone", "sequence"] = Field("alone", description="alone: every shape in a process of its own; sequence: all in one, in sweep order")
    requires: RequiresModel = Field(default_factory=RequiresModel, description="what the case needs")
    plant: PlantModel | None = Field(None, description="a fault put in after compilation")
    gate: dict[str, Any] = Field(default_factory=dict, description="which shapes `cudadiag gate` runs")

