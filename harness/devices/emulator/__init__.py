"""The emulated device: NVRTC compiles the same CUDA C++ to PTX, which is translated to LLVM IR and run on this CPU
under a memory checker. `EmulatedDevice` is what a kernel target talks to (the `Device` of
harness/devices/interface.py).

Loaded by file path in the child, so imports are relative, and heavy ones (llvmlite, NVRTC) wait until they are needed.
"""

from __future__ import annotations

from .device import EmulatedDevice
from .errors import CompileError, CudaError, NotSupported

__all__ = ["CompileError", "CudaError", "EmulatedDevice", "NotSupported"]
