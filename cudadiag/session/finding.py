"""Where a case is found by name: as a path, then in ./cases, then among the bundled ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cudadiag
from cudadiag.errors import UsageError

SUFFIXES = (".yaml", ".yml")
_NAME = re.compile(rb"^case:[ \t]*[\"']?([A-Za-z0-9_.-]+)", re.MULTILINE)
_HEAD_BYTES = 65536


@dataclass(frozen=True)
class Found:
    """A case file. `origin`: "path", "here" (./cases) or "bundled"."""

    name: str
    path: Path
    origin: str


def bundled_folder() -> Path | None:
    """The cases inside the installed package, or beside it in a checkout; None where neither is there."""
    package = Path(cudadiag.__file__).parent
    return next((f for f in (package / "cases", package.parent / "cases") if f.is_dir()), None)


def find_case(word: str, here: Path | None = None) -> Found:
    """The case meant by `word`. Raises UsageError where there is none, or several of the name in one place."""
    path = Path(word)
    if path.is_file():
        return Found(path.stem, path, "path")
    if path.suffix in SUFFIXES or "/" in word:
        raise UsageError(f"no case file {word}")
    for folder, origin in _places(here):
        fitting = [found for found in cases_below(folder, origin) if found.name == word]
        if len(fitting) > 1:
            places = ", ".join(str(found.path) for found in fitting)
            raise UsageError(f"several cases are named {word!r}: {places}", hint="give the path of one")
        if fitting:
            return fitting[0]
    raise UsageError(f"no case {word!r}: not a file, not in ./cases, not bundled", hint="`cudadiag cases` lists them")


def all_cases(here: Path | None = None) -> list[Found]:
    """Every case that can be run by name, those in ./cases first; a bundled one hidden by them is left out."""
    found: dict[str, Found] = {}
    for folder, origin in _places(here):
        for case in cases_below(folder, origin):
            found.setdefault(case.name, case)
    return list(found.values())


def _places(here: Path | None) -> Iterator[tuple[Path, str]]:
    local = (here or Path.cwd()) / "cases"
    bundled = bundled_folder()
    if local.is_dir() and not (bundled and local.samefile(bundled)):
        yield local, "here"
    if bundled:
        yield bundled, "bundled"


def cases_below(folder: Path, origin: str) -> list[Found]:
    """The case files below a folder: YAML with a `case:` key at its top level."""
    found = []
    for path in sorted(p for suffix in SUFFIXES for p in folder.rglob(f"*{suffix}")):
        try:
            with open(path, "rb") as file:
                match = _NAME.search(file.read(_HEAD_BYTES))
        except OSError:
            continue
        if match:
            found.append(Found(match[1].decode(), path, origin))
    return found
