"""What different witnesses say of one fault: kinds that may stand for the same thing, grouped into families.

Measured on one planted fault each (an H200, driver 580): an overrun is `out-of-bounds` to memcheck, `illegal-address`
(700) to the program, "Warp Illegal Address" to a core dump, 717 where the address fell into another window, and 719 to
the program under memcheck; a stack overflow is 700, "Warp Out-of-range Address" and "Stack overflow"; a double free is
1 to the program.
"""

from __future__ import annotations

from cudadiag.model import FaultKind

MEMORY = "memory-access"
ASSERT = "device-assert"

_FAMILIES = {
    FaultKind.ILLEGAL_ADDRESS: MEMORY,
    FaultKind.OUT_OF_BOUNDS: MEMORY,
    FaultKind.USE_AFTER_FREE: MEMORY,
    FaultKind.INVALID_ADDRESS_SPACE: MEMORY,
    FaultKind.HARDWARE_STACK: MEMORY,
    FaultKind.INVALID_PC: "program-counter",
    FaultKind.ILLEGAL_INSTRUCTION: "program-counter",
}
"""Kinds that are not here are a family of their own."""

VAGUE = frozenset({FaultKind.LAUNCH_FAILURE, FaultKind.OTHER_CUDA})
"""Kinds that only say that something failed: any device fault may hide behind them (719 under memcheck)."""

DEVICE = frozenset(
    {
        FaultKind.ILLEGAL_ADDRESS, FaultKind.MISALIGNED_ADDRESS, FaultKind.ILLEGAL_INSTRUCTION, FaultKind.INVALID_PC,
        FaultKind.INVALID_ADDRESS_SPACE, FaultKind.HARDWARE_STACK, FaultKind.DEVICE_ASSERT, FaultKind.LAUNCH_FAILURE,
        FaultKind.OUT_OF_BOUNDS, FaultKind.USE_AFTER_FREE, FaultKind.UNINITIALISED_READ, FaultKind.RACE,
        FaultKind.BARRIER,
    }
)  # fmt: skip
"""Kinds that a kernel causes."""


def family(kind: FaultKind) -> str:
    """The family's name."""
    return _FAMILIES.get(kind, kind.value)


def may_be_one(a: FaultKind, b: FaultKind) -> bool:
    """True where two witnesses of one fault may have told these two kinds."""
    if family(a) == family(b):
        return True
    vague = (a in VAGUE and b in DEVICE) or (b in VAGUE and a in DEVICE)
    jumped = {family(a), family(b)} == {MEMORY, "program-counter"}  # a bad function table is both
    return vague or jumped
