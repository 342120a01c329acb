"""The files that a case consists of, and their hashes for the ledger."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cudadiag.case.targets import CommandTarget, Formula, KernelTarget, PythonTarget

if TYPE_CHECKING:
    from cudadiag.case.case import Case

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+\.?(\w[\w.]*)[ \t]+import|import[ \t]+(\w[\w. \t,]*))", re.MULTILINE)
_SCANNED = frozenset({".cu", ".cuh", ".h", ".hpp", ".c", ".cc", ".cpp", ".inl"})


def source_files(case: Case) -> list[Path]:
    """The case file, its sources, references, data and scripts, with what these take from beside them, that exist."""
    waiting = [path for path in _named_files(case) if path.is_file()]
    found: dict[Path, None] = {}
    while waiting:
        path = waiting.pop(0).resolve()
        if path not in found:
            found[path] = None
            waiting.extend(_included(path))
    return list(found)


def hashes(case: Case) -> dict[str, str]:
    """SHA-256 in hexadecimal by file, relative to the case's folder where it lies in it."""
    return {_shown(path, case.folder): _hash(path) for path in source_files(case)}


def _named_files(case: Case) -> Iterator[Path]:
    if case.path is not None:
        yield case.path
    match case.target:
        case KernelTarget(kernels=kernels, buffers=buffers, reference=reference):
            yield from (kernel.source for kernel in kernels)
            yield from (buffer.fill.file for buffer in buffers if buffer.fill and buffer.fill.file)
            if reference is not None:
                yield reference[0]
        case PythonTarget(file=file):
            yield file
        case CommandTarget(argv=argv):
            yield from _words(argv, case.folder)
    if case.build is not None:
        yield from _words(case.build.argv, case.folder)


def _words(argv: tuple[Formula, ...], folder: Path) -> Iterator[Path]:
    """The words of a command that are files of the case: a script, a source. A word with expressions is none."""
    for word in argv:
        if not word.names and len(text := str(word.value({}))) < 1024 and "\0" not in text:
            yield folder / text


def _included(path: Path) -> Iterator[Path]:
    """What a source takes from beside it: `#include "..."` of C++, imports of Python."""
    if path.suffix == ".py":
        yield from _imported(path)
    elif path.suffix.lower() in _SCANNED:
        for match in _INCLUDE.finditer(path.read_bytes()):
            found = path.parent / match[1].decode("utf-8", "replace")
            if found.is_file():
                yield found


def _imported(path: Path) -> Iterator[Path]:
    """Modules and packages in the file's own folder; those installed elsewhere are not the case's."""
    for match in _IMPORT.finditer(path.read_bytes()):
        for name in re.findall(rb"(?:^|,)\s*(\w+)", match[1] or match[2]):
            first = name.decode("utf-8", "replace")
            beside = (path.parent / f"{first}.py", path.parent / first / "__init__.py")
            yield from (found for found in beside if found.is_file())


def _shown(path: Path, folder: Path) -> str:
    root = folder.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
