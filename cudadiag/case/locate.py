"""Where a case is found by name: as a path, then below ./cases, then among the bundled ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cudadiag
from cudadiag.case.expr import suggestion
from cudadiag.errors import UsageError

SUFFIXES = (".yaml", ".yml")
_KEY = re.compile(r"^(case|title):[ \t]*(.*?)[ \t]*(?:[ \t]#.*)?$", re.MULTILINE)
_HEAD_BYTES = 64 << 10


@dataclass(frozen=True)
class Found:
    """A case file. `origin`: "path", "here" (./cases) or "bundled". `group` is its folder below that place."""

    name: str
    path: Path
    origin: str
    title: str = ""
    group: str = ""

    @property
    def described(self) -> str:
        """Which one was taken, for the first line of a run."""
        origin = {"here": " (in ./cases)", "bundled": " (bundled)"}.get(self.origin, "")
        return f"case {self.name}: {self.path}{origin}"


def locate(word: str, here: Path | None = None) -> Path:
    """The path of the case that `word` means; see find_case."""
    return find_case(word, here).path


def find_case(word: str, here: Path | None = None) -> Found:
    """The case that `word` means: a path, a name, or group/name, looked for from the folder `here`.

    Raises UsageError with the nearest names where there is none, and with the choices where there are several.
    """
    here = here or Path()
    for path in (here / word, *(here / (word + suffix) for suffix in SUFFIXES)):
        if path.is_file():
            return _described(path, "path", path.parent)
    if word.endswith(SUFFIXES):
        raise UsageError(f"no case file {word}{': it is there, but is no file' if (here / word).exists() else ''}")
    known: list[str] = []
    for folder, origin in _places(here):
        cases = cases_below(folder, origin)
        fitting = [case for case in cases if word in (case.name, f"{case.group}/{case.name}")]
        if len(fitting) > 1:
            choices = " or ".join(f"{case.group}/{case.name}" for case in fitting)
            raise UsageError(f"several cases are named {word!r}: give {choices}")
        if fitting:
            return fitting[0]
        known += [case.name for case in cases]
    near = suggestion(word, known) or ": it is no file, not in ./cases and not bundled"
    raise UsageError(f"no case {word!r}{near}", hint="`cudadiag cases` lists them")


def all_cases(here: Path | None = None) -> list[Found]:
    """Every case that can be run by name, those in ./cases first; a bundled one that they hide is left out."""
    found: list[Found] = []
    hidden: set[str] = set()
    for folder, origin in _places(here or Path()):
        cases = [case for case in cases_below(folder, origin) if case.name not in hidden]
        hidden |= {case.name for case in cases}
        found += cases
    return found


def case_file(path: Path) -> Found | None:
    """The case in a file; None where it is no case: not YAML by its name, or without a `case:` at the left margin."""
    found = _described(path, "here", path.parent) if path.suffix in SUFFIXES else None
    return found if found and found.name else None


def bundled_folder() -> Path | None:
    """The cases inside the installed package, or beside it in a checkout; None where neither is there."""
    package = Path(cudadiag.__file__).resolve().parent
    return next((folder for folder in (package / "cases", package.parent / "cases") if folder.is_dir()), None)


def cases_below(folder: Path, origin: str = "here") -> list[Found]:
    """The case files below a folder, sorted by path: YAML files with a `case:` key at the left margin."""
    paths = sorted(path for suffix in SUFFIXES for path in folder.rglob(f"*{suffix}"))
    return [case for path in paths if (case := _described(path, origin, folder)).name]


def _places(here: Path) -> Iterator[tuple[Path, str]]:
    local, bundled = here / "cases", bundled_folder()
    if local.is_dir() and not (bundled and local.samefile(bundled)):
        yield local, "here"
    if bundled:
        yield bundled, "bundled"


def _described(path: Path, origin: str, place: Path) -> Found:
    """A case file as far as its head tells without loading it; a broken file still has a name."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        head = ""
    keys = {key: _unquoted(value) for key, value in reversed(_KEY.findall(head))}
    name = keys.get("case", path.stem if origin == "path" else "")
    return Found(name, path, origin, keys.get("title", ""), path.parent.relative_to(place).as_posix())


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"" else value
