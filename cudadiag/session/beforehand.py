"""What can be known to be wrong before the first probe: no shape can be run, or the program is not there."""

from __future__ import annotations

import difflib
import os
import shutil
from pathlib import Path

from cudadiag.case import Case
from cudadiag.case.problems import CaseError
from cudadiag.case.targets import CommandTarget
from cudadiag.errors import UsageError
from harness.records import ProbeRequest


class NoProgram(UsageError):
    """The program is not there: wrong use, but where `git bisect` goes through commits, one that cannot be built."""

    skips_commit = True


def check_beforehand(case: Case) -> None:
    """Raises CaseError where an expression fails at every shape, UsageError where the program does not exist. An
    expression that fails at some shapes only costs those."""
    request = first_request(case)
    if isinstance(case.target, CommandTarget) and case.build is None and not case.target.argv[0].names:
        _check_program(request)


def first_request(case: Case) -> ProbeRequest:
    """That of the first shape that has one. Raises CaseError, the first shape's, where none has."""
    first: CaseError | None = None
    for index in range(len(case.sweep)):
        try:
            return case.request(case.sweep.shape(index), folder=".", build_dir=".")
        except CaseError as problem:
            first = first or problem
    assert first is not None, "a sweep has at least one shape"
    raise first


def _check_program(request: ProbeRequest) -> None:
    name = request.target["argv"][0]
    folder = Path(request.cwd or ".")
    search = request.env.get("PATH", os.environ.get("PATH", os.defpath))
    if "/" in name:
        place = folder / name
        if place.is_file() and os.access(place, os.X_OK):
            return
        if place.exists():
            raise UsageError(f"cannot run {name}: it is {_what(place)}", hint=_how_to_run(place))
        raise NoProgram(f"no program {name}", hint=_meant(name, _beside(place)) or f"looked for from {folder}")
    if shutil.which(name, path=search) is None:
        here = f"./{name}" if (folder / name).is_file() else None
        near = f"did you mean {here}?" if here else _meant(name, _on_path(search))
        raise NoProgram(f"no program {name} on the PATH", hint=near or "a program of a folder is named ./program")


def _what(place: Path) -> str:
    return "a folder" if place.is_dir() else "not executable"


def _how_to_run(place: Path) -> str | None:
    if place.suffix == ".py":
        return f"python {place.name} ... runs it"
    return None if place.is_dir() else f"chmod +x {place.name} makes it so"


def _beside(place: Path) -> list[str]:
    """The executables in the folder of a path."""
    try:
        return [path.name for path in place.parent.iterdir() if path.is_file() and os.access(path, os.X_OK)]
    except OSError:
        return []


def _on_path(search: str) -> list[str]:
    names: set[str] = set()
    for folder in search.split(os.pathsep):
        try:
            names.update(os.listdir(folder or "."))
        except OSError:
            continue
    return sorted(names)


def _meant(name: str, known: list[str]) -> str | None:
    head, slash, last = name.rpartition("/")
    near = difflib.get_close_matches(last, known, n=3, cutoff=0.7)
    return f"did you mean {', '.join(head + slash + word for word in near)}?" if near else None
