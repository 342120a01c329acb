"""Output files: opened before the work, so that a wrong path is told at once, and replaced in one step at its end."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cudadiag.errors import UsageError


class OutputFile:
    """A file that appears whole or not at all. Raises UsageError at once when the place cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise UsageError(f"cannot write {path}: it is a folder")
        self._draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            self._file = open(self._draft, "xb")  # noqa: SIM115 - closed by write() or close()
        except OSError as problem:
            raise UsageError(f"cannot write {path}: {problem.strerror}") from problem

    def write(self, data: bytes) -> None:
        """Put the whole content in place."""
        try:
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._draft, self.path)
        except OSError as problem:
            self.close()
            raise UsageError(f"cannot write {self.path}: {problem.strerror}") from problem

    def close(self) -> None:
        """Forget the draft if `write` never came."""
        self._file.close()
        self._draft.unlink(missing_ok=True)

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
