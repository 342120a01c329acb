"""What the user gives: files, folders, stdin. Files of one run (stdout, stderr, reports, core file) belong together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cudadiag.errors import UsageError
from cudadiag.store.folders import STORE_NAME
from cudadiag.store.ledger import LEDGER_NAME
from cudadiag.triage.nologs import Left, why_no_log

MAX_FILES = 5_000
RUN_FILES = frozenset({"stdout", "stderr", "rc", "driver.log", "report.txt", "report.xml", "core.gpu", "exit"})
_PAIR = re.compile(r"(?i)^(?P<stem>.*?)[._-]?(?:stdout|stderr|out|err)(?P<end>(?:\.(?:txt|log))?)$")


@dataclass(frozen=True)
class Incident:
    """Files that are read as one story. `name` is what it is called in reports; `-` is stdin. `is_run`: the one path
    is the ledger of a run of cudadiag's own, whose failing probes are stories each. `in_folder`: found below a folder,
    not named by the user, so that one which cannot be read is left out."""

    name: str
    paths: tuple[Path, ...]
    is_run: bool = False
    in_folder: bool = False


STDIN = Path("-")


def incidents(
    paths: Sequence[Path], *, each: bool = False, together: bool = False, left: Left | None = None
) -> list[Incident]:
    """The files given on the command line are one incident, a folder's files one each, except what is of one run.

    `left` counts what below a folder is no log. Raises UsageError for a path that is not there or cannot be read.
    """
    left = Left() if left is None else left
    files = [path for path in paths if path == STDIN or not _existing(path).is_dir()]
    runs = [path for path in files if path.name == LEDGER_NAME]
    folders = [path for path in paths if path not in files]
    files = [path for path in files if path not in runs]
    found = [Incident(str(path.parent), (path,), is_run=True) for path in runs]
    if files and each:
        found += _paired(files)
    elif files:
        found.append(Incident(_joined_name(files), tuple(files)))
    for folder in folders:
        found += [replace(one, in_folder=True) for one in _of_folder(folder, _inside(folder), left)]
    if together and found and not any(one.is_run for one in found):
        return [Incident(_joined_name(list(paths)), tuple(path for one in found for path in one.paths))]
    if not found:
        besides = f" ({left.words()})" if left.counts else ""
        raise UsageError(
            f"no log to read in {', '.join(map(str, folders))}{besides}", hint="give a file, a folder with logs, or -"
        )
    return found


def _existing(path: Path) -> Path:
    try:
        path.stat()
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from problem
    if not os.access(path, os.R_OK):
        raise UsageError(f"cannot read {path}: Permission denied")
    return path


def _joined_name(paths: Sequence[Path]) -> str:
    return " + ".join("stdin" if path == STDIN else str(path) for path in paths[:4]) + (
        " + ..." if len(paths) > 4 else ""
    )


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as problem:
        raise UsageError(f"cannot read {folder}: {problem.strerror}") from problem


def _of_folder(folder: Path, inside: Sequence[Path], left: Left) -> Iterator[Incident]:
    """A folder's logs: all of one run as one incident, others by themselves."""
    # In a store only the runs are logs; the files beside them are cudadiag's own.
    files = [path for path in inside if path.is_file()] if folder.name != STORE_NAME else []
    names = {path.name for path in files}
    if LEDGER_NAME in names:
        yield Incident(str(folder), (folder / LEDGER_NAME,), is_run=True)
        return
    if len(names & RUN_FILES) >= 2 or names & {"stdout", "stderr"}:
        members = [path for path in files if path.name in RUN_FILES or path.name.startswith("core")]
        yield Incident(str(folder), tuple(members))
    else:
        yield from _paired(_logs(files, left))
    for inner in inside:
        if inner.is_dir() and not inner.is_symlink() and not _is_hidden(inner):
            try:
                below = _inside(inner)
            except UsageError:
                left.add("folder that cannot be read")
                continue
            yield from _of_folder(inner, below, left)


def _logs(files: Sequence[Path], left: Left) -> list[Path]:
    """Of a folder's files those that may be logs."""
    logs: list[Path] = []
    for path in files:
        if path.name.startswith("."):
            continue
        reason = why_no_log(path) if len(logs) < MAX_FILES else f"file beyond the first {MAX_FILES} of a folder"
        if reason is None:
            logs.append(path)
        left.add(reason)
    return logs


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".") and path.name != STORE_NAME


def _paired(files: Sequence[Path]) -> Iterator[Incident]:
    """Each file by itself, but `x.out` with `x.err`, `x_stdout.txt` with `x_stderr.txt`."""
    groups: dict[tuple[Path, str], list[Path]] = {}
    for path in files:
        match = _PAIR.match(path.name)
        stem = f"{match['stem']}\0{match['end']}" if match else f"{path.name}\0"
        groups.setdefault((path.parent, stem), []).append(path)
    for members in groups.values():
        yield Incident(_joined_name(members), tuple(members))
