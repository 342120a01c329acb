"""What the instruction at the pc says: a load or store, a jump to an address held in a register, or something else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cudadiag.diagnose.witness import Witness
from cudadiag.model import FaultKind

_PREDICATE = re.compile(r"^@!?U?P\w+\s+")
_JUMP = re.compile(
    r"(?:BRXU?|JMXU?|RET)\b"
    r"|(?:CALL|JMP)(?:\.\w+)*\s+U?R\d"
    r"|LDCU?(?:\.\w+)*\s+\w+,\s*c\[0x2\]\[U?R"
    r"|(?:call|brx)\b"
)
"""Machine code first. `c[0x2][R]` is the table of jump targets: measured on an H200, where a call through 7 stood at
its load and was 716, and one into data at the call or at this load. The last are PTX, of the emulated device."""
_ACCESS = re.compile(r"(?:LD|ST|ATOM|RED|UBLKCP|UTMA|LDGSTS)[A-Z]*\b|(?:ld|st|atom|red|cp)\.")


def sort_of_jump(instruction: str | None) -> bool:
    """Whether it goes to an address that it takes from a register or a table."""
    return instruction is not None and _JUMP.match(bare(instruction)) is not None


def sort_of_access(instruction: str | None) -> bool:
    """Whether it reads or writes memory for the program."""
    return instruction is not None and not sort_of_jump(instruction) and _ACCESS.match(bare(instruction)) is not None


def bare(instruction: str) -> str:
    """Without the predicate in front."""
    return _PREDICATE.sub("", instruction)


def names_an_access(witness: Witness) -> bool:
    """Whether a checker names the load or store behind a misaligned address, or the instruction at the pc is one."""
    misaligned = [r for r in witness.findings if r.kind is FaultKind.MISALIGNED_ADDRESS]
    told = witness.caused if witness.emulated else None
    return (
        any(record.access for record in misaligned) or bool(told and told.access) or sort_of_access(witness.instruction)
    )


def names_no_access(witness: Witness) -> bool:
    """Whether a checker that names every load and store recorded the fault without one."""
    looked = any(r.kind is FaultKind.MISALIGNED_ADDRESS for r in witness.findings)
    return (looked or witness.exact) and not names_an_access(witness)


def standing(witnesses: Iterable[Witness]) -> tuple[str | None, ...]:
    """The instructions at which the threads of a hang stood when their core file was written, one for each pc; None for
    one that is not known."""
    found: list[str | None] = []
    for witness in witnesses:
        running = witness.reading.core.running if witness.reading.core else ()
        known = {thread.pc: thread.instruction for thread in running if thread.instruction}
        found += dict.fromkeys(known.get(pc) for pc in dict.fromkeys(thread.pc for thread in running))
    return tuple(found)
