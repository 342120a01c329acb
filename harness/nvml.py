"""NVML, and nothing else of CUDA, in the controller: it must stay free of a CUDA context, which would hold device
memory.

Every function answers None or an empty list where NVML is missing or does not know; `state` tells which.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

_lock = threading.Lock()
_loaded: _Nvml | None = None


@dataclass(frozen=True)
class _Nvml:
    """The initialised module, or why there is none."""

    module: Any | None
    problem: str | None


def _load() -> _Nvml:
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _initialise()
        return _loaded


def _initialise() -> _Nvml:
    try:
        import pynvml
    except ImportError as error:
        return _Nvml(None, f"nvidia-ml-py is not installed ({error})")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _Nvml(None, str(error))
    return _Nvml(pynvml, None)


def problem() -> str | None:
    """Why NVML cannot be asked; None when it can."""
    return _load().problem


def ask(question: Callable[[Any], Any], default: Any = None) -> Any:
    """`question(pynvml)`, or `default` where NVML is missing or refuses this question."""
    module = _load().module
    if module is None:
        return default
    try:
        return question(module)
    except module.NVMLError:
        return default


def handle(uuid: str) -> Any | None:
    """NVML's handle of a GPU or MIG instance by UUID."""
    return ask(lambda m: m.nvmlDeviceGetHandleByUUID(uuid))


def process_bytes(uuid: str, pids: Iterable[int]) -> int | None:
    """Device memory that these processes hold on the device; None where NVML does not say (in most containers)."""
    device = handle(uuid)
    if device is None:
        return None
    wanted = set(pids)
    running = ask(lambda m: m.nvmlDeviceGetComputeRunningProcesses(device), [])
    known = [process.usedGpuMemory for process in running if process.pid in wanted]
    sizes = [size for size in known if size is not None]
    return sum(sizes) if sizes else None
