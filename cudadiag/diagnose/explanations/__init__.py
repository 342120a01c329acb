"""The table of explanations. The order is the order of likelihood between two that are supported alike: what is more
specific stands first. To add one: a module here with a class, a line below, a page in docs."""

from __future__ import annotations

from cudadiag.diagnose.explanations.addresses import Misalignment, OutOfBounds, StackOverflow
from cudadiag.diagnose.explanations.buffers import BufferMismatch
from cudadiag.diagnose.explanations.chance import HardwareOrChance
from cudadiag.diagnose.explanations.code import Miscompile
from cudadiag.diagnose.explanations.host import HostProgram
from cudadiag.diagnose.explanations.jumps import WildJump
from cudadiag.diagnose.explanations.launch import LaunchLimit
from cudadiag.diagnose.explanations.memory import MemoryExhausted
from cudadiag.diagnose.explanations.overflow import IntegerOverflow
from cudadiag.diagnose.explanations.reports import CarriedOver, NoticedLate
from cudadiag.diagnose.explanations.results import EndlessWait, OwnCheck, WrongResult
from cudadiag.diagnose.explanations.threads import BarrierMisuse, Race, Uninitialised
from cudadiag.diagnose.interface import Explanation

EXPLANATIONS: tuple[Explanation, ...] = (
    MemoryExhausted(),
    LaunchLimit(),
    OwnCheck(),
    IntegerOverflow(),
    StackOverflow(),
    OutOfBounds(),
    Misalignment(),
    Miscompile(),
    WildJump(),
    BarrierMisuse(),
    Race(),
    Uninitialised(),
    WrongResult(),
    HostProgram(),
    EndlessWait(),
    BufferMismatch(),
    CarriedOver(),
    HardwareOrChance(),
    NoticedLate(),
)
