"""Initial contents of module variables."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from .ptx import WIDTH, Imm, Module, Sym, Variable
from .unit import FUNCTION_BASE, FUNCTION_STEP


def initial_bytes(module: Module, addresses: Sequence[int]) -> list[bytes]:
    """The bytes of each global and constant variable in order; `addresses` are where they lie. Without an initialiser a
    variable is zero, as CUDA has it."""
    variables = [v for v in module.variables.values() if v.space in ("global", "const")]
    known = {v.name: a for v, a in zip(variables, addresses, strict=True)}
    known.update({name: FUNCTION_BASE + n * FUNCTION_STEP for n, name in enumerate(module.functions)})
    return [_image(v, known) for v in variables]


def _image(variable: Variable, known: dict[str, int]) -> bytes:
    width = max(WIDTH[variable.type] // 8, 1)
    data = b"".join(_item(item, width, known) for item in variable.init)
    return data[: variable.size].ljust(max(variable.size, 1), b"\0")


def _item(item: Imm | Sym, width: int, known: dict[str, int]) -> bytes:
    if isinstance(item, Sym):
        value = known.get(item.name, 0) + item.offset
    elif item.kind == "f32" and width == 8:
        value = int.from_bytes(struct.pack("<d", struct.unpack("<f", struct.pack("<I", item.value))[0]), "little")
    else:
        value = item.value
    return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
