"""Addresses to the case's own buffers: which one is hit or missed, by how much, and at which element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeGuard

from cudadiag.model import Allocation

_ITEM_BYTES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "bool": 1,
    "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
}  # fmt: skip
NEAR_BYTES = 1 << 30
"""Farther from every buffer than this, a distance to the nearest one would only mislead."""
NULL_BYTES = 4096
"""Addresses below this are a null pointer and a small offset: nothing is ever mapped there."""


def item_bytes(dtype: str | None) -> int | None:
    """Bytes of one element of a type; None where it is not known."""
    return _ITEM_BYTES.get(dtype or "")


@dataclass(frozen=True)
class Buffer:
    """One named buffer of a case: address and size in bytes, element type and shape where known."""

    name: str
    address: int
    size: int
    dtype: str | None = None
    shape: tuple[int, ...] = ()

    @property
    def item_bytes(self) -> int | None:
        """Bytes of one element; None where its type is not known."""
        return item_bytes(self.dtype)

    @property
    def row_bytes(self) -> int | None:
        """Bytes of one row (the last axis); None without shape or type."""
        item = item_bytes(self.dtype)
        return item * self.shape[-1] if item and len(self.shape) > 1 and self.shape[-1] else None


def buffers_of(result: Mapping[str, Any]) -> tuple[Buffer, ...]:
    """The buffer table a worker reported (`facts.result["buffers"]`); entries without an address or size are left
    out."""
    table = result.get("buffers")
    found = [_buffer(entry) for entry in table if isinstance(entry, Mapping)] if isinstance(table, list | tuple) else []
    return tuple(buffer for buffer in found if buffer is not None)


def _buffer(entry: Mapping[str, Any]) -> Buffer | None:
    address, size = entry.get("address"), entry.get("size", entry.get("bytes"))
    if not isinstance(address, int) or not isinstance(size, int) or size <= 0 or address <= 0:
        return None
    shape = entry.get("shape") or ()
    dims = tuple(d for d in shape if isinstance(d, int)) if isinstance(shape, list | tuple) else ()
    return Buffer(str(entry.get("name")), address, size, entry.get("dtype"), dims)


def announced(entry: object) -> Buffer | None:
    """A buffer as a worker announced it before it was allocated, with address 0; None where its size is not known."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("shape"), list | tuple):
        return None
    item, dims = item_bytes(entry.get("dtype")), tuple(entry["shape"])
    if item is None or not all(isinstance(dim, int) for dim in dims):
        return None
    return Buffer(str(entry.get("name")), 0, item * prod(dims), entry.get("dtype"), dims)


def locate(address: int, buffers: Iterable[Buffer]) -> Allocation | None:
    """The buffer an address is in or nearest to. `distance` counts as compute-sanitizer does: 0 inside, 1 for the
    first byte past the end and for the last one before the start. None where every buffer is more than 1 GiB away."""
    places = [_place(address, buffer) for buffer in buffers]
    nearest = min(places, key=lambda place: place.distance, default=None)
    return nearest if nearest is not None and nearest.distance <= NEAR_BYTES else None


def _place(address: int, buffer: Buffer) -> Allocation:
    end = buffer.address + buffer.size
    if address < buffer.address:
        return Allocation(buffer.address, buffer.size, buffer.address - address, "before", buffer.name)
    if address >= end:
        return Allocation(buffer.address, buffer.size, address - end + 1, "after", buffer.name)
    return Allocation(buffer.address, buffer.size, 0, "inside", buffer.name)


def named(allocation: Allocation | None, address: int | None, buffers: Iterable[Buffer]) -> Allocation | None:
    """An allocation a tool reported, with the case's name for it; without one, the case's own nearest buffer."""
    table = tuple(buffers)
    if allocation is not None:
        same = next((b for b in table if b.address == allocation.address), None)
        return replace(allocation, name=same.name) if same is not None and allocation.name is None else allocation
    return locate(address, table) if address is not None else None


def is_null(address: int | None) -> TypeGuard[int]:
    """Whether an address is a null pointer's, or a small offset from it."""
    return address is not None and 0 <= address < NULL_BYTES


def is_far(allocation: Allocation) -> bool:
    """Whether even the nearest buffer is too far away for its distance to mean something."""
    return allocation.side != "inside" and allocation.distance > NEAR_BYTES


def position(allocation: Allocation, what: str, count: Callable[[int], str], address: int | None = None) -> str:
    """Where an access begins, in words: `right at the end of WHAT`, `32 bytes past the end of WHAT`.

    The one place for these words. Bytes are counted from the edge to the first byte of the access, so that an access to
    the first byte that is not there is 0 past the end: compute-sanitizer, and `Allocation.distance`, say 1 there.
    `count` writes a number of bytes; with `address` an access that begins before the end and reaches past it is told,
    and a null pointer. Of a buffer that is far away only the name is said: it need not be the one that was meant.
    """
    if is_null(address):
        return f"a null pointer{f' plus {count(address)}' if address else ''}"
    if is_far(allocation):
        return f"far from every buffer, nearest is {what}"
    if allocation.side == "inside":
        return f"inside {what}"
    if allocation.side == "before":
        return f"{count(allocation.distance)} before the start of {what}"
    if address is not None and allocation.address <= address < allocation.address + allocation.size:
        return f"across the end of {what}"
    past = max(0, allocation.distance - 1)
    return f"{count(past)} past the end of {what}" if past else f"right at the end of {what}"


def words(allocation: Allocation, *, buffers: Iterable[Buffer] = (), address: int | None = None) -> str:
    """An allocation in words: "right at the end of `scratch` (row 4095)".

    With the buffer's shape it says which row (of the last axis, counted through all leading axes) is nearest.
    """
    name = (
        f"`{allocation.name}`"
        if allocation.name
        else f"the allocation at {allocation.address:#x} of {_bytes(allocation.size)}"
    )
    state = "freed " if allocation.state == "freed" else ""
    return position(allocation, f"{state}{name}", _bytes, address) + _row(allocation, address, buffers)


def _row(allocation: Allocation, address: int | None, buffers: Iterable[Buffer]) -> str:
    buffer = next((b for b in buffers if b.address == allocation.address), None)
    if buffer is None or buffer.row_bytes is None or is_null(address) or is_far(allocation):
        return ""
    offset = {"before": 0, "after": buffer.size - 1}.get(allocation.side)
    if offset is None:
        offset = address - buffer.address if address is not None else None
    return f" (row {offset // buffer.row_bytes})" if offset is not None else ""


def _bytes(count: int) -> str:
    return f"{count:,} byte{'s' if count != 1 else ''}".replace(",", " ")
