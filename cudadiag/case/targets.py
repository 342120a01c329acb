"""What a case runs, inside: frozen dataclasses with parsed expressions that know their place in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudadiag.case.expr import Expression
from cudadiag.case.template import Template

ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "bool": 1} | {
    f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""Bytes of an element by dtype."""

KeyPath = tuple[str | int, ...]
"""Where something stands in a case file, such as ("target", "kernel", "grid", 0)."""


@dataclass(frozen=True)
class Formula:
    """An expression or a text with expressions, and where it stands."""

    content: Expression | Template
    path: KeyPath
    shift: int = 0  # characters before the expression in the text at `path`: 1 for that of "{n}"

    @property
    def names(self) -> frozenset[str]:
        if isinstance(self.content, Expression):
            return self.content.names
        return frozenset().union(*(expression.names for expression in self.content.expressions))

    def value(self, values: Mapping[str, Any]) -> Any:
        """Its value for one shape; of a text, the text with its expressions replaced. Raises ExpressionError."""
        if isinstance(self.content, Expression):
            return self.content.evaluate(values)
        return self.content.render(values)


@dataclass(frozen=True)
class Fill:
    """How a buffer is filled: a kind of harness/targets/kernel.py and its numbers; a function or file is a path."""

    kind: str
    numbers: Mapping[str, Formula]
    file: Path | None = None
    name: str | None = None  # of the function in `file`, or of the array in an .npz file


@dataclass(frozen=True)
class Buffer:
    """Device memory of a kernel target. `shape` is in elements, the last extent fastest."""

    name: str
    role: str  # "in", "out", "inout" or "scratch"
    dtype: str
    shape: tuple[Formula, ...]
    fill: Fill | None
    seed: int
    free: bool
    path: KeyPath


@dataclass(frozen=True)
class ScalarArg:
    """A number passed by value."""

    name: str
    dtype: str
    value: Formula


@dataclass(frozen=True)
class Kernel:
    """One launch. An argument is a buffer's name or a ScalarArg."""

    source: Path
    entry: str
    define: Mapping[str, Formula]
    options: tuple[str, ...]
    grid: tuple[Formula, ...]
    block: tuple[Formula, ...]
    cluster: tuple[Formula, ...]
    shared: Formula | None
    args: tuple[str | ScalarArg, ...]


@dataclass(frozen=True)
class Tolerance:
    rel: float = 0.0
    abs: float = 0.0


@dataclass(frozen=True)
class KernelTarget:
    """CUDA kernels launched in order over shared buffers. In `tolerance` the key "" stands for every output."""

    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    reference: tuple[Path, str] | None
    tolerance: Mapping[str, Tolerance]
    macros: Mapping[str, Formula]  # those that are expressions
    kind = "kernel"

    def formulas(self) -> Iterator[Formula]:
        """Every formula in it."""
        for buffer in self.buffers:
            yield from buffer.shape
            yield from buffer.fill.numbers.values() if buffer.fill else ()
        for kernel in self.kernels:
            yield from (*kernel.define.values(), *kernel.grid, *kernel.block, *kernel.cluster)
            yield from (kernel.shared,) if kernel.shared else ()
            yield from (arg.value for arg in kernel.args if isinstance(arg, ScalarArg))


@dataclass(frozen=True)
class PythonTarget:
    file: Path
    function: str
    kwargs: Mapping[str, Formula]
    interpreter: str | None
    kind = "python"


@dataclass(frozen=True)
class CommandTarget:
    argv: tuple[Formula, ...]
    cwd: Path
    kind = "command"


Target = KernelTarget | PythonTarget | CommandTarget


@dataclass(frozen=True)
class Build:
    """A command run once before the first probe, in the case's folder; {build_dir} is where it may write."""

    argv: tuple[Formula, ...]
    timeout_s: float


@dataclass(frozen=True)
class Requires:
    """What a case needs of a device. `arch` is a list of (comparison, compute capability as 10 * major + minor)."""

    device: str | None = None
    arch: tuple[tuple[str, int], ...] = ()
    memory_bytes: int | None = None

    def unmet(self, *, device: str, capability: int | None = None, free_bytes: int | None = None) -> str | None:
        """Why a device does not do; None if it does, or if that is not known.

        `device` is as in a probe request ("cuda:UUID", "emulator", "none"), `capability` 10 * major + minor.
        """
        kind = device.partition(":")[0]
        if self.device is not None and kind != self.device:
            return f"the case needs a {self.device} device, this is {kind}"
        if capability is not None:
            for comparison, bound in self.arch:
                if not _COMPARISONS[comparison](capability, bound):
                    return f"the case needs compute capability {comparison}{bound}, this device has {capability}"
        if self.memory_bytes is not None and free_bytes is not None and free_bytes < self.memory_bytes:
            return f"the case needs {self.memory_bytes} bytes of free device memory, {free_bytes} are free"
        return None


_COMPARISONS: Mapping[str, Any] = {
    "==": lambda have, want: have == want,
    ">=": lambda have, want: have >= want,
    "<=": lambda have, want: have <= want,
    ">": lambda have, want: have > want,
    "<": lambda have, want: have < want,
    "!=": lambda have, want: have != want,
}


@dataclass(frozen=True)
class Plant:
    """A fault put in after compilation: exactly one of marker, line and pc says where."""

    kind: str
    entry: str
    marker: str | None
    line: int | None
    pc: int | None
    source: Path | None
