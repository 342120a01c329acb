"""The kernel target's part of a case file as pydantic models. See models.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from cudadiag.case.expr import suggestion
from cudadiag.case.fields import (
    DimensionsField,
    ExpressionField,
    ExtentField,
    MacroMapField,
    NameField,
    PlaceField,
    TextField,
    TextsField,
    describe,
    wrong,
)

Dtype = Literal[
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class FillModel(Model):
    """How a buffer is filled before the run."""

    kind: Literal["zeros", "ones", "value", "arange", "normal", "uniform", "randint", "function", "file"] = Field(
        description="randint: whole numbers; normal and uniform: drawn from numpy's PCG64 with `seed`"
    )
    value: ExpressionField | None = Field(default=None, description="kind value: every element")
    start: ExpressionField | None = Field(default=None, description="kind arange: the first element, default 0")
    step: ExpressionField | None = Field(default=None, description="kind arange: the difference, default 1")
    mean: ExpressionField | None = Field(default=None, description="kind normal, default 0")
    std: ExpressionField | None = Field(default=None, description="kind normal, default 1")
    low: ExpressionField | None = Field(default=None, description="kinds uniform and randint, default 0")
    high: ExpressionField | None = Field(
        default=None, description="kinds uniform (default 1) and randint: not included"
    )
    function: PlaceField | None = Field(default=None, description="kind function: file.py:name")
    file: TextField | None = Field(default=None, description="kind file: an .npy file, or an .npz file with `name`")
    name: TextField | None = Field(default=None, description="kind file: the array in an .npz file")

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
_FILL_EXAMPLES = {
    "value": "the number itself",
    "randint": "{kind: randint, high: 100}",
    "function": "file.py:function",
    "file": "data.npz:name",
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
    if value in _FILL_NEEDS:
        raise wrong(f"{value} needs `{_FILL_NEEDS[value][0]}`, write {_FILL_EXAMPLES[value]}")
    short = [name for name in _FILL_KEYS if not _FILL_NEEDS.get(name)]
    known = f"; there are {', '.join(short)}, a number, file.py:function, data.npz:name and data.npy"
    raise wrong(f"no fill {value!r}{suggestion(value, short) or known}")


FillField = Annotated[FillModel, BeforeValidator(_fill, json_schema_input_type=FillModel | str | float)]


class ArgModel(Model):
    """One argument of a kernel: a buffer (in, out, inout, scratch), a scalar, or the name of an earlier buffer."""

    in_: NameField | None = Field(default=None, alias="in", description="a buffer that the kernel reads; its name")
    out: NameField | None = Field(
        default=None, description="a buffer that the kernel writes; poisoned before, compared after"
    )
    inout: NameField | None = Field(default=None, description="a buffer that is read and written; compared after")
    scratch: NameField | None = Field(default=None, description="a buffer that is neither filled nor compared")
    scalar: NameField | None = Field(default=None, description="a number passed by value; its name")
    buffer: NameField | None = Field(
        default=None, description="in `kernels:`, a buffer that an earlier kernel has; its bare name says the same"
    )
    dtype: Dtype | None = Field(default=None, description="the type of an element")
    shape: DimensionsField | None = Field(
        default=None, description="extents of a buffer, the last one fastest; [] is one element"
    )
    fill: FillField | None = Field(default=None, description="in and inout: how it is filled, default zeros")
    seed: int | None = Field(default=None, ge=0, strict=True, description="of a random fill, default 0")
    free: bool = Field(
        default=True, strict=True, description="false: never freed, a leak planted for `isolation: sequence`"
    )
    value: ExpressionField | None = Field(default=None, description="of a scalar, default the parameter of its name")

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
            raise wrong(
                "an argument is one of in, out, inout, scratch, scalar, such as {in: q, dtype: float32, shape: [64]}"
            )
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


ArgField = Annotated[ArgModel, BeforeValidator(_argument, json_schema_input_type=ArgModel | NameField)]


class ToleranceModel(Model):
    """An output passes where |got - expected| <= abs + rel * |expected|. Both 0: equal to the bit."""

    rel: float = Field(default=0.0, ge=0, strict=True, description="relative to the expected value")
    abs: float = Field(default=0.0, ge=0, strict=True, description="in the output's unit")


def _tolerance(value: Any) -> dict[str, Any]:
    """{rel, abs} for every output (key ""), or {output: {rel, abs}, ...}."""
    if not isinstance(value, dict):
        raise wrong(f"needs {{rel: 1e-4, abs: 1e-5}}, or one such mapping for every output, not {describe(value)}")
    return value if value and all(isinstance(item, dict) for item in value.values()) else {"": value}


ToleranceField = Annotated[
    dict[str, ToleranceModel],
    BeforeValidator(_tolerance, json_schema_input_type=ToleranceModel | dict[str, ToleranceModel]),
]


class KernelModel(Model):
    """One CUDA C++ kernel, compiled by NVRTC to machine code for the device, with line information."""

    source: TextField = Field(description="the .cu file, relative to the case file")
    entry: TextField = Field(description="the kernel's name")
    define: MacroMapField = Field(
        default_factory=dict, description="preprocessor macros; usable in expressions where they are numbers"
    )
    options: TextsField = Field(default=(), description="more options for NVRTC")
    grid: ExtentField = Field(description="blocks: x, or [x, y, z]")
    block: ExtentField = Field(description="threads of a block: x, or [x, y, z]")
    cluster: ExtentField | None = Field(default=None, description="blocks of a cluster: x, or [x, y, z]")
    shared: ExpressionField | None = Field(default=None, description="bytes of dynamic shared memory, default 0")
    args: tuple[ArgField, ...] = Field(
        default=(),
        description="in the order of the kernel's parameters; in `kernels:` also the name of an earlier buffer",
    )
    reference: PlaceField | None = Field(
        default=None, description="file.py:function that computes the outputs with numpy"
    )
    tolerance: ToleranceField | None = Field(
        default=None, description="how far an output may be off, default not at all"
    )
