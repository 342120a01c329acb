"""Device memory: one reserved stretch of address space (the arena), a table of accessible bytes per 512-byte granule
that the translated code reads on every access, and an allocator for each memory model.

`exact`: every allocation is valid to the byte and has guards at least as large as itself (1 MiB or more) around it;
freed addresses are not used again while there are others. `hardware`: as a GPU does it, 512-byte pieces of 2 MiB pages;
whatever lies in a mapped page can be accessed, so a small overrun hits the neighbour or nothing.
"""

from __future__ import annotations

import array
import bisect
import ctypes
import mmap
from dataclasses import dataclass, replace

from .layout import GRANULE, aligned

DEVICE_BASE = 0x7FA000000000
PAGE = 2 << 20
GUARD = 1 << 20
_MAP_NORESERVE = 0x4000
_MOST = 65535
_ARENA_BYTES = 128 << 30
_POISONED_UP_TO = 64 << 20
"""Fresh allocations up to this size are filled with 0xFF in the exact model: reads of what was never written show."""


class OutOfMemory(Exception):
    """The device (or its address space) has no room for this."""


@dataclass(frozen=True)
class Allocation:
    """One allocation, live or freed. Addresses are device addresses; `kind` is "heap" for memory a kernel allocated."""

    address: int
    size: int
    name: str
    live: bool = True
    kind: str = "device"

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True)
class Nearest:
    """The allocation nearest to an access. `distance` as compute-sanitizer counts: the byte behind the end is 1 after,
    the byte before the start 1 before; 0 inside."""

    allocation: Allocation
    distance: int
    side: str  # "before", "after", "inside"


def reserve(size: int) -> tuple[mmap.mmap, int]:
    """Address space without memory behind it yet: the mapping and its host address."""
    space = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    return space, ctypes.addressof(ctypes.c_char.from_buffer(space))


