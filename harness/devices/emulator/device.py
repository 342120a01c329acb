"""EmulatedDevice: CUDA's behaviour around a launch: broken contexts, launch limits, the driver's log, records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cache import Cache, default_folder, key_of
from .driverlog import DriverLog
from .errors import CompileError, CudaError, NotSupported, cuda_error
from .limits import LIMITS, check_launch
from .memory import Memory, OutOfMemory

if TYPE_CHECKING:
    from .kernels import Kernel, Plant, Source
    from .launch import Launcher
    from .ptx import Module

Dim3 = tuple[int, int, int]
DEFAULT_BYTES = 16 << 30
DEFAULT_HEAP_BYTES = 8 << 20


class EmulatedModule:
    """A compiled module: its PTX, and the addresses of its variables in order."""

    def __init__(self, source: Source, path: str, plant: Plant | None) -> None:
        self.source, self.path, self.plant = source, path, plant
        self.module = source.outline
        self.addresses: list[int] = []


class EmulatedKernel:
    """A kernel of a module. Attributes as the driver's function attributes, in bytes and threads."""

    def __init__(self, owner: EmulatedModule, code: Kernel) -> None:
        self.owner, self.code, self.entry = owner, code, code.info.name
        self.shared_static = code.info.shared_static
        self.local_bytes = code.info.local_bytes
        self.max_threads = code.info.max_threads
        self.from_cache = code.cached


