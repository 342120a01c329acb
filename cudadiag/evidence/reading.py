"""All that the pure readers find in the files one probe left, as one frozen, JSON-able, bounded value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cudadiag.errors import Undecided, UsageError
from cudadiag.evidence import jsonable
from cudadiag.evidence.core import CoreReading, read_core
from cudadiag.evidence.driver_log import DriverLogEntry, driver_log
from cudadiag.evidence.error_lines import ErrorLine, error_lines, first_error
from cudadiag.evidence.host_errors import HostError, host_error
from cudadiag.evidence.progress import CoreProgress, core_progress
from cudadiag.evidence.sanitizer import SanitizerReport, sanitizer_report

FILES = ("stdout", "stderr", "driver_log", "sanitizer_xml", "sanitizer_log", "core")


@dataclass(frozen=True)
class Reading:
    """What the files say. None means the file was not there (nothing was asked); an empty tuple that it said nothing.

    Sizes are bounded: 200 error lines a stream, 500 driver-log entries, 500 sanitizer records.
    `success_found` is None where no success pattern was given.
    """

    stderr: tuple[ErrorLine, ...] = ()
    stdout: tuple[ErrorLine, ...] = ()
    host_error: HostError | None = None
    driver_log: tuple[DriverLogEntry, ...] | None = None
    sanitizer: SanitizerReport | None = None
    core: CoreReading | None = None
    core_problem: str | None = None  # why a core file that is there could not be read
    progress: CoreProgress | None = None
    success_found: bool | None = None

    @property
    def error(self) -> ErrorLine | None:
        """The first CUDA error the program printed itself (no assert): on stderr, else on stdout."""
        return first_error(self.stderr) or first_error(self.stdout)

    @property
    def device_assert(self) -> ErrorLine | None:
        """The first device assert that fired."""
        return next((line for line in (*self.stderr, *self.stdout) if line.is_assert), None)


def success_pattern(pattern: str) -> re.Pattern[str]:
    """A `success:` pattern as a compiled expression; it must match within one line of stdout or stderr."""
    try:
        return re.compile(pattern, re.MULTILINE)
    except re.error as problem:
        raise UsageError(f"`success:` is not a regular expression: {problem} in {pattern!r}") from problem


def read(files: Mapping[str, bytes], *, success: str | None = None) -> Reading:
    """Every reader over the files of one probe. Keys are those of FILES, absent where a file was not asked for.

    Raises UsageError for a `success` that is no regular expression; nothing else, whatever the bytes.
    """
    stdout, stderr = files.get("stdout", b""), files.get("stderr", b"")
    log = files.get("driver_log")
    core, problem = _core(files.get("core"))
    return Reading(
        stderr=error_lines(stderr),
        stdout=error_lines(stdout),
        host_error=host_error(stderr) or host_error(stdout),
        driver_log=None if log is None else driver_log(log),
        sanitizer=_sanitizer(files),
        core=core,
        core_problem=problem,
        progress=core_progress(stderr) or core_progress(stdout),
        success_found=None if success is None else _found(success, stdout, stderr),
    )


def _sanitizer(files: Mapping[str, bytes]) -> SanitizerReport | None:
    """The report of a sanitizer where there is one; a text that went to stdout is read there."""
    xml, text = files.get("sanitizer_xml"), files.get("sanitizer_log")
    if xml is None and text is None:
        return None
    if text is None and b"COMPUTE-SANITIZER" in files.get("stdout", b""):
        text = files["stdout"]
    return sanitizer_report(xml, text)


def _core(data: bytes | None) -> tuple[CoreReading | None, str | None]:
    if data is None:
        return None, None
    try:
        return read_core(data), None
    except Undecided as problem:
        return None, problem.message


def _found(pattern: str, *streams: bytes) -> bool:
    compiled = success_pattern(pattern)
    return any(compiled.search(stream.decode("utf-8", "replace")) for stream in streams)


def to_json(reading: Reading) -> dict[str, Any]:
    """The reading as JSON values, defaults left out."""
    value: dict[str, Any] = jsonable.to_json(reading)
    return value


def from_json(data: Mapping[str, Any]) -> Reading:
    """A reading back from the ledger, so that an old run can be judged again after its files are gone."""
    return jsonable.from_json(Reading, data)
