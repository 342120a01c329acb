"""The words of cudadiag as types: shape, axis, sweep, outcome, fault, verdict, claim. Plain data, imported by all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Scalar = int | float | str | bool
Shape = Mapping[str, Scalar]
"""One value for every parameter on an axis, in axis order. Fixed parameters (`set:`) are not part of it."""


class Outcome(StrEnum):
    """What the facts of one probe mean. All but `unresolved` are evidence about the shape."""

    PASS = "pass"
    FAULT = "fault"
    HANG = "hang"
    WRONG = "wrong"
    SKIPPED = "skipped"
    UNRESOLVED = "unresolved"

    @property
    def is_evidence(self) -> bool:
        return self is not Outcome.UNRESOLVED

    @property
    def is_failure(self) -> bool:
        return self in (Outcome.FAULT, Outcome.HANG, Outcome.WRONG, Outcome.SKIPPED)


class FaultKind(StrEnum):
    """Closed list of fault kinds."""

    ILLEGAL_ADDRESS = "illegal-address"
    MISALIGNED_ADDRESS = "misaligned-address"
    ILLEGAL_INSTRUCTION = "illegal-instruction"
    INVALID_PC = "invalid-pc"
    INVALID_ADDRESS_SPACE = "invalid-address-space"
    HARDWARE_STACK = "hardware-stack"
    DEVICE_ASSERT = "device-assert"
    LAUNCH_FAILURE = "launch-failure"
    LAUNCH_TIMEOUT = "launch-timeout"
    LAUNCH_LIMIT = "launch-limit"
    NO_KERNEL_IMAGE = "no-kernel-image"
    OUT_OF_MEMORY = "out-of-memory"
    OUT_OF_BOUNDS = "out-of-bounds"
    USE_AFTER_FREE = "use-after-free"
    UNINITIALISED_READ = "uninitialised-read"
    RACE = "race"
    BARRIER = "barrier"
    LEAK = "leak"
    ECC = "ecc"
    NVLINK = "nvlink"
    DEVICE_LOST = "device-lost"
    HOST_SIGNAL = "host-signal"
    HOST_EXIT = "host-exit"
    HOST_EXCEPTION = "host-exception"
    DIED_AFTER_FINISH = "died-after-finish"
    POISONED_CONTEXT = "poisoned-context"
    OTHER_CUDA = "other-cuda"


class Claim(StrEnum):
    """How sure an answer about the first failing shape is."""

    PROVEN = "proven"
    IMPLIED = "implied"
    ASSUMED = "assumed"
    BOUNDARY = "boundary"
    NONE_FOUND = "none-found"


@dataclass(frozen=True)
class Axis:
    """One parameter with its ordered values (no duplicates)."""

    name: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Sweep:
    """The declared, ordered set of legal shapes.

    `shapes[i]` holds the values of `axes` in order; sweep order is the declared order, the last axis fastest, with the
    shapes that `where:` forbids left out. `derived` has one column per named quantity (the case's `derive`, sizes
    of buffers such as `scores.bytes`, `grid.x`, `block`, `shared`): `derived[name][i]` belongs to `shapes[i]`.
    `constants` are the numbers the case has names for and that are the same at every shape (`set:`, macros,
    `derive:` without an axis).
    """

    axes: tuple[Axis, ...]
    shapes: tuple[tuple[Scalar, ...], ...]
    derived: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    constants: Mapping[str, int | float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.shapes)

    def shape(self, index: int) -> dict[str, Scalar]:
        return {axis.name: value for axis, value in zip(self.axes, self.shapes[index], strict=True)}


@dataclass(frozen=True)
class Noticed:
    """Where a fault was noticed: the call that returned the error. A witness, not the culprit."""

    call: str | None = None
    file: str | None = None
    line: int | None = None
    log_line: int | None = None
    text: str | None = None


@dataclass(frozen=True)
class Allocation:
    """The allocation nearest to a bad address. `distance` is in bytes from its nearer edge, 0 when inside."""

    address: int
    size: int
    distance: int
    side: str  # "before", "after" or "inside"
    name: str | None = None
    state: str = "live"  # "live" or "freed"


@dataclass(frozen=True)
class Caused:
    """Where a fault was caused, on the device."""

    kernel: str | None = None
    file: str | None = None
    line: int | None = None
    pc: int | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    access: str | None = None  # "read", "write", "atomic", ...
    space: str | None = None  # "global", "shared", "local", "constant", ...
    size: int | None = None  # bytes of the access
    address: int | None = None
    allocation: Allocation | None = None
    instruction: str | None = None
    log_line: int | None = None


@dataclass(frozen=True)
class Fault:
    """A fault: kind, CUDA name and number, where noticed, where caused, and which observer found it."""

    kind: FaultKind
    name: str | None = None
    number: int | None = None
    noticed: Noticed | None = None
    caused: Caused | None = None
    found_by: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What the facts of one probe mean. `proof` says what a pass rests on; `reason` is never empty otherwise."""

    outcome: Outcome
    reason: str
    fault: Fault | None = None
    proof: str | None = None
