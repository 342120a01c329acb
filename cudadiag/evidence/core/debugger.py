"""A second opinion on a core file: what cuda-gdb printed of it, compared with what was read here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudadiag.evidence.core.reading import CoreException, CoreReading, Triple

_EXCEPTION = re.compile(
    r"^(?:CUDA Exception: |Program terminated with signal \w+, |(?=Assertion failed))(.*?)\.?\s*$", re.MULTILINE
)
_PC = re.compile(r"The exception was triggered at PC 0x([0-9a-f]{1,16})")
_FOCUS = re.compile(r"Current focus .*?block \((\d+),(\d+),(\d+)\), thread \((\d+),(\d+),(\d+)\)")
_SAME = {"Cluster target block not present": "Cluster Block Not Present", "Assertion failed": "Warp Assert"}
"""cuda-gdb's words for the exceptions of the file: for its number 18 (17 and 18 are swapped there), and an assert."""


@dataclass(frozen=True)
class DebuggerAnswer:
    """What cuda-gdb says: None for what it does not."""

    exception: str | None = None
    pc: int | None = None
    block: Triple | None = None
    thread: Triple | None = None


def debugger_answer(text: str) -> DebuggerAnswer | None:
    """cuda-gdb's words on a core file; None where it says neither an exception nor a place (it crashed, or refused)."""
    exception, pc, focus = _EXCEPTION.search(text), _PC.search(text), _FOCUS.search(text)
    if exception is None and focus is None:
        return None
    numbers = [int(number) for number in focus.groups()] if focus else []
    return DebuggerAnswer(
        exception=_SAME.get(exception[1], exception[1]) if exception else None,
        pc=int(pc[1], 16) if pc else None,
        block=(numbers[0], numbers[1], numbers[2]) if focus else None,
        thread=(numbers[3], numbers[4], numbers[5]) if focus else None,
    )


def opinion(core: CoreReading, text: str) -> str:
    """`cuda-gdb agrees`, or what it says otherwise, or that it says nothing. It agrees where all that it says is said
    of one exception (or one running thread) that was read here."""
    told = debugger_answer(text)
    if told is None:
        return "cuda-gdb says nothing of the core file"
    if told.exception is None and core.exceptions:
        return "cuda-gdb names no exception"
    found = core.exceptions if told.exception is not None else core.running
    if any(_is_same(told, each) for each in found):
        return "cuda-gdb agrees"
    place = f"block {told.block}, thread {told.thread}" if told.thread is not None else ""
    words = [told.exception, f"pc {told.pc:#x}" if told.pc is not None else "", place]
    return f"cuda-gdb says otherwise: {', '.join(filter(None, words))}"


def _is_same(told: DebuggerAnswer, found: CoreException) -> bool:
    return (
        told.exception in (None, found.name)
        and told.pc in (None, found.pc)
        and (told.thread is None or (told.block, told.thread) == (found.block, found.thread))
    )