class EmulatedDevice:
    """One emulated CUDA device of compute capability 8.0.

    `memory_model`: "exact" or "hardware". `observer`: "blocking" returns a fault from the launch, any other from the
    next call. `device_bytes`, `heap_bytes` (device malloc) and `stack_bytes` (recursion) are sizes. A launch that
    still runs `wall_limit_s` after the device was made ends as error 702 with a record; likewise one that has used up
    `fuel` (per worker, in units of 4 Mi loop turns). `leak_check`: what is not freed when it is closed is recorded.
    `workers`: CPU threads (None: all cores). `seed` other than 0 permutes the order of blocks, warps and lanes on one
    worker. `cache` False keeps nothing on disk. `count` makes `instructions` count. `level` 0 or 1 fixes LLVM's
    optimisation.
    """

    def __init__(
        self, memory_model: str = "exact", observer: str = "blocking", *, device_bytes: int = DEFAULT_BYTES,
        heap_bytes: int = DEFAULT_HEAP_BYTES, stack_bytes: int = 1024, wall_limit_s: float | None = None,
        fuel: int | None = None, workers: int | None = None, seed: int = 0, cache: bool | Path = True,
        count: bool = False, level: int | None = None, leak_check: bool = False,
    ) -> None:  # fmt: skip
        if memory_model not in ("exact", "hardware"):
            raise ValueError(f"memory model {memory_model!r}: exact or hardware")
        self.memory_model, self.blocking = memory_model, observer == "blocking"
        self.memory = Memory(memory_model, device_bytes)
        self.log = DriverLog.from_environment()
        self.stack_bytes, self.heap_bytes, self.count, self.level = stack_bytes, heap_bytes, count, level
        self.leak_check = leak_check
        deadline_ns = None if wall_limit_s is None else time.monotonic_ns() + int(wall_limit_s * 1e9)
        self._limits = {"workers": workers, "seed": seed, "deadline_ns": deadline_ns, "fuel": fuel}
        folder = default_folder() / "emulator" if cache is True else cache or None
        self.cache = Cache(folder)
        self._broken: int | None = None
        self._records: list[dict[str, Any]] = []
        self._modules: list[EmulatedModule] = []
        self._launcher: Launcher | None = None
        self._lock = threading.Lock()

    # -- facts -------------------------------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What `facts` of the interface asks for."""
        total = self.memory.device_bytes
        return {
            "name": "cudadiag emulated device",
            "device": "emulator",
            "compute_capability": [8, 0],
            "memory_model": self.memory_model,
            "total_memory": total,
            "free_memory": total - self.memory.used_bytes,
            "limits": dict(LIMITS),
            "stack_bytes": self.stack_bytes,
            "heap_bytes": self.heap_bytes,
        }

    def records(self) -> list[dict[str, Any]]:
        """Memory-checker records so far."""
        return list(self._records)

    @property
    def instructions(self) -> int:
        """PTX instructions the last launch executed, if the device was made with `count`."""
        return self._launcher.instructions if self._launcher else 0

    # -- compilation -------------------------------------------------------------------------------------------------

    def compile(
        self, source: str, path: str, options: Sequence[str], plant: Mapping[str, Any] | None = None
    ) -> EmulatedModule:
        """CUDA C++ text to a loaded module. Raises CompileError, NotSupported (NVRTC missing).

        `plant` {"kind": "illegal-instruction", "entry", "line" | "pc"}: the first PTX instruction of that line (or
        the one numbered pc / 16) is made illegal.
        """
        self._check("cuModuleLoadData")
        return self.load_ptx(self._ptx(source, path, options), path, plant)

    def compile_by_driver(self, source: str, path: str, options: Sequence[str]) -> EmulatedModule:
        raise NotSupported("there is no driver whose compiler could be asked")

    def load_ptx(self, ptx: str, path: str = "", plant: Mapping[str, Any] | None = None) -> EmulatedModule:
        """PTX text to a loaded module, its variables allocated and initialised."""
        from .kernels import Plant, Source
        from .ptx import PtxError

        try:
            source = Source(ptx)
        except PtxError as error:
            raise NotSupported(f"PTX that cannot be read: {error}") from None
        fault = None
        if plant is not None:
            if plant.get("kind") != "illegal-instruction":
                raise NotSupported(f"plant of kind {plant.get('kind')!r}")
            entry = _entry(source.outline, plant["entry"]) or plant["entry"]
            pc = plant.get("pc")
            fault = Plant(entry, plant.get("line"), None if pc is None else int(pc) // 16)
        loaded = EmulatedModule(source, path, fault)
        self._load_variables(loaded)
        self._modules.append(loaded)
        return loaded

    def _ptx(self, source: str, path: str, options: Sequence[str]) -> str:
        from . import nvrtc

        try:
            read = nvrtc.included_text(source, path, options)
            key = key_of("ptx", source, path, repr(list(options)), nvrtc.identity(), read or b"")
            cached = self.cache.get(key) if read is not None else None
            if cached is not None:
                return cached.decode()
            ptx = nvrtc.compile_to_ptx(source, path, options)
        except nvrtc.Refused as error:
            raise CompileError(error.log) from None
        except nvrtc.NvrtcMissing as error:
            raise NotSupported(f"NVRTC: {error}") from None
        if read is not None:
            self.cache.put(key, ptx.encode())
        return ptx

    def _load_variables(self, loaded: EmulatedModule) -> None:
        from .variables import initial_bytes

        for variable in loaded.module.variables.values():
            if variable.space in ("global", "const"):
                loaded.addresses.append(self._new(max(variable.size, 1), variable.name, "cuModuleLoadData"))
        images = initial_bytes(loaded.module, loaded.addresses)
        for address, image in zip(loaded.addresses, images, strict=True):
            self.memory.write(address, image)

    def kernel(self, module: EmulatedModule, entry: str) -> EmulatedKernel:
        """The kernel `entry`. Raises NotSupported where it needs an instruction that is not emulated."""
        from . import jit, kernels, translate
        from .ptx import PtxError
        from .unit import Options

        name = _entry(module.module, entry)
        if name is None:
            raise self._returned(cuda_error(500, "cuModuleGetFunction"))
        options = Options(exact=self.memory_model == "exact", count=self.count)
        try:
            code = kernels.build(module.source, name, options, self.cache, module.plant, self.level, self.stack_bytes)
        except (translate.Refused, jit.LinkError, PtxError, ValueError) as error:
            raise NotSupported(str(error)) from None
        return EmulatedKernel(module, code)

    # -- memory ------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, name: str) -> int:
        """Device memory named for reports; zero bytes give address 0. Raises CudaError 2."""
        self._check("cuMemAlloc_v2")
        return self._new(nbytes, name, "cuMemAlloc_v2") if nbytes else 0

    def _new(self, nbytes: int, name: str, call: str) -> int:
        with self._lock:
            try:
                return self.memory.allocate(nbytes, name)
            except OutOfMemory:
                raise self._returned(cuda_error(2, call)) from None

    def free(self, address: int) -> None:
        """Free an allocation; address 0 is nothing. Raises CudaError 1 for what is no live allocation."""
        self._check("cuMemFree_v2")
        if address and not self.memory.free(address):
            raise self._returned(cuda_error(1, "cuMemFree_v2"))

    def write(self, address: int, data: bytes) -> None:
        """Host to device."""
        self._check("cuMemcpyHtoD_v2")
        if len(data):
            self._hold(address, len(data), "cuMemcpyHtoD_v2")
            self.memory.write(address, bytes(data))

    def read(self, address: int, nbytes: int) -> bytes:
        """Device to host."""
        self._check("cuMemcpyDtoH_v2")
        if not nbytes:
            return b""
        self._hold(address, nbytes, "cuMemcpyDtoH_v2")
        return self.memory.read(address, nbytes)

    def _hold(self, address: int, nbytes: int, call: str) -> None:
        if not self.memory.holds(address, nbytes):
            raise self._returned(cuda_error(1, call))

    # -- launches ----------------------------------------------------------------------------------------------------

    def launch(
        self, kernel: EmulatedKernel, grid: Dim3, block: Dim3, shared_bytes: int, args: Sequence[tuple[str, Any]],
        cluster: Dim3 | None = None,
    ) -> None:  # fmt: skip
        """Run a grid to its end. A fault breaks the context; it is returned here (observer "blocking") or by the next
        call."""
        self._check("cuLaunchKernel")
        if cluster is not None and tuple(cluster) != (1, 1, 1):
            raise NotSupported("thread block clusters need compute capability 9.0; the emulated device has 8.0")
        refusal = check_launch(kernel.code.info, grid, block, shared_bytes)
        if refusal is not None:
            number, words = refusal
            for text in words:
                self.log.say(text)
            raise self._returned(cuda_error(number, "cuLaunchKernel"))
        self._run(kernel, grid, block, shared_bytes, self._parameters(kernel, args))
        if self.blocking:
            self._check("cuLaunchKernel")

    def _parameters(self, kernel: EmulatedKernel, args: Sequence[tuple[str, Any]]) -> bytes:
        from .arguments import BadArgument, argument_bytes

        wanted = kernel.code.info.params
        data = bytearray(kernel.code.info.params_size)
        if len(args) != len(wanted):
            raise NotSupported(f"{kernel.entry} takes {len(wanted)} arguments, {len(args)} were given")
        for (offset, size, _), (dtype, value) in zip(wanted, args, strict=True):
            try:
                data[offset : offset + size] = argument_bytes(dtype, value, size)
            except BadArgument as error:
                raise NotSupported(f"{kernel.entry}: {error}") from None
        return bytes(data)

    def _run(self, kernel: EmulatedKernel, grid: Dim3, block: Dim3, shared_bytes: int, params: bytes) -> None:
        from .report import error_number, record

        stop = self._launcher_of().run(kernel.code, kernel.owner.addresses, grid, block, shared_bytes, params)
        if stop is not None:
            self._records.append(record(stop, kernel.code, self.memory))
            self._broken = error_number(stop, kernel.code)
            self._told = False

    def _launcher_of(self) -> Launcher:
        if self._launcher is None:
            from .kernels import Scheduler
            from .launch import Launcher, Settings

            settings = Settings(exact=self.memory_model == "exact", **self._limits)  # type: ignore[arg-type]
            self._launcher = Launcher(self.memory, Scheduler(self.cache), settings, self.heap_bytes)
        return self._launcher

    def synchronise(self) -> None:
        """Nothing is ever pending; a broken context says so."""
        self._check("cuCtxSynchronize")

    def elapsed_us(self, body: Callable[[], object]) -> float:
        """Microseconds of this CPU that `body()` took."""
        start = time.perf_counter()
        body()
        self._check("cuEventSynchronize")
        return (time.perf_counter() - start) * 1e6

    def close(self) -> None:
        """Forget the launcher and its buffers; what is still allocated is a leak, where those are looked for."""
        if self.leak_check and self._broken is None:
            self._records += self._leaks()
        if self._launcher is not None:
            self._launcher.close()
        self._launcher = None

    def _leaks(self) -> list[dict[str, Any]]:
        from .report import leak

        variables = {address for loaded in self._modules for address in loaded.addresses}
        return [leak(found) for found in self.memory.live() if found.address not in variables]

    # -- errors ------------------------------------------------------------------------------------------------------

    _told = True

    def _check(self, call: str) -> None:
        """A context that a fault broke returns the same error from every call."""
        if self._broken is not None:
            error = cuda_error(self._broken, call)
            self.log.returned(error, sticky=self._told)
            self._told = True
            raise error

    def _returned(self, error: CudaError) -> CudaError:
        self.log.returned(error)
        return error


def _entry(module: Module, name: str) -> str | None:
    """The kernel called `name`: as spelled, or the only one whose mangled name holds it. None if there is none."""
    function = module.functions.get(name)
    if function is not None and function.entry and function.body is not None:
        return name
    piece = f"{len(name)}{name}"
    found = [f.name for f in module.functions.values() if f.entry and f.body is not None and f.name.startswith("_Z")]
    found = [f for f in found if f[2:].lstrip("N").startswith(piece) or f"N{piece}" in f or piece in f]
    return found[0] if len(found) == 1 else None
