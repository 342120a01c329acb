"""The memory one block needs while it runs: its threads, their local memory, its shared memory, and the Context."""

from __future__ import annotations

import ctypes
import mmap

from .layout import CONTEXT, CONTEXT_SIZE, Status, Wait, pack_context, unpack_context, unpack_thread
from .memory import reserve
from .translate import KernelInfo

_GAP = 1 << 12


class Area:
    """Buffers for one block at a time, grown when a launch needs more, and the Context that points to them."""

    def __init__(self) -> None:
        self.context = ctypes.create_string_buffer(CONTEXT_SIZE + 64)
        self.context_at = (ctypes.addressof(self.context) + 63) // 64 * 64
        self.stop = ctypes.c_uint32(0)
        self._buffers: dict[str, tuple[mmap.mmap, int, int]] = {}
        self._shape: tuple[object, ...] = ()

    def _buffer(self, name: str, size: int) -> int:
        """Host address of the buffer `name`, at least `size` bytes."""
        held = self._buffers.get(name)
        if held is None or held[2] < size:
            room = max(2 * size, 1 << 16)
            held = (*reserve(room + _GAP), room)
            self._buffers[name] = held
        return held[1]

    def prepare(self, info: KernelInfo, threads: int, dynamic_shared: int, exact: bool, common: dict[str, int]) -> None:
        """Set the Context for a launch; `common` are the fields that are the same for all workers."""
        shared_size = shared_bytes(info, dynamic_shared, exact)
        stride = info.state_bytes
        local_stride = (info.local_bytes + 15) // 16 * 16
        self.stop.value = 0
        shared = self._buffer("shared", shared_size + 64)
        valid = self._buffer("valid", shared_size // 8 + 64)
        shape = (info.shared_regions, info.shared_dynamic, dynamic_shared, exact, valid)
        if shape != self._shape:
            self._shape = shape
            self._fill_valid(valid, info, dynamic_shared, shared_size, exact)
        values = {
            **common,
            "shared": shared,
            "shared_valid": valid,
            "local": self._buffer("local", local_stride * threads + 64),
            "local_stride": local_stride,
            "threads_at": self._buffer("threads", stride * threads + 64),
            "stride": stride,
            "shared_size": shared_size,
            "local_size": info.local_bytes,
            "stop": ctypes.addressof(self.stop),
        }
        ctypes.memmove(self.context_at, pack_context(values), CONTEXT_SIZE)

    def _fill_valid(self, valid: int, info: KernelInfo, dynamic: int, size: int, exact: bool) -> None:
        """The table of accessible bytes from each 16 bytes on: exact to the variable, or everything up to the size."""
        ctypes.memset(valid, 0, size // 8 + 64)
        regions = [(0, size)]
        if exact:
            regions = [(offset, length) for _, offset, length in info.shared_regions]
            regions.append((info.shared_dynamic, dynamic))
        for offset, length in regions:
            for at in range(0, length, 16):
                ctypes.c_uint16.from_address(valid + (offset + at) // 8).value = min(length - at, 65535)

    # -- the Context and the Threads as Python sees them ---------------------------------------------------------------

    def fields(self) -> dict[str, int]:
        """All fields of the Context now."""
        return unpack_context(ctypes.string_at(self.context_at, CONTEXT_SIZE))

    def get(self, field: str) -> int:
        return ctypes.c_uint64.from_address(self.context_at + CONTEXT[field]).value

    def set(self, field: str, value: int) -> None:
        """Set a 64-bit field."""
        ctypes.c_uint64.from_address(self.context_at + CONTEXT[field]).value = value

    def thread_address(self, index: int) -> int:
        return self.get("threads_at") + index * self.get("stride")

    def thread(self, index: int) -> dict[str, int]:
        """The fields of one Thread."""
        return unpack_thread(ctypes.string_at(self.thread_address(index), 128))

    def snapshot(self, threads: int) -> bytes:
        """Everything of the block that can change: threads with their frames, shared memory, local memory."""
        fields = self.fields()
        parts = [ctypes.string_at(fields["threads_at"], fields["stride"] * threads)]
        parts.append(ctypes.string_at(fields["shared"], fields["shared_size"]))
        parts.append(ctypes.string_at(fields["local"], fields["local_stride"] * threads))
        return b"".join(parts)


def shared_bytes(info: KernelInfo, dynamic: int, exact: bool) -> int:
    """Size of the shared address range of a block. A GPU hands it out in pieces of 128 bytes."""
    if not exact:
        return (info.shared_static + (-info.shared_static % 16 if dynamic else 0) + dynamic + 127) // 128 * 128
    last = max((offset + size for _, offset, size in info.shared_regions), default=0)
    return max(last, info.shared_dynamic + dynamic) if dynamic else last


def waits_for(thread: dict[str, int]) -> str:
    """What a thread is doing, in words."""
    status, op = thread["status"], thread["op"]
    if status == Status.EXITED:
        return "left the kernel"
    if status == Status.BARRIER:
        return f"waits at barrier {thread['mask']}"
    if status == Status.WARP:
        name = Wait(op).name.lower().replace("_", ".")
        return f"waits at {name} for lanes 0x{thread['mask']:08x}"
    return "is running"
