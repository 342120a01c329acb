"""Files that are complete at every moment: each new content takes the old one's place in one step."""

from __future__ import annotations

import os
from pathlib import Path

from cudadiag.errors import Undecided, UsageError
from cudadiag.gate.outputs.interface import Format
from cudadiag.gate.report import GateReport


class LiveFile:
    """A format's file, written anew after every probe. Raises UsageError at once where it cannot be written."""

    def __init__(self, path: Path, form: Format) -> None:
        self.path, self.form = path, form
        if path.is_dir():
            raise UsageError(f"cannot write {path}: it is a folder")
        self._draft = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._last: bytes | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._draft.touch()
            self._draft.unlink()
        except OSError as problem:
            raise UsageError(f"cannot write {path}: {problem.strerror}") from problem

    def write(self, report: GateReport) -> None:
        """Put the report in place. Raises Undecided when the disk refuses."""
        data = self.form.render(report)
        if data == self._last:
            return
        try:
            with open(self._draft, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._draft, self.path)
        except OSError as problem:
            self._draft.unlink(missing_ok=True)
            raise Undecided(f"cannot write {self.path}: {problem.strerror}") from problem
        self._last = data
