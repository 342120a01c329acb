"""Files to readings: logs as streams, sanitizer XML and GPU core files whole, an exit status from a file of its own."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cudadiag.errors import Undecided, UsageError
from cudadiag.evidence.caused import caused_by_core
from cudadiag.evidence.core import CoreException, read_core
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

SANITIZER = "sanitizer"
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
    readings = [_read(path, source, under_tool) for source, path in enumerate(incident.paths)]
    return _joined_reports(incident, readings)


def _joined_reports(incident: Incident, readings: list[LogReading]) -> list[LogReading]:
    """The XML and the text of one sanitizer run as one report: the text knows the allocation and what is a warning."""
    xml = [at for at, reading in enumerate(readings) if reading.is_xml]
    text = [
        at for at, reading in enumerate(readings) if at not in xml and any(s.reader == SANITIZER for s in reading.signs)
    ]
    if len(xml) != 1 or len(text) != 1:
        return readings
    told = incident.paths[text[0]].read_bytes()[:MAX_WHOLE]
    report = sanitizer_report(incident.paths[xml[0]].read_bytes()[:MAX_WHOLE], told)
    joined = [dataclasses.replace(s, source=text[0], order=s.log_line, reader=SANITIZER) for s in report_signs(report)]
    readings[xml[0]] = dataclasses.replace(readings[xml[0]], signs=[])
    others = [sign for sign in readings[text[0]].signs if sign.reader != SANITIZER]
    readings[text[0]] = dataclasses.replace(readings[text[0]], signs=others + joined)
    return readings


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
        signs = list(report_signs(sanitizer_report(file.read(MAX_WHOLE), None)))
        return dataclasses.replace(_whole(path, source, signs), is_xml=True)
    status = _STATUS.match(head)
    if status and path.name in ("rc", "exit", "exit_code", "returncode", "status"):
        return _whole(path, source, list(_status_signs(int(status[1]), under_tool)))
    stream = file if file.seekable() else _Prefixed(head, file)
    return scan(blocks(stream), str(path), source)


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
    placed = [dataclasses.replace(s, source=source, order=s.log_line, reader=s.reader or SANITIZER) for s in signs]
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
        yield dataclasses.replace(sign, reader="exit")


def _core_signs(data: bytes) -> list[Sign]:
    """The exceptions of a GPU core file; none for another ELF file."""
    try:
        reading = read_core(data)
    except Undecided as problem:
        return [Sign(Role.CONTEXT, 1, problem.message, cause="core-unreadable", words=problem.message, reader="core")]
    if not reading.exceptions and reading.running:
        return [_running_sign(reading.running[0])]
    return [_core_sign(found) for found in reading.exceptions[:20]]


def _running_sign(found: CoreException) -> Sign:
    """A core file of a kernel that was still running: where it stood is where it hangs."""
    return Sign(
        Role.HANG, 1, f"running in {found.kernel or 'a kernel'}", kind=FaultKind.LAUNCH_TIMEOUT, cause="running-kernel",
        caused=dataclasses.replace(caused_by_core(found), log_line=1), reader="core",
        words="the GPU core file was asked for while a kernel ran; it names the kernel and the line",
    )  # fmt: skip


def _core_sign(found: CoreException) -> Sign:
    caused = dataclasses.replace(caused_by_core(found), log_line=1)
    kind = found.kind or FaultKind.OTHER_CUDA
    name, number = ("cudaErrorAssert", 710) if kind is FaultKind.DEVICE_ASSERT else (None, None)
    return Sign(
        Role.DEVICE, 1, found.name, kind=kind, name=name, number=number, caused=caused, reader="core",
        words=f"the GPU core file says: {found.name}",
    )  # fmt: skip