class Memory:
    """Device memory of `device_bytes` under a memory model. Addresses taken and returned are device addresses."""

    def __init__(self, model: str, device_bytes: int) -> None:
        self.exact = model == "exact"
        self.device_bytes = device_bytes
        self.used_bytes = 0
        self.arena, self.host, self.size = self._reserve_arena()
        self.granules = self.size // GRANULE
        self._table, self.table_host = reserve(self.granules * 2 + GRANULE)  # one entry more, always 0
        self._valid = memoryview(self._table).cast("H")
        self._guard = 0  # exact: behind the latest allocation, which ends at _top
        self._top = PAGE  # the first page stays invalid: address 0 of the arena and granule 0 of the table
        self._live: dict[int, Allocation] = {}
        self._starts: list[int] = []  # addresses of all known allocations, sorted
        self._known: dict[int, Allocation] = {}
        self._reusable: list[tuple[int, int]] = []  # exact: freed (address, span) once the arena is used up
        self._free_spans: list[tuple[int, int]] = []  # hardware: (offset, bytes) inside mapped pages
        self._mapped: dict[int, int] = {}  # hardware: page number -> live allocations on it

    def _reserve_arena(self) -> tuple[mmap.mmap, int, int]:
        size = _ARENA_BYTES
        while True:
            try:
                return (*reserve(size), size)
            except (OSError, ValueError):  # an address-space limit: make do with less
                size //= 2
                if size < 1 << 28:
                    raise OutOfMemory("no address space for the emulated device's memory") from None

    # -- allocation ------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, name: str, kind: str = "device") -> int:
        """Address of new memory, 512-byte aligned. Raises OutOfMemory. Zero bytes give address 0."""
        if nbytes <= 0:
            return 0
        rounded = aligned(nbytes, GRANULE)
        if self.used_bytes + rounded > self.device_bytes:
            raise OutOfMemory(f"{nbytes} bytes asked, {self.device_bytes - self.used_bytes} free")
        offset = self._place_exact(rounded) if self.exact else self._place_packed(rounded)
        self.used_bytes += rounded
        allocation = Allocation(DEVICE_BASE + offset, nbytes, name, kind=kind)
        self._remember(allocation)
        if self.exact:
            self._set_valid(offset, nbytes)
            if nbytes <= _POISONED_UP_TO:
                ctypes.memset(self.host + offset, 0xFF, nbytes)
        return allocation.address

    def free(self, address: int) -> bool:
        """Free an allocation; False where `address` is not the start of a live one."""
        allocation = self._live.pop(address, None)
        if allocation is None:
            return False
        offset, rounded = address - DEVICE_BASE, aligned(allocation.size, GRANULE)
        self.used_bytes -= rounded
        self._known[address] = replace(allocation, live=False)
        if self.exact:
            self._clear_valid(offset, rounded)
            self._drop_pages(offset, rounded)
            self._reusable.append((offset, rounded))
        else:
            self._unmap(offset, rounded)
        return True

    def _remember(self, allocation: Allocation) -> None:
        self._live[allocation.address] = allocation
        if allocation.address not in self._known:
            bisect.insort(self._starts, allocation.address)
        self._known[allocation.address] = allocation

    def _place_exact(self, rounded: int) -> int:
        guard = max(GUARD, rounded)
        offset = self._top + max(guard, self._guard)
        if offset + rounded + guard <= self.size:
            self._top, self._guard = offset + rounded, guard
            return offset
        for index, (offset, room) in enumerate(self._reusable):
            if room >= rounded:
                del self._reusable[index]
                return offset
        raise OutOfMemory("the emulated device's address space is used up")

    def _place_packed(self, rounded: int) -> int:
        for index, (offset, room) in enumerate(self._free_spans):
            if room >= rounded:
                del self._free_spans[index]
                if room > rounded:
                    self._free_spans.append((offset + rounded, room - rounded))
                self._count_pages(offset, rounded, 1)
                return offset
        offset, pages = self._top, aligned(rounded, PAGE)
        if offset + pages + PAGE > self.size:
            raise OutOfMemory("the emulated device's address space is used up")
        self._top += pages + PAGE  # an unmapped page between groups
        self._set_valid(offset, pages)
        if pages > rounded:
            self._free_spans.append((offset + rounded, pages - rounded))
        self._count_pages(offset, rounded, 1)
        return offset

    def _count_pages(self, offset: int, rounded: int, change: int) -> list[int]:
        """Count live allocations per page; returns pages that have none left."""
        empty = []
        for page in range(offset // PAGE, (offset + rounded - 1) // PAGE + 1):
            self._mapped[page] = self._mapped.get(page, 0) + change
            if self._mapped[page] == 0:
                del self._mapped[page]
                empty.append(page)
        return empty

    def _unmap(self, offset: int, rounded: int) -> None:
        """hardware: a page without a live allocation goes away; elsewhere the room is used again, contents kept."""
        empty = set(self._count_pages(offset, rounded, -1))
        for page in empty:
            self._clear_valid(page * PAGE, PAGE)
            self._shorten_before(page)
            self._drop_pages(page * PAGE, PAGE)
        self._free_spans.append((offset, rounded))
        spans = []
        for start, room in self._free_spans:
            spans += [(s, r) for s, r in _outside(start, room, empty) if r]
        self._free_spans = spans

    # -- the table -------------------------------------------------------------------------------------------------

    def _set_valid(self, offset: int, nbytes: int) -> None:
        """Make [offset, offset + nbytes) accessible: each granule's entry is the bytes from its start to the end, as
        far as 16 bits go. What lies behind is not accessible (the caller's allocations do not touch)."""
        first, count = offset // GRANULE, aligned(nbytes, GRANULE) // GRANULE
        far = max(count - _MOST // GRANULE, 0)
        ctypes.memset(self.table_host + 2 * first, 0xFF, 2 * far)
        self._valid[first + far : first + count] = array.array(
            "H", (min(nbytes - g * GRANULE, _MOST) for g in range(far, count))
        )

    def _clear_valid(self, offset: int, nbytes: int) -> None:
        first, count = offset // GRANULE, aligned(nbytes, GRANULE) // GRANULE
        ctypes.memset(self.table_host + 2 * first, 0, 2 * count)

    def _shorten_before(self, page: int) -> None:
        """hardware: a page went away, so what is accessible before it ends there."""
        end = page * PAGE
        for granule in range(1, _MOST // GRANULE + 1):
            at = end // GRANULE - granule
            if at < 0 or self._valid[at] == 0:
                break
            self._valid[at] = min(self._valid[at], granule * GRANULE)

    def _drop_pages(self, offset: int, nbytes: int) -> None:
        """Give whole host pages back to the system."""
        start, end = aligned(offset, mmap.PAGESIZE), (offset + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if end > start and hasattr(mmap, "MADV_DONTNEED"):
            self.arena.madvise(mmap.MADV_DONTNEED, start, end - start)

    # -- access from the host --------------------------------------------------------------------------------------

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether a host copy of `nbytes` at `address` stays inside one live allocation."""
        found = self.containing(address)
        return found is not None and found.live and address + nbytes <= found.end

    def write(self, address: int, data: bytes) -> None:
        ctypes.memmove(self.host + address - DEVICE_BASE, data, len(data))

    def read(self, address: int, nbytes: int) -> bytes:
        return ctypes.string_at(self.host + address - DEVICE_BASE, nbytes)

    def text(self, address: int, limit: int = 1 << 16) -> bytes:
        """The zero-terminated bytes at `address`, as far as they are accessible."""
        data = bytearray()
        while len(data) < limit and self.is_valid(address, 1):
            byte = self.read(address, 1)
            if byte == b"\0":
                break
            data += byte
            address += 1
        return bytes(data)

    def is_valid(self, address: int, nbytes: int) -> bool:
        """Whether the table lets a kernel access these bytes (within one granule)."""
        offset = address - DEVICE_BASE
        if not 0 <= offset < self.size:
            return False
        return offset % GRANULE + nbytes <= self._valid[offset // GRANULE]

    # -- reports ---------------------------------------------------------------------------------------------------

    def containing(self, address: int) -> Allocation | None:
        """The live or freed allocation around `address`."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        found = self._known[self._starts[index]]
        return found if found.address <= address < found.end else None

    def live(self) -> list[Allocation]:
        """Allocations not freed, in the order they were made."""
        return list(self._live.values())

    def nearest(self, address: int, size: int = 1) -> Nearest | None:
        """The allocation nearest to the access [address, address + size): the containing one, else the nearer edge."""
        index = bisect.bisect_right(self._starts, address)
        near = [self._known[self._starts[i]] for i in (index - 1, index) if 0 <= i < len(self._starts)]
        places = [_distance(a, address, size) for a in near]
        return min(places, key=lambda n: n.distance, default=None)


def _distance(allocation: Allocation, address: int, size: int) -> Nearest:
    if address < allocation.address:
        return Nearest(allocation, allocation.address - address, "before")
    if address >= allocation.end:
        return Nearest(allocation, address - allocation.end + 1, "after")
    if address + size > allocation.end:  # straddles the end
        return Nearest(allocation, 1, "after")
    return Nearest(allocation, 0, "inside")


def _outside(start: int, room: int, pages: set[int]) -> list[tuple[int, int]]:
    """The parts of a span that do not lie in any of `pages`."""
    parts, at, end = [], start, start + room
    for page in sorted(p for p in pages if p * PAGE < end and (p + 1) * PAGE > start):
        parts.append((at, max(page * PAGE - at, 0)))
        at = (page + 1) * PAGE
    parts.append((at, max(end - at, 0)))
    return parts
