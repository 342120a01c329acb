"""The lines of a ledger as frozen dataclasses, to JSON and back.

Five kinds of line: `run` (always the first), `probe` (one per probe), `concluded` (what was answered, never read
back as truth), `resumed` and `interrupted`. Paths are stored relative to the run's folder, so that a run can be moved.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cudadiag.model import Axis, Scalar, Sweep
from harness.records import ProbeFacts, facts_from_json, to_json

SCHEMA_VERSION = 1
"""Raised when an older reader would misread a newer ledger; new optional keys do not raise it."""

PATH_FACTS = ("driver_log", "sanitizer_xml", "sanitizer_log", "core", "folder")


class LineError(ValueError):
    """A line that is JSON but not what its kind must be; the message says which key."""


@dataclass(frozen=True)
class RunLine:
    """The first line: what was asked, of what, where. Hashes are hexadecimal SHA-256."""

    run_id: str
    started: str  # ISO 8601, UTC
    version: str  # of cudadiag
    command_line: tuple[str, ...]
    cwd: str
    purpose: str  # the command: "run", "sweep", "bisect", ...
    case_name: str
    case_path: str | None  # None for a case given on the command line
    case_hash: str
    sources: Mapping[str, str]  # path -> hash
    sweep: Sweep
    settings: Mapping[str, Any]
    device: Mapping[str, Any]
    tools: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProbeLine:
    """One process: number (its folder is probes/NNNN), shape, how it was run, what it showed.

    `sequence`: where several shapes were run in one process, their indices in order; `shape` is then the last of them.
    `purpose` and `tag` are the search's own words and come back to it unchanged. `reading` is what the pure readers
    found in the probe's files, so that it can be judged again when they are gone.
    """

    number: int
    shape: Mapping[str, Scalar]
    index: int | None  # in sweep order; None for a shape outside the sweep
    purpose: str  # "search", "attack", "proof", "repeat", "confirm", ...
    observer: str
    device: str
    memory_model: str
    repeat: int  # how many probes of this shape came before, same observer and device
    started: str
    facts: ProbeFacts
    sequence: tuple[int, ...] = ()
    tag: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NoteLine:
    """`concluded`, `resumed` or `interrupted`, with its document."""

    kind: str
    at: str
    document: Mapping[str, Any]


Line = RunLine | ProbeLine | NoteLine
NOTE_KINDS = ("concluded", "resumed", "interrupted")


def line_to_json(line: Line, folder: str) -> dict[str, Any]:
    """A line as plain JSON values; paths below `folder` become relative to it."""
    if isinstance(line, RunLine):
        return _run_to_json(line)
    if isinstance(line, ProbeLine):
        return _probe_to_json(line, folder)
    return {"line": line.kind, "at": line.at, "document": dict(line.document)}


def line_from_json(data: Any, folder: str) -> Line | None:
    """The inverse of `line_to_json`; None for a kind this version does not know. Raises LineError."""
    if not isinstance(data, dict):
        raise LineError("a line must be a JSON object")
    kind = data.get("line")
    try:
        if kind == "run":
            return _run_from_json(data)
        if kind == "probe":
            return _probe_from_json(data, folder)
        if kind in NOTE_KINDS:
            return NoteLine(str(kind), str(data["at"]), _mapping(data["document"], "document"))
    except KeyError as missing:
        raise LineError(f"a {kind!r} line needs the key {missing}") from None
    except (TypeError, ValueError, AttributeError) as wrong:
        raise LineError(f"a {kind!r} line is malformed: {wrong}") from None
    if not isinstance(kind, str):
        raise LineError("a line needs the key 'line'")
    return None


def sweep_to_json(sweep: Sweep) -> dict[str, Any]:
    """Axes, legal shapes as positions on each axis (None: every combination is legal), the derived columns, and the
    constants (which ledgers of earlier versions do not have)."""
    positions = [{_key(value): i for i, value in enumerate(axis.values)} for axis in sweep.axes]
    full = 1
    for axis in sweep.axes:
        full *= len(axis.values)
    legal = None
    if full != len(sweep.shapes):
        legal = [[at[_key(value)] for at, value in zip(positions, shape, strict=True)] for shape in sweep.shapes]
    return {
        "axes": [{"name": axis.name, "values": list(axis.values)} for axis in sweep.axes],
        "legal": legal,
        "derived": {name: list(column) for name, column in sweep.derived.items()},
        "constants": dict(sweep.constants),
    }


def sweep_from_json(data: Any) -> Sweep:
    """The inverse of `sweep_to_json`. Raises KeyError, TypeError or ValueError on another document."""
    axes = tuple(Axis(str(a["name"]), tuple(_scalar(v) for v in a["values"])) for a in data["axes"])
    if data["legal"] is None:
        shapes: list[tuple[Scalar, ...]] = [()]
        for axis in axes:
            shapes = [(*shape, value) for shape in shapes for value in axis.values]
    else:
        shapes = [_legal_shape(axes, row) for row in data["legal"]]
    derived = {str(name): tuple(_scalar(v) for v in column) for name, column in data["derived"].items()}
    for name, column in derived.items():
        if len(column) != len(shapes):
            raise ValueError(f"derived column {name!r} has {len(column)} values for {len(shapes)} shapes")
    constants = {str(n): _number(v) for n, v in _mapping(data.get("constants", {}), "constants").items()}
    return Sweep(axes, tuple(shapes), derived, constants)


def _legal_shape(axes: tuple[Axis, ...], row: list[int]) -> tuple[Scalar, ...]:
    if any(not isinstance(position, int) or position < 0 for position in row):
        raise ValueError("a legal shape is a list of positions")
    try:
        return tuple(axis.values[position] for axis, position in zip(axes, row, strict=True))
    except IndexError:
        raise ValueError(f"legal shape {row} is outside the axes") from None


def _key(value: Scalar) -> tuple[str, Scalar]:
    """1, 1.0 and True are equal in Python and three different values on an axis."""
    return type(value).__name__, value


def _scalar(value: Any) -> Scalar:
    if isinstance(value, int | float | str | bool):
        return value
    raise ValueError(f"{value!r} is not a number, text or true/false")


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is not a number")


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{key!r} must be an object")


def _run_to_json(line: RunLine) -> dict[str, Any]:
    return {
        "line": "run",
        "schema": SCHEMA_VERSION,
        "run": line.run_id,
        "started": line.started,
        "cudadiag": line.version,
        "command_line": list(line.command_line),
        "cwd": line.cwd,
        "purpose": line.purpose,
        "case": {"name": line.case_name, "path": line.case_path, "sha256": line.case_hash},
        "sources": dict(line.sources),
        "sweep": sweep_to_json(line.sweep),
        "settings": dict(line.settings),
        "device": dict(line.device),
        "tools": dict(line.tools),
    }


def _run_from_json(data: dict[str, Any]) -> RunLine:
    case = data["case"]
    return RunLine(
        run_id=str(data["run"]),
        started=str(data["started"]),
        version=str(data["cudadiag"]),
        command_line=tuple(str(word) for word in data["command_line"]),
        cwd=str(data["cwd"]),
        purpose=str(data["purpose"]),
        case_name=str(case["name"]),
        case_path=None if case["path"] is None else str(case["path"]),
        case_hash=str(case["sha256"]),
        sources={str(k): str(v) for k, v in _mapping(data["sources"], "sources").items()},
        sweep=sweep_from_json(data["sweep"]),
        settings=_mapping(data["settings"], "settings"),
        device=_mapping(data["device"], "device"),
        tools={str(k): str(v) for k, v in _mapping(data.get("tools", {}), "tools").items()},
    )


def _probe_to_json(line: ProbeLine, folder: str) -> dict[str, Any]:
    return {
        "line": "probe",
        "number": line.number,
        "shape": dict(line.shape),
        "index": line.index,
        "purpose": line.purpose,
        "observer": line.observer,
        "device": line.device,
        "memory_model": line.memory_model,
        "repeat": line.repeat,
        "started": line.started,
        "sequence": list(line.sequence),
        "tag": line.tag,
        "reading": strict_json(line.reading),
        "facts": strict_json(_move_paths(to_json(line.facts), lambda path: _relative(path, folder))),
    }


def _probe_from_json(data: dict[str, Any], folder: str) -> ProbeLine:
    facts = _move_paths(dict(_mapping(data["facts"], "facts")), lambda path: os.path.join(folder, path))
    facts["result"] = _with_floats(facts.get("result") or {})
    index = data["index"]
    return ProbeLine(
        number=int(data["number"]),
        shape={str(k): _scalar(v) for k, v in _mapping(data["shape"], "shape").items()},
        index=None if index is None else int(index),
        purpose=str(data["purpose"]),
        observer=str(data["observer"]),
        device=str(data["device"]),
        memory_model=str(data["memory_model"]),
        repeat=int(data["repeat"]),
        started=str(data["started"]),
        facts=facts_from_json(facts),
        sequence=tuple(int(i) for i in data.get("sequence", ())),
        tag=str(data.get("tag", "")),
        reading=_mapping(data.get("reading", {}), "reading"),
    )


NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def strict_json(value: Any) -> Any:
    """JSON has no word for what is not a finite number: such floats become the strings NaN, Infinity and -Infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): strict_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict_json(item) for item in value]
    return value


def _with_floats(value: Any) -> Any:
    if isinstance(value, str):
        return NOT_FINITE.get(value, value)
    if isinstance(value, dict):
        return {key: _with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    return value


def _move_paths(facts: dict[str, Any], move: Callable[[str], str]) -> dict[str, Any]:
    for name in PATH_FACTS:
        if facts.get(name):
            facts[name] = move(facts[name])
    for stream in ("stdout", "stderr"):
        if facts.get(stream) is not None:
            facts[stream] = {k: move(v) if k in ("path", "times_path") and v else v for k, v in facts[stream].items()}
    return facts


def _relative(path: str, folder: str) -> str:
    relative = os.path.relpath(path, folder)
    return path if relative.startswith("..") else relative
