"""The GPUs of this machine as NVML lists them; a GPU cut up by MIG counts as its instances."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import nvml

DRIVER_TRACES = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")


@dataclass(frozen=True)
class Gpu:
    """A device that CUDA can use. `capability`: 10 * major + minor; sizes in bytes; `index` counts physical GPUs."""

    index: int
    uuid: str
    name: str
    capability: int
    total_bytes: int | None  # None where NVML does not say: memory shared with the host
    free_bytes: int | None
    troubles: tuple[str, ...] | None = None  # of its memory, as NVML counts them; None where it does not

    @property
    def label(self) -> str:
        return f"cuda:{self.uuid}"

    def words(self) -> str:
        troubles = "".join(f", {trouble}" for trouble in self.troubles or ())
        memory = "memory of unknown size" if self.total_bytes is None else f"{self.total_bytes / 2**30:.1f} GiB"
        return f"{self.index}: {self.name}, sm_{self.capability}, {memory}, {self.uuid}{troubles}"


@dataclass(frozen=True)
class Machine:
    """`problem`: why the driver cannot be used, None when it can. `has_driver`: it, or a trace of it, is here."""

    has_driver: bool
    problem: str | None = None
    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[Gpu, ...] = ()
    broken: tuple[str, ...] = ()  # GPUs that NVML lists and that do not answer: which, and why


def this_machine() -> Machine:
    """Ask NVML. Makes no CUDA context."""
    problem = nvml.problem()
    if problem is not None:
        traces = [trace for trace in DRIVER_TRACES if Path(trace).exists()]
        found = bool(traces) or "Driver Not Loaded" in problem
        return Machine(found, problem if found else None)
    gpus, broken = nvml.ask(_gpus, ([], []))
    version = nvml.ask(lambda m: m.nvmlSystemGetCudaDriverVersion_v2(), 0)
    return Machine(
        has_driver=True,
        driver=nvml.ask(lambda m: m.nvmlSystemGetDriverVersion()),
        cuda=f"{version // 1000}.{version % 1000 // 10}" if version else None,
        gpus=tuple(gpus),
        broken=tuple(broken),
    )


def _gpus(module: Any) -> tuple[list[Gpu], list[str]]:
    """The GPUs, and why one that is listed cannot be used: one that fell off the bus must not hide the others."""
    found: list[Gpu] = []
    broken: list[str] = []
    for index in range(module.nvmlDeviceGetCount()):
        try:
            handle = module.nvmlDeviceGetHandleByIndex(index)
            found += [_gpu(module, part, handle, index) for part in _instances(module, handle) or [handle]]
        except module.NVMLError as problem:
            broken.append(f"GPU {index}: {problem}")
    return found, broken


def _instances(module: Any, handle: Any) -> list[Any]:
    """The MIG instances of a GPU; [] where MIG is off or unknown."""
    try:
        if module.nvmlDeviceGetMigMode(handle)[0] != module.NVML_DEVICE_MIG_ENABLE:
            return []
        count = module.nvmlDeviceGetMaxMigDeviceCount(handle)
    except module.NVMLError:
        return []
    instances = []
    for number in range(count):
        try:
            instances.append(module.nvmlDeviceGetMigDeviceHandleByIndex(handle, number))
        except module.NVMLError:  # a place that no instance occupies
            continue
    return instances


def _gpu(module: Any, part: Any, whole: Any, index: int) -> Gpu:
    major, minor = module.nvmlDeviceGetCudaComputeCapability(whole)
    total, free = _memory(module, part)
    return Gpu(
        index=index,
        uuid=_text(module.nvmlDeviceGetUUID(part)),
        name=_text(module.nvmlDeviceGetName(whole)),
        capability=10 * major + minor,
        total_bytes=total,
        free_bytes=free,
        troubles=_troubles(module, whole),
    )


def _memory(module: Any, part: Any) -> tuple[int | None, int | None]:
    try:
        memory = module.nvmlDeviceGetMemoryInfo(part)
    except module.NVMLError_NotSupported:
        return None, None
    return int(memory.total), int(memory.free)


def _troubles(module: Any, whole: Any) -> tuple[str, ...] | None:
    """Signs of failing memory in words: () for none, None for a GPU without ECC, or whose counters nobody may read."""
    try:
        errors = module.nvmlDeviceGetTotalEccErrors(
            whole, module.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, module.NVML_VOLATILE_ECC
        )
    except module.NVMLError:
        return None
    found = [f"{errors} uncorrected ECC errors since the driver was loaded"] if errors else []
    try:
        _, _, pending, failed = module.nvmlDeviceGetRemappedRows(whole)
    except module.NVMLError:  # only GPUs since sm_80 remap rows
        return tuple(found)
    found += ["a row of memory could not be remapped"] if failed else []
    found += ["a row of memory waits to be remapped at the next reset"] if pending else []
    return tuple(found)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
