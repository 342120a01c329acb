"""What the user asked for, as it is kept in the ledger so that `--resume` can go on with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudadiag.errors import UsageError

LISTS = ("params", "where", "derive")
FREE = ("jobs", "wait_s")  # may change when a run is resumed: they say nothing about what a probe means


@dataclass(frozen=True)
class Ask:
    """A command line, checked for form only. `purpose` is the command; `search` the choices of its search as JSON."""

    purpose: str
    case: str | None = None
    program: tuple[str, ...] | None = None
    params: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    derive: tuple[str, ...] = ()
    success: str | None = None
    cwd: str = "."
    observer: str | None = None
    device: str = "auto"
    memory_model: str = "exact"
    timeout_s: float | None = None
    check: bool = True
    leaks: bool = False
    timing: bool = False
    repeat: int = 1
    jobs: int = 1
    wait_s: float = 0.0
    search: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        data = dataclasses.asdict(self)
        data["program"] = None if self.program is None else list(self.program)
        for name in LISTS:
            data[name] = list(data[name])
        return data


def ask_from_json(data: Mapping[str, Any], purpose: str) -> Ask:
    """The inverse of `to_json`. Raises UsageError for another document, or for a run of another command."""
    names = {field.name for field in dataclasses.fields(Ask)}
    values = {name: value for name, value in data.items() if name in names}
    if values.get("purpose") != purpose:
        raise UsageError(f"this run was made by `cudadiag {values.get('purpose')}`, go on with that command")
    try:
        program = values["program"]
        values["program"] = None if program is None else tuple(program)
        for name in LISTS:
            values[name] = tuple(values[name])
        return Ask(**values)
    except (KeyError, TypeError) as problem:
        raise UsageError(f"the ledger's settings cannot be read: {problem}") from None


def resumed(before: Ask, given: Ask, explicit: frozenset[str]) -> Ask:
    """What to go on with: the run's own choices, and of the new ones those that change no meaning.

    `explicit` names the fields given on the command line. Raises UsageError for one that differs from the run's.
    """
    free = {name: getattr(given, name) for name in FREE if name in explicit}
    for name in sorted(explicit - set(FREE)):
        old, new = getattr(before, name), getattr(given, name)
        if name == "case" and _same_case(old, new):
            continue
        if old != new:
            raise UsageError(
                f"--resume: {name} is {new!r} now and was {old!r} in the run",
                hint="--resume takes everything from the run: leave the option out, or start anew",
            )
    return dataclasses.replace(before, **free)


def _same_case(old: str | None, new: str | None) -> bool:
    return old is not None and new is not None and Path(old).resolve() == Path(new).resolve()
