"""What the user gives: files, folders, stdin. Files of one run (stdout, stderr, reports, core file) belong together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudadiag.errors import UsageError
from cudadiag.store.folders import STORE_NAME
from cudadiag.store.ledger import LEDGER_NAME

MAX_FILES = 5_000
RUN_FILES = frozenset({"stdout", "stderr", "rc", "driver.log", "report.txt", "report.xml", "core.gpu", "exit"})
_SKIPPED = re.compile(r"(?i)\.(?:py[co]?|so|o|a|bin|pt|pth|safetensors|gguf|npz|npy|png|jpe?g|pdf|zip|whl|db|sqlite)$")
_PAIR = re.compile(r"(?i)^(?P<stem>.*?)[._-]?(?:stdout|stderr|out|err)(?P<end>(?:\.(?:txt|log))?)$")


@dataclass(frozen=True)
class Incident:
    """Files that are read as one story. `name` is what it is called in reports; `-` is stdin. `is_run`: the one path
    is the ledger of a run of cudadiag's own, whose failing probes are stories each."""

    name: str
    paths: tuple[Path, ...]
    is_run: bool = False


STDIN = Path("-")


def incidents(paths: Sequence[Path], *, each: bool = False, together: bool = False) -> list[Incident]:
    """The files given on the command line are one incident, a folder's files one each, except what is of one run.

    Raises UsageError for a path that is not there or cannot be read.
    """
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
        found += _of_folder(folder)
    if together and found and not any(one.is_run for one in found):
        return [Incident(_joined_name(list(paths)), tuple(path for one in found for path in one.paths))]
    if not found:
        raise UsageError(
            "no log to read in " + ", ".join(map(str, folders)), hint="give a file, a folder with logs, or -"
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


def _of_folder(folder: Path) -> Iterator[Incident]:
    """A folder's logs: all of one run as one incident, others by themselves."""
    try:
        inside = sorted(folder.iterdir())
    except OSError as problem:
        raise UsageError(f"cannot read {folder}: {problem.strerror}") from problem
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
        logs = [path for path in files if not _SKIPPED.search(path.name) and not path.name.startswith(".")]
        yield from _paired(logs[:MAX_FILES])
    for inner in inside:
        if inner.is_dir() and not inner.is_symlink() and not _is_hidden(inner):
            yield from _of_folder(inner)


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
