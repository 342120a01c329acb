"""A real GPU through cuda.bindings, as a kernel target sees it (`interface.Device`). Loaded by path in the child.

The driver API and not cuda.core: cuda.core imports numpy, a third of a second that every probe would pay.
"""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_DEFAULT_SHARED_BYTES = 48 * 1024  # more is given only to kernels that asked for it
_CTYPES = {
    "pointer": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "bool": ctypes.c_bool,
}
_KERNEL_ATTRIBUTES = {
    "registers": "NUM_REGS",
    "shared_static": "SHARED_SIZE_BYTES",
    "local_bytes": "LOCAL_SIZE_BYTES",
    "max_threads": "MAX_THREADS_PER_BLOCK",
}
_LIMITS = (
    "max_threads_per_block",
    "max_block_dim_x",
    "max_block_dim_y",
    "max_block_dim_z",
    "max_grid_dim_x",
    "max_grid_dim_y",
    "max_grid_dim_z",
    "max_shared_memory_per_block",
    "max_shared_memory_per_block_optin",
    "multiprocessor_count",
    "warp_size",
)


class _Module:
    """A loaded module, and the functions in it as the driver knows them."""

    def __init__(self, handle: Any, functions: list[str], log: str) -> None:
        self.handle = handle
        self.functions = functions
        self.log = log


class _Kernel:
    """A kernel, and what it takes: registers a thread, static shared and local bytes, the largest block it runs
    with."""

    def __init__(self, handle: Any, registers: int, shared_static: int, local_bytes: int, max_threads: int) -> None:
        self.handle = handle
        self.registers = registers
        self.shared_static = shared_static
        self.local_bytes = local_bytes
        self.max_threads = max_threads


