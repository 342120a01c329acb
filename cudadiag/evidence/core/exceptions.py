"""The exceptions a GPU core file can hold: number in the file, name, fault kind.

Source: `CUDBGException_t` of cudadebugger.h (CUDA 13.3, NVIDIA/cuda-gdb on GitHub) and the cuda-gdb manual. The numbers
17 and 18 are swapped against cuda-gdb's own `CUDA_EXCEPTION_17` and `_18`, so everything here goes by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from cudadiag.model import FaultKind


@dataclass(frozen=True)
class ExceptionKind:
    """One exception. `name` is what cuda-gdb prints for it."""

    number: int
    name: str
    kind: FaultKind


EXCEPTIONS = {
    row.number: row
    for row in (
        ExceptionKind(1, "Lane Illegal Address", FaultKind.ILLEGAL_ADDRESS),
        ExceptionKind(2, "Lane User Stack Overflow", FaultKind.HARDWARE_STACK),
        ExceptionKind(3, "Device Hardware Stack Overflow", FaultKind.HARDWARE_STACK),
        ExceptionKind(4, "Warp Illegal Instruction", FaultKind.ILLEGAL_INSTRUCTION),
        ExceptionKind(5, "Warp Out-of-range Address", FaultKind.OUT_OF_BOUNDS),
        ExceptionKind(6, "Warp Misaligned Address", FaultKind.MISALIGNED_ADDRESS),
        ExceptionKind(7, "Warp Invalid Address Space", FaultKind.INVALID_ADDRESS_SPACE),
        ExceptionKind(8, "Warp Invalid PC", FaultKind.INVALID_PC),
        ExceptionKind(9, "Warp Hardware Stack Overflow", FaultKind.HARDWARE_STACK),
        ExceptionKind(10, "Device Illegal Address", FaultKind.ILLEGAL_ADDRESS),
        ExceptionKind(11, "Lane Misaligned Address", FaultKind.MISALIGNED_ADDRESS),
        ExceptionKind(12, "Warp Assert", FaultKind.DEVICE_ASSERT),
        ExceptionKind(13, "Lane Syscall Error", FaultKind.LAUNCH_FAILURE),
        ExceptionKind(14, "Warp Illegal Address", FaultKind.ILLEGAL_ADDRESS),
        ExceptionKind(15, "Invalid Managed Memory Access", FaultKind.OTHER_CUDA),
        ExceptionKind(16, "Lane Invalid Atomic", FaultKind.OTHER_CUDA),
        ExceptionKind(17, "Cluster Out-of-range Address", FaultKind.OUT_OF_BOUNDS),
        ExceptionKind(18, "Cluster Block Not Present", FaultKind.RACE),
        ExceptionKind(19, "Warp Stack Canary", FaultKind.HARDWARE_STACK),
        ExceptionKind(20, "Warp Tensor Memory Access Check", FaultKind.OUT_OF_BOUNDS),
        ExceptionKind(21, "Warp Tensor Memory Leak", FaultKind.LAUNCH_FAILURE),
        ExceptionKind(22, "Warp Call Requires Newer Driver", FaultKind.OTHER_CUDA),
        ExceptionKind(23, "Warp Misaligned PC", FaultKind.MISALIGNED_ADDRESS),
        ExceptionKind(24, "Warp PC Overflow", FaultKind.INVALID_PC),
        ExceptionKind(25, "Warp Misaligned Register", FaultKind.ILLEGAL_INSTRUCTION),
        ExceptionKind(26, "Warp Illegal Instruction Encoding", FaultKind.ILLEGAL_INSTRUCTION),
        ExceptionKind(27, "Warp Illegal Instruction Parameter", FaultKind.ILLEGAL_INSTRUCTION),
        ExceptionKind(28, "Warp Out-of-range Register", FaultKind.ILLEGAL_INSTRUCTION),
        ExceptionKind(29, "Warp Invalid Constant Address", FaultKind.OUT_OF_BOUNDS),
        ExceptionKind(30, "Warp MMU Fault", FaultKind.ILLEGAL_ADDRESS),
        ExceptionKind(31, "Warp Barrier Arrival Mismatch", FaultKind.BARRIER),
        ExceptionKind(32, "Cluster Poison", FaultKind.ECC),
        ExceptionKind(33, "Warp API Stack Error", FaultKind.HARDWARE_STACK),
        ExceptionKind(34, "Warp Block Not Present", FaultKind.OTHER_CUDA),
        ExceptionKind(35, "Warp User Stack Overflow", FaultKind.HARDWARE_STACK),
        ExceptionKind(36, "TMA Syscall Error", FaultKind.OTHER_CUDA),
    )
}

_BY_WORDS = {row.name.lower().replace("-", " "): row for row in EXCEPTIONS.values()}

TRAP = ExceptionKind(0, "Trace/breakpoint trap", FaultKind.LAUNCH_FAILURE)
"""A warp that stopped at `__trap()`: the file has no exception for it, only the mark that the warp is broken."""


def exception_kind(number: int, words: str | None = None) -> ExceptionKind:
    """The exception of a number; one the table does not know keeps the words the file has for it, or its number."""
    known = EXCEPTIONS.get(number)
    return known or ExceptionKind(number, words or f"Exception {number}", FaultKind.OTHER_CUDA)


def exception_named(name: str) -> ExceptionKind | None:
    """The exception a name stands for: `CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS` or "Warp Illegal Address"."""
    words = name.removeprefix("CUDBG_EXCEPTION_").replace("_", " ").replace("-", " ").lower().strip()
    return _BY_WORDS.get(words)
