"""Element types of buffers: sizes, packing of single values, the bits written into outputs before a run.

Loaded by path in the child; Python >= 3.8, standard library only (numpy is given by the caller where it is needed).
"""

from __future__ import annotations

import array
import struct

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from typing import Any

# name: (bytes, struct format, numpy name, poison bits)
_TABLE = {
    "float16": (2, "<e", "float16", 0x7EDA),
    "bfloat16": (2, "", "uint16", 0x7FDA),
    "float32": (4, "<f", "float32", 0x7FDAB1ED),
    "float64": (8, "<d", "float64", 0x7FFDAB1EDDAB1EDD),
    "int8": (1, "<b", "int8", 0xA5),
    "int16": (2, "<h", "int16", 0xA5B6),
    "int32": (4, "<i", "int32", 0xA5B6C7D8),
    "int64": (8, "<q", "int64", 0xA5B6C7D8A1B2C3D4),
    "uint8": (1, "<B", "uint8", 0xA5),
    "uint16": (2, "<H", "uint16", 0xA5B6),
    "uint32": (4, "<I", "uint32", 0xA5B6C7D8),
    "uint64": (8, "<Q", "uint64", 0xA5B6C7D8A1B2C3D4),
    "bool": (1, "<?", "bool", 0xA5),
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}


def size(dtype: str) -> int:
    """Bytes of one element. Raises ValueError for a type that is not known."""
    if dtype not in _TABLE:
        raise ValueError(f"unknown dtype {dtype!r}; known are {', '.join(_TABLE)}")
    return _TABLE[dtype][0]


def pack(dtype: str, value: float) -> bytes:
    """One element. An integer too large for its type wraps, as an argument of a C function would."""
    nbytes, code, _, _ = _TABLE[dtype]
    if dtype == "bfloat16":
        return struct.pack("<H", bfloat16_bits(struct.unpack("<I", struct.pack("<f", value))[0]))
    if dtype in FLOATS:
        return struct.pack(code, value)
    if dtype == "bool":
        return struct.pack(code, bool(value))
    return (int(value) & ((1 << 8 * nbytes) - 1)).to_bytes(nbytes, "little")


def bfloat16_bits(bits: int) -> int:
    """The nearest bfloat16 (ties to even) of a float32, both as bits; a NaN stays a NaN."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return (bits >> 16) | 0x40
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def poison(dtype: str) -> bytes:
    """The element written all over an output before the run: a NaN no arithmetic makes, or an unlikely integer."""
    nbytes, _, _, bits = _TABLE[dtype]
    return bits.to_bytes(nbytes, "little")


def count_poison(dtype: str, data: bytes) -> int:
    """Elements that still hold the poison."""
    nbytes, _, _, bits = _TABLE[dtype]
    return array.array(_UNSIGNED[nbytes], data).count(bits)


def to_numpy(numpy: Any, dtype: str, data: bytes, shape: tuple[int, ...]) -> Any:
    """Device bytes as an array of the buffer's shape; bfloat16 as float32."""
    values = numpy.frombuffer(data, _TABLE[dtype][2]).reshape(shape)
    if dtype == "bfloat16":
        return (values.astype("uint32") << 16).view("float32")
    return values


def from_numpy(numpy: Any, dtype: str, values: Any) -> bytes:
    """An array as device bytes, converted to the buffer's type; 16-bit integers are taken as bfloat16's bits."""
    values = numpy.ascontiguousarray(values)
    if dtype != "bfloat16":
        return bytes(values.astype(_TABLE[dtype][2], copy=False).tobytes())
    if values.dtype == numpy.uint16:
        return bytes(values.tobytes())
    bits = values.astype("float32", copy=False).view("uint32").astype("uint64")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return bytes(numpy.where(nan, (bits >> 16) | 0x40, rounded).astype("uint16").tobytes())


def poison_mask(numpy: Any, dtype: str, data: bytes, shape: tuple[int, ...]) -> Any:
    """True where an element still holds the poison."""
    nbytes, _, _, bits = _TABLE[dtype]
    return numpy.frombuffer(data, f"uint{8 * nbytes}").reshape(shape) == bits
