"""The index over runs and logs: an SQLite file that can be thrown away and made again.

Runs are read from their ledgers, logs from `logs.jsonl`, to which `triage --record` appends. The index only makes
looking back quick: which signature came when, on which driver and GPU.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cudadiag.errors import CudadiagError, Undecided
from cudadiag.signature import Judgements
from cudadiag.store.folders import IGNORE_FILE, Store
from cudadiag.triage.own_runs import probe_stories
from cudadiag.triage.run import Told
from cudadiag.triage.story import Story
from cudadiag.triage.verdicts import TriageVerdict

INDEX_NAME = "index.db"
LOGS_NAME = "logs.jsonl"
INDEX_VERSION = 1

_TABLES = """
CREATE TABLE seen (name TEXT PRIMARY KEY, mtime_ns INTEGER, size INTEGER);
CREATE TABLE entries (
  source TEXT, name TEXT, at TEXT, verdict TEXT, kind TEXT, fine TEXT, coarse TEXT, summary TEXT, driver TEXT, gpu TEXT,
  case_name TEXT, seen TEXT
);
CREATE INDEX by_coarse ON entries (coarse, at);
"""


@dataclass(frozen=True)
class Entry:
    """One failure of a run or a log. `at` is ISO 8601 (UTC); `driver` and `gpu` are None where nobody said."""

    source: str  # "run" or "log"
    name: str
    at: str
    verdict: str
    kind: str | None
    fine: str | None
    coarse: str | None
    summary: str
    driver: str | None = None
    gpu: str | None = None
    case_name: str | None = None


def record_logs(root: Path, told: Sequence[Told]) -> None:
    """Remembers what logs said, for `history`. Raises Undecided where the store cannot be written."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    lines = [
        json.dumps(asdict(_log_entry(one, now))) for one in told if one.story.verdict is not TriageVerdict.NOTHING_WRONG
    ]
    try:
        root.mkdir(parents=True, exist_ok=True)
        ignore = root / ".gitignore"
        if not ignore.exists():
            ignore.write_text(IGNORE_FILE)
        with open(root / LOGS_NAME, "a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
    except OSError as problem:
        raise Undecided(
            f"cannot write {root / LOGS_NAME}: {problem.strerror}", hint="--store DIR keeps it elsewhere"
        ) from problem


def _log_entry(told: Told, now: str) -> Entry:
    return _entry("log", told.incident.name, told.case.when or now, told.story)


def _entry(source: str, name: str, at: str, story: Story, **machine: str | None) -> Entry:
    kind = story.fault.kind.value if story.fault else None
    return Entry(source, name, at, story.verdict.value, kind, story.key, story.coarse, story.summary[:400], **machine)


def entries(root: Path, *, rebuild: bool = False) -> list[Entry]:
    """Everything the store knows, oldest first. The index is brought up to date first, or made anew."""
    path = root / INDEX_NAME
    if rebuild:
        path.unlink(missing_ok=True)
    if not root.is_dir():
        return []
    try:
        with closing(_open(path)) as connection:
            _update(connection, root)
            return _all(connection)
    except sqlite3.DatabaseError:
        if rebuild:
            raise
        return entries(root, rebuild=True)
    except OSError as problem:
        raise Undecided(f"cannot read {root}: {problem.strerror}") from problem


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, INDEX_VERSION):
        connection.close()
        path.unlink()
        connection, version = sqlite3.connect(path), 0
    if version == 0:
        connection.executescript(_TABLES)
        connection.execute(f"PRAGMA user_version = {INDEX_VERSION}")
    return connection


def _update(connection: sqlite3.Connection, root: Path) -> None:
    """Reads what is new or changed, and forgets what is gone."""
    known = {name: (mtime, size) for name, mtime, size in connection.execute("SELECT name, mtime_ns, size FROM seen")}
    found: dict[str, Path] = {run.run_id: run.ledger for run in Store(root).runs()}
    if (root / LOGS_NAME).is_file():
        found[LOGS_NAME] = root / LOGS_NAME
    for name in known.keys() - found.keys():
        _forget(connection, name)
    for name, path in found.items():
        status = path.stat()
        if known.get(name) == (status.st_mtime_ns, status.st_size):
            continue
        _forget(connection, name)
        rows = [(*asdict(entry).values(), name) for entry in _read(name, path)]
        connection.executemany(f"INSERT INTO entries VALUES ({','.join('?' * 12)})", rows)
        connection.execute("INSERT INTO seen VALUES (?, ?, ?)", (name, status.st_mtime_ns, status.st_size))
    connection.commit()


