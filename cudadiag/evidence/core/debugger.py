"""A second opinion on a core file: what cuda-gdb printed of it, compared with what was read here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudadiag.evidence.core.reading import CoreException, CoreReading, Triple

_EXCEPTION = re.compile(r"^CUDA Exception: (.*?)\s*$", re.MULTILINE)
_PC = re.compile(r"The exception was triggered at PC 0x([0-9a-f]{1,16})")
_FOCUS = re.compile(r"Current focus .*?block \((\d+),(\d+),(\d+)\), thread \((\d+),(\d+),(\d+)\)")
_SAME = {"Cluster target block not present": "Cluster Block Not Present"}
"""cuda-gdb's word for what the file's number 18 names: 17 and 18 are swapped there."""


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
    """`cuda-gdb agrees`, or what it says otherwise, or that it says nothing."""
    told = debugger_answer(text)
    if told is None:
        return "cuda-gdb says nothing of the core file"
    other = _other_words(told, (*core.exceptions, *core.running))
    return f"cuda-gdb says otherwise: {', '.join(other)}" if other else "cuda-gdb agrees"


def _other_words(told: DebuggerAnswer, found: tuple[CoreException, ...]) -> list[str]:
    """What it says that no exception or thread read here has."""
    words = []
    if told.exception is not None and told.exception not in {each.name for each in found}:
        words.append(told.exception)
    if told.pc is not None and told.pc not in {each.pc for each in found}:
        words.append(f"pc {told.pc:#x}")
    if told.thread is not None and (told.block, told.thread) not in {(each.block, each.thread) for each in found}:
        words.append(f"block {told.block}, thread {told.thread}")
    return words
