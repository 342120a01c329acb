"""Launch arguments as the bytes of kernel parameters."""

from __future__ import annotations

import struct

_FORMATS = {
    "bool": "<?", "int8": "<b", "uint8": "<B", "int16": "<h", "uint16": "<H", "int32": "<i", "uint32": "<I",
    "int64": "<q", "uint64": "<Q", "float32": "<f", "float64": "<d", "float16": "<e", "pointer": "<Q",
}  # fmt: skip


class BadArgument(Exception):
    """A launch argument does not fit the kernel's parameter."""


def argument_bytes(dtype: str, value: object, size: int) -> bytes:
    """A launch argument as the bytes of a parameter of `size`. Raises BadArgument."""
    try:
        if isinstance(value, (bytes, bytearray)):
            data = bytes(value)
        elif dtype == "bfloat16":
            data = struct.pack("<f", value)[2:]
        else:
            data = struct.pack(_FORMATS[dtype], value)
    except (KeyError, struct.error, OverflowError) as error:
        raise BadArgument(f"argument {value!r} as {dtype}: {error}") from None
    if len(data) != size:
        raise BadArgument(f"argument of {len(data)} bytes ({dtype}) for a parameter of {size}")
    return data
