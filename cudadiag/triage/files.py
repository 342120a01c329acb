"""Files to readings: logs as streams, sanitizer XML and GPU core files whole, an exit status from a file of its own."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cudadiag.errors import Undecided, UsageError
from cudadiag.evidence.core import CoreException, read_core
from cudadiag.evidence.rules.build import caused_by_core
from cudadiag.evidence.sanitizer import sanitizer_report
from cudadiag.model import FaultKind
from cudadiag.triage.blocks import blocks
from cudadiag.triage.clean import Clean
from cudadiag.triage.inputs import STDIN, Incident
from cudadiag.triage.readers.host import exit_sign
from cudadiag.triage.readers.sanitizer import report_signs
from cudadiag.triage.scan import LogReading, scan
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot

XML_MARK = b"<ComputeSanitizerOutput"
ELF_MARK = b"\x7fELF"
MAX_WHOLE = 1 << 30
TIMED_OUT = 124
TOOL_FOUND = frozenset({86})
TOOL_SIGNALS = frozenset({6, 9, 11})
_STATUS = re.compile(rb"^\s*(-?\d{1,4})(?:\s+[\d.]+)?\s*$")


def read_incident(incident: Incident) -> list[LogReading]:
    """A reading of every file of an incident. Raises UsageError for one that cannot be read."""
    under_tool = any(path.name.startswith("report.") for path in incident.paths)
    return [_read(path, source, under_tool) for source, path in enumerate(incident.paths)]


def _read(path: Path, source: int, under_tool: bool) -> LogReading:
    if path == STDIN:
        return scan(blocks(sys.stdin.buffer), "stdin", source)
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
            file.seek(0) if file.seekable() else None
            return _by_content(path, file, head, source, under_tool)
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from problem


def _by_content(path: Path, file: BinaryIO, head: bytes, source: int, under_tool: bool) -> LogReading:
    if head.startswith(ELF_MARK):
        return _whole(path, source, _core_signs(file.read(MAX_WHOLE)))
    if XML_MARK in head:
        return _whole(path, source, list(report_signs(sanitizer_report(file.read(MAX_WHOLE), None))))
    status = _STATUS.match(head)
    if status and path.name in ("rc", "exit", "exit_code", "returncode", "status"):
        return _whole(path, source, list(_status_signs(int(status[1]), under_tool)))
    stream = file if file.seekable() else _Prefixed(head, file)
    return scan(blocks(stream), str(path), source)  # type: ignore[arg-type]


class _Prefixed:
    """A pipe whose first bytes were read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def read(self, size: int) -> bytes:
        if self._head:
            taken, self._head = self._head[:size], self._head[size:]
            return taken
        return self._rest.read(size)


def _whole(path: Path, source: int, signs: list[Sign]) -> LogReading:
    placed = [dataclasses.replace(s, source=source, order=s.log_line, reader=s.reader or "sanitizer") for s in signs]
    return LogReading(str(path), placed, size=path.stat().st_size)


def _status_signs(code: int, under_tool: bool) -> Iterator[Sign]:
    """An exit status kept in a file of its own; 124 is what `timeout` gives when it had to end the program. A sanitizer
    ends with the bare number of the signal its program died of, or with its own status for findings."""
    if under_tool and code in TOOL_FOUND:
        return
    code = -code if under_tool and code in TOOL_SIGNALS else code
    text = f"exit status {code}"
    if code == TIMED_OUT:
        yield Sign(Role.HANG, 1, text, cause="time-limit", words="a time limit ended it", reader="exit")
        return
    sign = exit_sign(Spot(1, Clean(text), lambda _: ()), code)
    if sign is not None:
        yield sign


def _core_signs(data: bytes) -> list[Sign]:
    """The exceptions of a GPU core file; none for another ELF file."""
    try:
        reading = read_core(data)
    except Undecided as problem:
        return [Sign(Role.CONTEXT, 1, problem.message, cause="core-unreadable", words=problem.message, reader="core")]
    return [_core_sign(found) for found in reading.exceptions[:20]]


def _core_sign(found: CoreException) -> Sign:
    caused = dataclasses.replace(caused_by_core(found), log_line=1)
    kind = found.kind or FaultKind.OTHER_CUDA
    name, number = ("cudaErrorAssert", 710) if kind is FaultKind.DEVICE_ASSERT else (None, None)
    return Sign(
        Role.DEVICE, 1, found.name, kind=kind, name=name, number=number, caused=caused, reader="core",
        words=f"the GPU core file says: {found.name}",
    )  # fmt: skip
