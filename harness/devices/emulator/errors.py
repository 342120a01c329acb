"""CUDA's error codes and texts as the emulated device raises them, and the exceptions of the device interface.

They are recognised by their attributes (`cuda_name`, `number`, `text`, `call`; `log`), not by their class: the worker
loads this package and the interface by file path.
"""

from __future__ import annotations

CODES: dict[int, tuple[str, str]] = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
    702: ("CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"),
    710: ("CUDA_ERROR_ASSERT", "device-side assert triggered"),
    715: ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"),
    716: ("CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"),
    717: ("CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"),
    718: ("CUDA_ERROR_INVALID_PC", "invalid program counter"),
    719: ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
}


class CudaError(Exception):
    """A CUDA driver call failed."""

    def __init__(self, cuda_name: str, number: int, text: str, call: str) -> None:
        super().__init__(f"{cuda_name}: {text}")
        self.cuda_name = cuda_name
        self.number = number
        self.text = text
        self.call = call


class NotSupported(Exception):
    """The emulated device cannot run this: unresolved, never a guess."""


class CompileError(Exception):
    """NVRTC refused the source; `log` is its whole output."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


def cuda_error(number: int, call: str) -> CudaError:
    """The error `number` as returned by the driver call `call`."""
    name, text = CODES[number]
    return CudaError(name, number, text, call)