class CudaDevice:
    """The GPU or MIG instance of a UUID ("" for the first visible one), with its primary context current.

    `load` is the worker's loader of our own files. Raises CudaError for a driver that refuses, NotSupported where the
    bindings are missing or no visible device has that UUID.
    """

    def __init__(self, uuid: str, load: Callable[..., Any]) -> None:
        self._interface = load("interface", "devices", "interface.py")
        self._compiler = load("compiler", "devices", "compiler.py")
        self._cubin = load("cubin", "devices", "cubin.py")
        self._dtypes = load("dtypes", "child", "dtypes.py")
        try:
            from cuda.bindings import driver
        except ImportError as error:
            raise self._interface.NotSupported(f"cuda.bindings cannot be imported ({error})") from error
        self._driver = driver
        self._call("cuInit", 0)
        self._device = self._find(uuid)
        self._context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._call("cuCtxSetCurrent", self._context)
        self._events: list[Any] = []

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *values = getattr(self._driver, name)(*arguments)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise self._error(status, name)
        return values[0] if len(values) == 1 else values

    def _error(self, status: Any, call: str) -> Exception:
        _, text = self._driver.cuGetErrorString(status)
        _, name = self._driver.cuGetErrorName(status)
        plain = [value.decode() if value else "unknown error" for value in (name, text)]
        error: Exception = self._interface.CudaError(plain[0], int(status), plain[1], call)
        return error

    def _find(self, uuid: str) -> Any:
        count = self._call("cuDeviceGetCount")
        devices = [self._call("cuDeviceGet", ordinal) for ordinal in range(count)]
        # The launcher shows a probe its own device only. A MIG instance's UUID is not the one that the driver tells.
        if len(devices) == 1 or (devices and not uuid):
            return devices[0]
        for device in devices:
            if self._uuid(device) == uuid:
                return device
        raise self._interface.NotSupported(f"none of the {count} visible CUDA devices is {uuid or 'usable'}")

    def _uuid(self, device: Any) -> str:
        raw = bytes(self._call("cuDeviceGetUuid", device).bytes).hex()
        return f"GPU-{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"

    def _pci_bus_id(self) -> str:
        """As the kernel log writes it in Xid lines: 0000:1b:00."""
        domain, bus, device = (self._attribute(f"PCI_{name}_ID") for name in ("DOMAIN", "BUS", "DEVICE"))
        return f"{domain:04x}:{bus:02x}:{device:02x}"

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._driver.CUdevice_attribute, "CU_DEVICE_ATTRIBUTE_" + name)
        return int(self._call("cuDeviceGetAttribute", attribute, self._device))

    @property
    def capability(self) -> tuple[int, int]:
        return self._attribute("COMPUTE_CAPABILITY_MAJOR"), self._attribute("COMPUTE_CAPABILITY_MINOR")

    def facts(self) -> dict[str, Any]:
        free, total = self._call("cuMemGetInfo")
        name = self._call("cuDeviceGetName", 256, self._device)
        return {
            "name": name.split(b"\0")[0].decode(),
            "device": "cuda",
            "uuid": self._uuid(self._device),
            "pci_bus_id": self._pci_bus_id(),
            "compute_capability": list(self.capability),
            "memory_model": "hardware",
            "driver": int(self._call("cuDriverGetVersion")),
            "nvrtc": self._compiler.version(self._interface),
            "total_memory": int(total),
            "free_memory": int(free),
            "limits": {name: self._attribute(name.upper()) for name in _LIMITS},
        }

    def compile(self, source: str, path: str, options: Sequence[str], plant: dict[str, Any] | None = None) -> _Module:
        code, log = self._compiler.compile_cubin(source, path, options, self.capability, self._interface)
        cubin = self._cubin.Cubin(code)
        if plant is not None:
            self._plant(cubin, path, plant)
        return _Module(self._call("cuModuleLoadData", bytes(cubin.data)), cubin.functions(), log)

    def compile_by_driver(self, source: str, path: str, options: Sequence[str]) -> _Module:
        ptx, log = self._compiler.compile_ptx(source, path, options, self.capability, self._interface)
        line_info = self._driver.CUjit_option.CU_JIT_GENERATE_LINE_INFO
        handle = self._call("cuModuleLoadDataEx", ptx, 1, [line_info], [1])
        return _Module(handle, self._cubin.ptx_kernels(ptx), log)

    def _plant(self, cubin: Any, path: str, plant: dict[str, Any]) -> None:
        function = self._function_name(cubin.functions(), plant["entry"])
        pcs = [plant["pc"]] if plant.get("pc") is not None else cubin.effects_of_line(function, path, plant["line"])
        for pc in pcs:
            cubin.overwrite(function, pc)

    def _function_name(self, functions: list[str], entry: str) -> str:
        """The driver's name of a kernel. Asked of the file, since a refused look-up is an API error to the
        sanitizer."""
        name = self._cubin.find_function(functions, entry)
        if name is None:
            raise self._interface.CudaError(
                "CUDA_ERROR_NOT_FOUND",
                500,
                f"no kernel {entry!r}; the module has {', '.join(functions) or 'none'}",
                "cuModuleGetFunction",
            )
        return str(name)

    def kernel(self, module: _Module, entry: str) -> _Kernel:
        handle = self._call("cuModuleGetFunction", module.handle, self._function_name(module.functions, entry).encode())
        kinds = self._driver.CUfunction_attribute
        asked = {
            name: int(self._call("cuFuncGetAttribute", getattr(kinds, "CU_FUNC_ATTRIBUTE_" + attribute), handle))
            for name, attribute in _KERNEL_ATTRIBUTES.items()
        }
        return _Kernel(handle, **asked)

    def allocate(self, nbytes: int, name: str) -> int:
        return int(self._call("cuMemAlloc", nbytes)) if nbytes else 0

    def free(self, address: int) -> None:
        self._call("cuMemFree", address)

    def write(self, address: int, data: bytes) -> None:
        self._call("cuMemcpyHtoD", address, data, len(data))

    def read(self, address: int, nbytes: int) -> bytes:
        data = bytearray(nbytes)
        if nbytes:
            self._call("cuMemcpyDtoH", data, address, nbytes)
        return bytes(data)

    def launch(
        self,
        kernel: _Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        args: list[tuple[str, Any]],
        cluster: tuple[int, int, int] | None = None,
    ) -> None:
        if shared_bytes > _DEFAULT_SHARED_BYTES:
            opt_in = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", kernel.handle, opt_in, shared_bytes)
        values = [self._pack(dtype, value) for dtype, value in args]
        # The driver reads the arguments before it returns: both arrays live until then.
        pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        parameters = ctypes.addressof(pointers)
        if cluster is None:
            self._call("cuLaunchKernel", kernel.handle, *grid, *block, shared_bytes, 0, parameters, 0)
        else:
            config = self._cluster_config(grid, block, shared_bytes, cluster)
            self._call("cuLaunchKernelEx", config, kernel.handle, parameters, 0)

    def _cluster_config(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int, cluster: tuple[int, int, int]
    ) -> Any:
        attribute = self._driver.CUlaunchAttribute()
        attribute.id = self._driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        value = self._driver.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
        attribute.value = value
        config = self._driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes = shared_bytes
        config.attrs = [attribute]
        config.numAttrs = 1
        return config

    def _pack(self, dtype: str, value: Any) -> Any:
        kind = _CTYPES.get(dtype)
        if kind is not None:
            return kind(value if dtype in ("float32", "float64", "bool") else int(value))
        return (ctypes.c_char * self._dtypes.size(dtype)).from_buffer_copy(self._dtypes.pack(dtype, value))

    def synchronise(self) -> None:
        self._call("cuCtxSynchronize")

    def elapsed_us(self, body: Callable[[], None]) -> float:
        if not self._events:
            self._events = [self._call("cuEventCreate", 0), self._call("cuEventCreate", 0)]
        begin, end = self._events
        self._call("cuEventRecord", begin, 0)
        body()
        self._call("cuEventRecord", end, 0)
        self._call("cuEventSynchronize", end)
        return float(self._call("cuEventElapsedTime", begin, end)) * 1000.0

    def records(self) -> list[dict[str, Any]]:
        return []

    def close(self) -> None:
        for event in self._events:
            self._call("cuEventDestroy", event)
        self._call("cuDevicePrimaryCtxRelease", self._device)
