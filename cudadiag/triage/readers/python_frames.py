"""Where a Python program was when it printed an exception: the frame nearest above the exception's line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cudadiag.model import Noticed
from cudadiag.triage.clean import Clean
from cudadiag.triage.spot import Spot

LOOK_BACK = 60
_FRAME = re.compile(r'^\W{0,6}File \\?"(?P<file>[^"\\]+)\\?", line (?P<line>\d{1,9})(?:,? in (?P<function>.{1,200}))?$')
_IPYTHON = re.compile(
    r"^[^\w/]{0,4}(?P<file2>(?:/|\w)[^\s:]*\.py):(?P<line2>\d{1,9}):? in (?P<function2>[\w.<>]+)|"
    r"^\W{0,4}(?:File |Cell )?(?P<file>\S+?\.pyx?|In ?\[\d+\]):(?P<line>\d{1,9}),? in (?P<function>[\w.<>]+)"
)
_HEAD = re.compile(
    r"Traceback \(most recent call last\)|most recent call first|another exception occurred|direct cause"
)
_IGNORED = re.compile(r"Exception ignored in")
_EXCEPTION = re.compile(r"^[\w.]*(?:Error|Exception|OutOfResources|Interrupt|Exit)\b(?:: .*|: ?)?$")
_SKIP_CALLS = frozenset({"print", "str", "len", "int", "float", "list", "tuple", "isinstance", "getattr", "super"})
_CALL = re.compile(r"(?P<call>(?:super\(\)\.)?[A-Za-z_][\w.]*)\s*(?:\[[^\]]*\])?\(")


@dataclass(frozen=True)
class PythonPlace:
    """The innermost frame. `call`: the call on its source line, else the function's name."""

    file: str
    line: int
    call: str | None
    ignored: bool  # the exception was one Python only noted ("Exception ignored in")


def python_place(spot: Spot) -> PythonPlace | None:
    """The innermost frame of the traceback that this line ends; None where no traceback stands above it."""
    lines = spot.before(LOOK_BACK)
    for at, line in enumerate(lines):
        if _HEAD.search(line.text):
            return None
        found = _frame(line.text)
        if found:
            source = lines[at - 1].text.strip() if at else None
            file, number, function = found
            return PythonPlace(file, number, _call(source, function), _is_ignored(lines, spot))
        if at > 8 and _EXCEPTION.match(line.text):
            return None
    return None


def noticed_in(place: PythonPlace | None, spot: Spot, text: str | None) -> Noticed:
    """Noticed at this line of the log, and at a place of the program where one is known."""
    if place is None:
        return Noticed(None, None, None, spot.log_line, text)
    return Noticed(place.call, place.file, place.line, spot.log_line, text)


def _frame(text: str) -> tuple[str, int, str | None] | None:
    """File, line and function of a frame, as Python, IPython, pytest or rich writes it."""
    plain = _FRAME.match(text)
    if plain:
        return plain["file"], int(plain["line"]), (plain["function"] or "").strip() or None
    other = _IPYTHON.match(text)
    if other is None:
        return None
    return (
        other["file"] or other["file2"],
        int(other["line"] or other["line2"]),
        other["function"] or other["function2"],
    )


def _call(source: str | None, function: str | None) -> str | None:
    if source:
        for found in _CALL.finditer(source):
            name = found["call"].removeprefix("super().")
            if name not in _SKIP_CALLS and name not in ("raise", "return", "if", "with", "for", "assert"):
                return name if not source.startswith("raise") else function
    return function


def _is_ignored(lines: Sequence[Clean], spot: Spot) -> bool:
    """`Exception ignored in` stands above the traceback, or, from Cython, between two printings of it."""
    for line in lines:
        if _HEAD.search(line.text):
            break
    head = next((at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line.text), None)
    above = lines[head + 1].text if head is not None and head + 1 < len(lines) else ""
    below = next((line.text for line in spot.after(2)), "")
    return bool(_IGNORED.search(above) or _IGNORED.search(below))


def is_source_line(spot: Spot) -> bool:
    """Whether a line is source code that a traceback shows, not something that was said."""
    if not spot.text.startswith((" ", "\t")):
        return False
    nearest = spot.before(1)
    return bool(nearest and _FRAME.match(nearest[0].text))
