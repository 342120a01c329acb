"""A sign: what one place of a log says, before anybody decides what it means for the whole."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cudadiag.model import Caused, FaultKind, Noticed


class Role(StrEnum):
    """What a sign can be in the story. The order of strength is in `choose`."""

    DEVICE = "device"  # a witness on the device: assert, sanitizer record, debugger, core dump
    HARDWARE = "hardware"  # the driver or the hardware itself reports damage
    CUDA = "cuda"  # a call returned a CUDA error
    LIBRARY = "library"  # a status of cuBLAS, cuDNN, NCCL, ...
    KERNEL_LOG = "kernel-log"  # an Xid that an application fault raises
    RESOURCE = "resource"
    HANG = "hang"
    WRONG = "wrong"
    ENVIRONMENT = "environment"
    NOT_A_CRASH = "not-a-crash"
    HOST = "host"  # an exception, a signal or an exit status of the host program
    CASCADE = "cascade"  # what follows from a process that is gone
    ECHO = "echo"  # clean-up after a dead context, and the like
    CONTEXT = "context"  # no complaint: a first sign, a setting, a restart


@dataclass(frozen=True)
class Moment:
    """A time stamp of a log line: seconds on the clock named by `clock`; only stamps of one clock can be compared."""

    clock: str
    seconds: float


@dataclass(frozen=True)
class Sign:
    """One thing a log says. `source` numbers the log file, `log_line` counts from 1, `order` is the place in all input.

    `cause` is a short word for what is no fault of a kind (`port-in-use`, `connection-refused`). `settled`: the program
    itself says that it coped. `weak`: the sign counts only where nothing better is there.
    """

    role: Role
    log_line: int
    text: str
    kind: FaultKind | None = None
    name: str | None = None
    number: int | None = None
    noticed: Noticed | None = None
    caused: Caused | None = None
    cause: str | None = None
    words: str | None = None
    reader: str = ""
    process: str | None = None
    moment: Moment | None = None
    source: int = 0
    order: int = 0
    count: int = 1
    settled: bool = False
    weak: bool = False
    cleanup: bool = False
