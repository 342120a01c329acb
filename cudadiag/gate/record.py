"""The record of a gate in the store: what was planned of which case, and which runs it made. `gate merge` joins them.

.cudadiag/gates/20261129-185313-3f2a1c/gate.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudadiag.errors import Undecided, UsageError
from cudadiag.gate.caserun import CaseRun, Chosen
from cudadiag.gate.outputs.interface import Format
from cudadiag.gate.report import GateReport
from cudadiag.store.folders import IGNORE_FILE

FOLDER, NAME = "gates", "gate.json"
VERSION = 1


@dataclass(frozen=True)
class Record:
    """A record as read. `runs` have neither sweep nor probes: those are in the ledgers of `run_folders`."""

    path: Path
    gate: str
    shard: str
    finished: bool
    strict: bool
    all_cases: bool
    started: str
    wall_s: float
    runs: tuple[CaseRun, ...]


def record_format(all_cases: bool) -> Format:
    """The record, as a format of the report: it is written at the same moments. `all_cases`: no case was named."""
    return Format("record", lambda report: _render(report, all_cases), "the gate's record")


def _render(report: GateReport, all_cases: bool) -> bytes:
    document = {
        "document": "gate-record",
        "schema": VERSION,
        "gate": report.gate,
        "shard": report.shard,
        "finished": report.finished,
        "strict": report.strict,
        "all_cases": all_cases,
        "started": report.started,
        "wall_s": round(report.wall_s, 3) if report.finished else 0.0,
        "cases": [_case_to_json(run) for run in report.runs],
    }
    return json.dumps(document, allow_nan=False).encode("ascii") + b"\n"


def _case_to_json(run: CaseRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "path": run.path,
        "title": run.title,
        "device": run.device,
        "fixed": dict(run.fixed),
        "chosen": [[c.index, list(c.why), c.weight] for c in run.chosen],
        "cut": sorted(run.cut),
        "repeat": run.repeat,
        "problem": run.problem,
        "left_out": run.left_out,
        "runs": [Path(folder).name for folder in run.run_folders],
    }


def ignored(root: Path) -> None:
    """A store never belongs under version control, also where no run came to be. Raises Undecided."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not (root / ".gitignore").exists():
            (root / ".gitignore").write_text(IGNORE_FILE)
    except OSError as problem:
        raise Undecided(f"cannot keep runs in {root}: {problem.strerror}") from problem


def read_record(path: Path) -> Record:
    """A gate's record. Raises UsageError where it is none."""
    try:
        data = json.loads(path.read_bytes())
        if data["document"] != "gate-record" or data["schema"] != VERSION:
            raise UsageError(f"{path}: not a gate's record of version {VERSION}")
        runs = path.parents[2] / "runs"
        return Record(
            path,
            str(data["gate"]),
            str(data["shard"]),
            bool(data["finished"]),
            bool(data["strict"]),
            bool(data["all_cases"]),
            str(data["started"]),
            float(data["wall_s"]),
            tuple(_case_from_json(case, runs) for case in data["cases"]),
        )
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from problem
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as problem:
        raise UsageError(f"{path}: not a gate's record: {problem!r}") from problem


def _case_from_json(data: Mapping[str, Any], runs: Path) -> CaseRun:
    return CaseRun(
        name=str(data["name"]),
        path=data["path"],
        title=str(data["title"]),
        fixed=dict(data["fixed"]),
        device=str(data["device"]),
        chosen=tuple(Chosen(int(index), tuple(why), int(weight)) for index, why, weight in data["chosen"]),
        cut=frozenset(int(index) for index in data["cut"]),
        repeat=int(data["repeat"]),
        problem=data["problem"],
        left_out=data["left_out"],
        run_folders=tuple(str(runs / str(name)) for name in data["runs"]),
    )
