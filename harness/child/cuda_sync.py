"""Synchronise every CUDA context that this process has used, whatever library made it. Loaded by path in the child.

Uses libcuda through ctypes, and only if it is mapped already: a program that never touched CUDA stays that way.
"""

from __future__ import annotations

import ctypes

_NOT_INITIALISED = 3
_SUCCESS = 0


class CudaCallError(Exception):
    """A driver call failed; the attributes are those of the devices' CudaError."""

    def __init__(self, cuda_name: str, number: int, text: str, call: str) -> None:
        super().__init__(f"{cuda_name}: {text}")
        self.cuda_name = cuda_name
        self.number = number
        self.text = text
        self.call = call


def mapped_libcuda() -> str | None:
    """The path of the libcuda this process has mapped, None if it has none."""
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.rstrip("\n").partition("/")
                name = path[2].rpartition("/")[2]
                if name.startswith("libcuda.so"):
                    return "/" + path[2]
    except OSError:
        return None
    return None


def _check(library: ctypes.CDLL, number: int, call: str) -> None:
    if number == _SUCCESS:
        return
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    library.cuGetErrorName(number, ctypes.byref(name))
    library.cuGetErrorString(number, ctypes.byref(text))
    raise CudaCallError((name.value or b"unknown error").decode(), number, (text.value or b"").decode(), call)


def synchronise() -> list[str]:
    """Wait for all work of the current context and of every active primary context; returns which were synchronised.

    Raises CudaCallError for a fault that nobody had noticed yet.
    """
    path = mapped_libcuda()
    return [] if path is None else synchronise_with(ctypes.CDLL(path))


def synchronise_with(library: ctypes.CDLL) -> list[str]:
    """The same with a libcuda that the caller has opened."""
    count = ctypes.c_int()
    number = library.cuDeviceGetCount(ctypes.byref(count))
    if number == _NOT_INITIALISED:
        return []
    _check(library, number, "cuDeviceGetCount")
    done = []
    current = ctypes.c_void_p()
    library.cuCtxGetCurrent(ctypes.byref(current))
    if current.value:
        _check(library, library.cuCtxSynchronize(), "cuCtxSynchronize")
        done.append("current context")
    for ordinal in range(count.value):
        if _synchronise_primary(library, ordinal):
            done.append(f"primary context of device {ordinal}")
    return done


def _synchronise_primary(library: ctypes.CDLL, ordinal: int) -> bool:
    device, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    _check(library, library.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
    state = library.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
    _check(library, state, "cuDevicePrimaryCtxGetState")
    if not active.value:
        return False
    context = ctypes.c_void_p()
    retain = library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    _check(library, retain, "cuDevicePrimaryCtxRetain")
    try:
        _check(library, library.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")
        try:
            _check(library, library.cuCtxSynchronize(), "cuCtxSynchronize")
        finally:
            popped = ctypes.c_void_p()
            library.cuCtxPopCurrent_v2(ctypes.byref(popped))
    finally:
        library.cuDevicePrimaryCtxRelease_v2(device)
    return True
