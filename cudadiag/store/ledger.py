"""The ledger file: appended line by line, each synced to the disk before the next probe is believed; read tolerantly.

A controller killed in the middle of a write leaves a last line without its end. That line is kept aside and said, never
silently dropped; anything else that is not a ledger line is an error with its line number.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudadiag.errors import Undecided, UsageError
from cudadiag.store.lines import (
    SCHEMA_VERSION,
    Line,
    LineError,
    NoteLine,
    ProbeLine,
    RunLine,
    line_from_json,
    line_to_json,
)

LEDGER_NAME = "ledger.jsonl"
TORN_NAME = "ledger.torn"


@dataclass(frozen=True)
class Ledger:
    """A ledger as read. `torn`: the bytes of a last line that was cut off; `unknown`: lines of kinds newer than us."""

    path: Path
    run: RunLine
    probes: tuple[ProbeLine, ...] = ()
    notes: tuple[NoteLine, ...] = ()
    torn: bytes = b""
    unknown: int = 0
    sound_bytes: int = field(default=0, compare=False)  # where the sound part ends in the file

    @property
    def folder(self) -> Path:
        return self.path.parent


def read_ledger(path: Path) -> Ledger:
    """The ledger at `path`. Raises UsageError when it cannot be read or is not a ledger."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise UsageError(f"cannot read the ledger {path}: {problem.strerror}") from problem
    return parse_ledger(data, path)


def parse_ledger(data: bytes, path: Path) -> Ledger:
    """Any bytes to a ledger. Raises UsageError with the line's number."""
    sound, torn = _split_torn(data)
    run: RunLine | None = None
    probes: list[ProbeLine] = []
    notes: list[NoteLine] = []
    unknown = 0
    for number, raw in enumerate(sound.split(b"\n")[:-1], start=1):
        line = _parse_line(raw, path, number)
        if run is None:
            if not isinstance(line, RunLine):
                raise UsageError(f"{path}:{number}: not a cudadiag ledger: its first line must be a 'run' line")
            run = line
        elif isinstance(line, ProbeLine):
            probes.append(line)
        elif isinstance(line, NoteLine):
            notes.append(line)
        elif line is None:
            unknown += 1
        else:
            raise UsageError(f"{path}:{number}: a second 'run' line")
    if run is None:
        raise UsageError(f"{path}: not a cudadiag ledger: it has no whole line")
    return Ledger(path, run, tuple(probes), tuple(notes), torn, unknown, len(sound))


def _split_torn(data: bytes) -> tuple[bytes, bytes]:
    """The whole lines, and what a crash left after them: a line without its end, or zeros of the file system."""
    kept = data.rstrip(b"\0")
    end = kept.rfind(b"\n") + 1
    return data[:end], data[end:]


def _parse_line(raw: bytes, path: Path, number: int) -> Line | None:
    try:
        data: Any = json.loads(raw)
    except (ValueError, RecursionError) as problem:
        raise UsageError(
            f"{path}:{number}: not a ledger line: {problem}",
            hint="only the last line may be cut off; the file was changed by something else",
        ) from None
    if isinstance(data, dict) and data.get("line") == "run":
        _check_version(data.get("schema"), path, number)
    try:
        return line_from_json(data, str(path.parent))
    except LineError as problem:
        raise UsageError(f"{path}:{number}: {problem}") from None


def _check_version(version: Any, path: Path, number: int) -> None:
    if not isinstance(version, int) or version < 1:
        raise UsageError(f"{path}:{number}: not a cudadiag ledger: its schema version is {version!r}")
    if version > SCHEMA_VERSION:
        raise UsageError(
            f"{path}:{number}: written by a newer cudadiag (ledger schema {version}, this one reads {SCHEMA_VERSION})",
            hint="pip install --upgrade cudadiag",
        )


class LedgerWriter:
    """Appends lines to a ledger and holds its lock: one controller per run.

    Every line is one write and one fsync. Raises Undecided when the disk refuses (what was appended before is whole).
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._whole = os.fstat(descriptor).st_size

    @classmethod
    def create(cls, path: Path, run: RunLine) -> LedgerWriter:
        """A new ledger with its first line."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            raise Undecided(f"cannot write {path}: {problem.strerror}") from problem
        writer = cls(path, descriptor)
        _lock(descriptor, path)
        writer.append(run)
        return writer

    @classmethod
    def reopen(cls, ledger: Ledger) -> LedgerWriter:
        """Go on with a ledger that was read; a torn last line is moved to `ledger.torn` beside it."""
        try:
            descriptor = os.open(ledger.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as problem:
            raise Undecided(f"cannot append to {ledger.path}: {problem.strerror}") from problem
        _lock(descriptor, ledger.path)
        if ledger.torn:
            with open(ledger.folder / TORN_NAME, "ab") as aside:
                aside.write(ledger.torn + b"\n")
            os.ftruncate(descriptor, ledger.sound_bytes)
        return cls(ledger.path, descriptor)

    def append(self, line: Line) -> None:
        document = line_to_json(line, str(self.path.parent))
        data = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            _write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except OSError as problem:
            os.ftruncate(self._descriptor, self._whole)
            raise Undecided(
                f"cannot append to the ledger {self.path}: {problem.strerror}; all earlier probes are kept",
                hint="make room and go on with --resume; `cudadiag clean` removes old runs",
            ) from problem
        self._whole += len(data)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> LedgerWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Undecided(f"the run {path.parent.name} is still going on in another process") from None


def is_locked(path: Path) -> bool:
    """Whether a controller is at work on this ledger now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
