"""What a GPU core file says, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from cudadiag.evidence.sanitizer.records import Frame
from cudadiag.model import FaultKind

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class CoreException:
    """One exception, the threads of a warp that share it folded. Keyed by name: numbers 17 and 18 are swapped between
    the file and what cuda-gdb prints.

    `pc` is the address of the faulting instruction where the hardware knew it (`pc_is_exact`), else where the thread
    had got to; `offset` is the same from the start of the function. `file` and `line` come from the line table of the
    code.
    """

    name: str
    kind: FaultKind
    number: int | None = None  # CUDBG_EXCEPTION_*, as in the file; 0 a trap; None a running thread
    kernel: str | None = None
    function: str | None = None  # the function of the pc, where it is not the kernel itself
    file: str | None = None
    line: int | None = None
    frames: tuple[Frame, ...] = ()  # callers on the device, innermost first
    pc: int | None = None
    pc_is_exact: bool = False
    offset: int | None = None
    block: Triple | None = None
    thread: Triple | None = None
    lanes: int = 1
    device: int = 0
    sm: int | None = None
    warp: int | None = None
    lane: int | None = None
    instruction: str | None = None
    warps: int = 1  # of running ones: how many stood at this pc of this kernel


@dataclass(frozen=True)
class CoreKernel:
    """One grid that was on the device."""

    name: str | None
    grid: Triple | None
    block: Triple | None
    grid_id: int | None = None
    device: int = 0


@dataclass(frozen=True)
class CoreReading:
    """All a core file says: exceptions (none where a running kernel was dumped by request), kernels, devices."""

    exceptions: tuple[CoreException, ...] = ()
    kernels: tuple[CoreKernel, ...] = ()
    running: tuple[CoreException, ...] = ()  # where warps without an exception stood, one of each pc, at most 32
    devices: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    opinion: str | None = None  # cuda-gdb's, in words; None where it was not asked