def _forget(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("DELETE FROM entries WHERE seen = ?", (name,))
    connection.execute("DELETE FROM seen WHERE name = ?", (name,))


def _read(name: str, path: Path) -> Iterator[Entry]:
    if name == LOGS_NAME:
        yield from _recorded(path)
        return
    try:
        ledger, stories = probe_stories(path)
    except CudadiagError:  # a broken ledger must not hide the others; `explain` says what is wrong with it
        return
    driver, gpu = _machine(ledger.run.device)
    for one in stories:
        label = f"{ledger.run.run_id} probe {one.number}"
        yield _entry("run", label, one.started, one.story, driver=driver, gpu=gpu, case_name=ledger.run.case_name)


def _recorded(path: Path) -> Iterator[Entry]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            yield Entry(**json.loads(line))
        except (ValueError, TypeError):
            continue  # a line cut off by a crash


def _machine(device: Any) -> tuple[str | None, str | None]:
    """Driver and GPU of a run, out of what its first line says of the machine."""
    driver = device.get("driver") or device.get("driver_version")
    gpus = device.get("gpus") or device.get("devices") or ()
    names = [g.get("name") for g in gpus if isinstance(g, dict) and g.get("name")]
    name = names[0] if names else device.get("name") or device.get("device")
    return (str(driver) if driver else None, str(name) if name else None)


def _all(connection: sqlite3.Connection) -> list[Entry]:
    columns = ", ".join(Entry.__dataclass_fields__)
    return [Entry(*row) for row in connection.execute(f"SELECT {columns} FROM entries ORDER BY at, name")]


@dataclass(frozen=True)
class Past:
    """One group over time, with the drivers and GPUs it was seen on."""

    group: str
    verdict: str
    summary: str
    count: int
    first: str
    last: str
    drivers: Sequence[str]
    gpus: Sequence[str]
    names: Sequence[str]
    fine: Sequence[str]


@dataclass(frozen=True)
class HistoryDocument:
    """`cudadiag history --json`. Each row is one group: count, first and last time, drivers, GPUs, where it was."""

    document: str
    schema: int
    exit_code: int
    groups: Sequence[Past]


def history(found: Sequence[Entry], judgements: Judgements, wanted: str | None = None) -> list[Past]:
    """The groups over time, the newest first. `wanted`: only those whose group or fine signature holds this text."""
    groups: dict[str, list[Entry]] = {}
    for entry in found:
        groups.setdefault(group_of_keys(entry, judgements), []).append(entry)
    pasts = [_past(group, members) for group, members in groups.items() if _is_wanted(group, members, wanted)]
    return sorted(pasts, key=lambda past: past.last, reverse=True)


def group_of_keys(entry: Entry, judgements: Judgements) -> str:
    """The group of an indexed failure, from its keys alone."""
    for merge in judgements.merges:
        if entry.fine in merge.signatures or entry.coarse in merge.signatures:
            return merge.name
    if judgements.splits and entry.coarse in judgements.splits:
        return entry.fine or "-"
    return entry.coarse or "-"


def _is_wanted(group: str, members: Sequence[Entry], wanted: str | None) -> bool:
    return wanted is None or wanted in group or any(wanted in (entry.fine or "") for entry in members)


def _past(group: str, members: Sequence[Entry]) -> Past:
    return Past(
        group=group,
        verdict=members[-1].verdict,
        summary=members[-1].summary,
        count=len(members),
        first=members[0].at,
        last=members[-1].at,
        drivers=_distinct(entry.driver for entry in members),
        gpus=_distinct(entry.gpu for entry in members),
        names=[entry.name for entry in members],
        fine=_distinct(entry.fine for entry in members),
    )


def _distinct(values: Iterator[str | None]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))
