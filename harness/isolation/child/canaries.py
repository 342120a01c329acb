"""Small buffers of a known pattern in device memory: a store that strays into one is seen after the test that did it.

They see only what lands in them. A test that is silent here is not proven clean; memcheck is for that.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

_COUNT = 16
_BYTES = 4096
_PATTERN = 0xC5
_EXPECTED = bytes([_PATTERN]) * _BYTES


@dataclass(frozen=True)
class _Canary:
    ordinal: int
    address: int


class Canaries:
    """Planted in the primary context of every device once a test has made it active; read again after each phase."""

    def __init__(self) -> None:
        self._planted: dict[int, list[_Canary]] = {}

    def damage(self, library: ctypes.CDLL) -> str | None:
        """What was overwritten, None for nothing. A context that was reset takes its canaries along: planted anew."""
        count = ctypes.c_int()
        if library.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return None
        for ordinal in range(count.value):
            said = self._device(library, ordinal)
            if said:
                return said
        return None

    def _device(self, library: ctypes.CDLL, ordinal: int) -> str | None:
        device, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
        if library.cuDeviceGet(ctypes.byref(device), ordinal) != 0:
            return None
        library.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        context = ctypes.c_void_p()
        if not active.value or library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) != 0:
            return None
        try:
            if library.cuCtxPushCurrent_v2(context) != 0:
                return None
            try:
                return self._look(library, ordinal)
            finally:
                library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        finally:
            library.cuDevicePrimaryCtxRelease_v2(device)

    def _look(self, library: ctypes.CDLL, ordinal: int) -> str | None:
        planted = self._planted.get(ordinal)
        if planted is None:
            self._planted[ordinal] = self._plant(library, ordinal)
            return None
        for canary in planted:
            copy = ctypes.create_string_buffer(_BYTES)
            if library.cuMemcpyDtoH_v2(copy, ctypes.c_uint64(canary.address), ctypes.c_size_t(_BYTES)) != 0:
                del self._planted[ordinal]
                return None
            if copy.raw != _EXPECTED:
                return _words(canary, copy.raw)
        return None

    def _plant(self, library: ctypes.CDLL, ordinal: int) -> list[_Canary]:
        planted = []
        for _ in range(_COUNT):
            address = ctypes.c_uint64()
            if library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(_BYTES)) != 0:
                break  # a test holds all memory: those planted so far do
            if library.cuMemsetD8_v2(address, ctypes.c_ubyte(_PATTERN), ctypes.c_size_t(_BYTES)) != 0:
                break
            planted.append(_Canary(ordinal, address.value))
        return planted


def _words(canary: _Canary, found: bytes) -> str:
    differing = [at for at in range(_BYTES) if found[at] != _PATTERN]
    return (
        f"a stray store reached a memory canary of device {canary.ordinal}: {len(differing)} of {_BYTES} bytes at "
        f"{canary.address:#x} overwritten, first at offset {differing[0]}, last at {differing[-1]}"
    )
