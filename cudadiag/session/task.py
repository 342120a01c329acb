"""What is to be run next, and plans: who says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from cudadiag.model import Scalar
from cudadiag.session.judged import Judged


class Build(StrEnum):
    """How machine code is made for a probe: as always, without optimisation (kernel targets), or by the driver from
    PTX (kernel targets, and programs that hold PTX)."""

    USUAL = ""
    UNOPTIMISED = "unoptimised"
    BY_DRIVER = "by-driver"


@dataclass(frozen=True)
class Task:
    """One process to start: one shape, or a `sequence` of shapes (indices) of which `shape` is the last.

    `observer` None: the run's own. `device` None: that of the free slot.
    """

    shape: Mapping[str, Scalar]
    index: int | None
    purpose: str
    tag: str = ""
    sequence: tuple[int, ...] = ()
    observer: str | None = None
    build: Build = Build.USUAL
    device: str | None = None


@dataclass(frozen=True)
class Wanted:
    """The tasks wanted next, in order; none when the plan is done."""

    tasks: tuple[Task, ...] = ()
    doing: str = ""
    best: tuple[str, ...] = ()


class Plan(Protocol):
    """Says what to run next from what was seen. Asked again when all it asked for has ended."""

    def next(self, history: Sequence[Judged]) -> Wanted: ...
