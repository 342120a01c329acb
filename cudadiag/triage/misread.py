"""What a reader of the log might wrongly conclude, and why it is wrong. Each row looks for its own trap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cudadiag.evidence.codes import is_sticky
from cudadiag.model import Fault, FaultKind
from cudadiag.triage.fold import Fold
from cudadiag.triage.sign import Role, Sign

MAX_NOTES = 6
_XLA_KERNEL = re.compile(r"Failed to launch CUDA kernel: (?P<kernel>\S+)")


@dataclass(frozen=True)
class _Scene:
    primary: Sign
    fault: Fault | None
    signs: Sequence[Sign]
    folds: Sequence[Fold]

    def has(self, cause: str) -> bool:
        return any(sign.cause == cause for sign in self.signs)


def misreadings(primary: Sign, fault: Fault | None, signs: Sequence[Sign], folds: Sequence[Fold]) -> Iterator[str]:
    """The notes that fit, the most important first."""
    scene = _Scene(primary, fault, signs, folds)
    notes = [note for check in _CHECKS if (note := check(scene)) is not None]
    yield from notes[:MAX_NOTES]


def _witness_call(scene: _Scene) -> str | None:
    fault = scene.fault
    if fault is None or not is_sticky(fault.number) or scene.primary.role is not Role.CUDA:
        return None
    match = _XLA_KERNEL.search(scene.primary.text)
    if match:
        return f"`{match['kernel']}` is the kernel whose launch met the dead context, not the one that broke it."
    call = fault.noticed.call if fault.noticed and fault.noticed.call else "the call named in the log"
    return f"{call} only noticed the fault: a kernel that ran before it, perhaps in another library, caused it."


def _raised_by_call(scene: _Scene) -> str | None:
    if scene.primary.role is Role.CUDA and scene.primary.number in (1, 2, 9):
        return (
            "The call itself raises this code, so it is guilty, but only if every launch before it was checked: "
            "an unchecked launch leaves its error for the next check."
        )
    return None


def _first_line(scene: _Scene) -> str | None:
    if scene.primary.log_line <= 3 and scene.primary.role is Role.CUDA and scene.primary.noticed:
        return (
            "The error stands at the top only because stderr is not buffered and stdout is: the lines below it were "
            "printed before it."
        )
    return None


def _torchrun(scene: _Scene) -> str | None:
    if scene.has("torchrun-summary"):
        return 'torchrun\'s "Root Cause (first observed failure)" is the first process it saw die, not the cause.'
    return None


def _nccl(scene: _Scene) -> str | None:
    if scene.primary.role is Role.CUDA and (scene.has("peer-lost") or "NCCL" in scene.primary.text):
        return "The NCCL watchdog reports the context's fault; that says nothing against NCCL or the network."
    return None


def _memory_words(scene: _Scene) -> str | None:
    if not is_sticky(scene.primary.number):
        return None
    if any("wrapper" in fold.what for fold in scene.folds):
        return "Words about memory that are printed over a sticky error are the wrapper's guess, not a lack of memory."
    return None


def _under_sanitizer(scene: _Scene) -> str | None:
    if scene.fault and scene.fault.number == 719 and scene.primary.reader == "sanitizer":
        return "Under memcheck every device fault reads 719 to the program; the record says what it was."
    return None


def _inside(scene: _Scene) -> str | None:
    caused = scene.fault.caused if scene.fault else None
    if caused and caused.allocation and caused.allocation.side == "inside":
        return (
            "The address lies inside the nearest allocation: the access may straddle its end, or memory that is mapped "
            "in segments gave a false report."
        )
    return None


def _illegal_instruction(scene: _Scene) -> str | None:
    if scene.fault and scene.fault.kind is FaultKind.ILLEGAL_INSTRUCTION and scene.primary.role is Role.CUDA:
        return (
            "An illegal instruction need not be one the GPU lacks: a jump into data or overwritten code gives "
            "it as well, "
            "and it may depend on the shape."
        )
    return None


def _first_abnormal(scene: _Scene) -> str | None:
    if any(sign.cause == "zero-accepted" for sign in scene.signs):
        return "Zero accepted drafts came first: the results were wrong already when the server still seemed to work."
    return None


def _library(scene: _Scene) -> str | None:
    if scene.primary.role is Role.LIBRARY:
        return (
            "The library's status says that something failed, not what: the kernel before it or lack of memory are as "
            "likely."
        )
    return None


def _xid(scene: _Scene) -> str | None:
    if scene.primary.role is Role.KERNEL_LOG and scene.primary.number in (13, 31):
        return "Xid 13 and 31 are a program's fault first, but damaged memory raises them too."
    return None


def _killed(scene: _Scene) -> str | None:
    if scene.fault and scene.fault.name == "SIGKILL":
        return (
            "SIGKILL leaves no message in the program's own log: the system's memory killer says so in the kernel log."
        )
    return None


_CHECKS: tuple[Callable[[_Scene], str | None], ...] = (
    _witness_call,
    _raised_by_call,
    _first_line,
    _memory_words,
    _under_sanitizer,
    _inside,
    _illegal_instruction,
    _library,
    _xid,
    _killed,
    _first_abnormal,
    _torchrun,
    _nccl,
)
