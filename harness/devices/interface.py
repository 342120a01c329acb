"""What a kernel target asks of a device. Two devices stand behind it: `cuda` (a real GPU) and `emulator` (this CPU).

Used in the child, which loads this folder by file path: nothing here or in a device may say `import harness`, and the
code that runs in the user's interpreter stays within Python 3.8 and the standard library until a target needs more.
A device raises an exception with the attributes `cuda_name` ("CUDA_ERROR_ILLEGAL_ADDRESS"), `number` (700), `call`
("cuCtxSynchronize") and the CUDA text as message; a thing it cannot do raises `NotSupported`.
"""

from __future__ import annotations

from typing import Any, Protocol, Sequence  # noqa: UP035 - Python 3.8 reads this file


class CudaError(Exception):
    """A CUDA driver call failed."""

    def __init__(self, cuda_name: str, number: int, text: str, call: str) -> None:
        super().__init__(f"{cuda_name}: {text}")
        self.cuda_name = cuda_name
        self.number = number
        self.text = text
        self.call = call


class NotSupported(Exception):
    """The device cannot run this (an instruction that is not emulated, an architecture it lacks): unresolved, no
    guess."""


class CompileError(Exception):
    """NVRTC refused the source; `log` is its whole output."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


class Device(Protocol):
    """One CUDA device as a kernel target sees it. Addresses are integers; sizes are bytes.

    The worker makes it with `CudaDevice(uuid, load)` (harness/devices/cuda.py) or, from the emulator's package,
    `EmulatedDevice(memory_model="exact", observer="blocking", wall_limit_s=seconds)`.
    """

    def facts(self) -> dict[str, Any]:
        """Facts with the keys name, device ("cuda" or "emulator"), compute_capability [major, minor], memory_model,
        total_memory, free_memory, limits (by the names of CUdevice_attribute, lower case)."""

    def compile(self, source: str, path: str, options: Sequence[str], plant: dict[str, Any] | None = None) -> Any:
        """CUDA C++ text (named `path` in diagnostics and line information) to a loaded module.

        `plant` puts a fault in after compilation: {"kind": "illegal-instruction", "entry": kernel, "line": n} or with
        "pc" (bytes from the kernel's start) in place of "line". The worker has turned a marker text into the line.
        """

    def compile_by_driver(self, source: str, path: str, options: Sequence[str]) -> Any:
        """The same by way of PTX that the driver compiles: another compiler of machine code. A fault that was planted
        into machine code is not in it. Raises NotSupported where there is no driver, CudaError 222 for a driver that
        is older than the PTX."""

    def kernel(self, module: Any, entry: str) -> Any:
        """The kernel `entry` of a module. Its attributes `registers` (a thread), `shared_static`, `local_bytes` and
        `max_threads`, where the device knows them, go into the report."""

    def allocate(self, nbytes: int, name: str) -> int:
        """Device memory named for reports; zero bytes gives address 0. Raises CudaError 2 when out of memory."""

    def free(self, address: int) -> None: ...

    def write(self, address: int, data: bytes) -> None:
        """Host to device, synchronous."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Device to host, synchronous."""

    def launch(
        self,
        kernel: Any,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        args: list[tuple[str, Any]],  # (dtype name, value); pointers are ("pointer", address)
        cluster: tuple[int, int, int] | None = None,
    ) -> None: ...

    def synchronise(self) -> None: ...

    def elapsed_us(self, body: Any) -> float:
        """Run `body()` between two events and return microseconds."""

    def records(self) -> list[dict[str, Any]]:
        """Memory-checker records so far: [] on a real GPU."""

    def close(self) -> None: ...
