"""Where a crash is shown in a repository: the kernel's line, else the case file; as a path relative to its root."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.finding import Finding


@dataclass(frozen=True)
class Place:
    """A file relative to the root, with `/`, and a line from 1."""

    path: str
    line: int = 1

    @property
    def uri(self) -> str:
        """As a relative URI."""
        return quote(self.path, safe="/", errors="surrogateescape")


def repository_root(start: Path) -> Path:
    """The nearest folder above with a `.git`, else the folder itself."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)


def find_place(finding: Finding, run: CaseRun | None, root: Path) -> Place | None:
    """The line that caused it, where it is known and its file lies below the root; else the case file, line 1."""
    caused = finding.seen.verdict.fault.caused if finding.seen and finding.seen.verdict.fault else None
    noticed = finding.seen.verdict.fault.noticed if finding.seen and finding.seen.verdict.fault else None
    for found in (caused, noticed):
        if found is not None and found.file and found.line:
            path = _file(found.file, run.sources if run else ())
            if path is not None and (shown := relative(path, root)):
                return Place(shown, found.line)
    if run is not None and run.path and (shown := relative(Path(run.path), root)):
        return Place(shown)
    return None


def relative(path: Path, root: Path) -> str | None:
    """The path below the root; None where it is not below it, or is no path at all."""
    try:
        resolved = path.resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return str(PurePosixPath(resolved.relative_to(root))) if resolved.is_relative_to(root) else None


def _file(name: str, sources: Iterable[str]) -> Path | None:
    """Tools may know only the file's name: it is then looked for among the case's files, and taken if one fits."""
    if os.path.isabs(name) and os.path.isfile(name):
        return Path(name)
    fitting = {source for source in sources if Path(source).name == Path(name).name}
    return Path(fitting.pop()) if len(fitting) == 1 else None
