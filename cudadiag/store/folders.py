"""The folder `.cudadiag/` and the runs in it: made, found again by name, kept for a while, cleaned.

.cudadiag/runs/20261129-185313-verify_attn-3f2a/ledger.jsonl
                                                probes/0001/...
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cudadiag.errors import Undecided, UsageError
from cudadiag.store.ledger import LEDGER_NAME, is_locked

STORE_NAME = ".cudadiag"
IGNORE_FILE = "*\n"  # a run folder never belongs under version control


@dataclass(frozen=True)
class RunEntry:
    """A run folder seen from outside: enough to list and to choose, without reading its whole ledger."""

    folder: Path
    run_id: str
    case_name: str
    case_path: str | None
    purpose: str
    started: str

    @property
    def ledger(self) -> Path:
        return self.folder / LEDGER_NAME


class Store:
    """The folder `.cudadiag/` (or another named by --store)."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def runs_folder(self) -> Path:
        return self.root / "runs"

    def new_run(self, case_name: str, now: datetime) -> Path:
        """An empty run folder. Raises Undecided when the disk or the rights do not allow it."""
        stamp = now.astimezone(UTC).strftime("%Y%m%d-%H%M%S")
        folder = self.runs_folder / f"{stamp}-{_safe(case_name)}-{secrets.token_hex(2)}"
        try:
            folder.mkdir(parents=True)
            (folder / "probes").mkdir()
            ignore = self.root / ".gitignore"
            if not ignore.exists():
                ignore.write_text(IGNORE_FILE)
        except OSError as problem:
            raise Undecided(
                f"cannot make the run folder {folder}: {problem.strerror}", hint="--store DIR puts runs elsewhere"
            ) from problem
        return folder

    def runs(self) -> list[RunEntry]:
        """All runs, oldest first. A folder without a readable ledger is left out. Raises UsageError where the store
        itself cannot be read."""
        try:
            folders = sorted(self.runs_folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as problem:
            raise UsageError(
                f"cannot read {self.runs_folder}: {problem.strerror}", hint="--store DIR names another place"
            ) from problem
        entries = (_entry(folder) for folder in folders if folder.is_dir())
        return sorted((e for e in entries if e is not None), key=lambda entry: (entry.started, entry.run_id))

    def find(self, word: str) -> RunEntry:
        """The run meant by `word`: a path, `last`, a run's name or its end, or the newest run of a case.

        Raises UsageError when there is none or the word fits several.
        """
        path = Path(word)
        if entry := _entry(_folder_of(path)):
            return entry
        runs = self.runs()
        if word == "last" and runs:
            return runs[-1]
        fitting = [r for r in runs if r.run_id == word or r.run_id.endswith(f"-{word}")]
        if len(fitting) > 1:
            names = ", ".join(r.run_id for r in fitting)
            raise UsageError(f"{word!r} fits several runs: {names}")
        if fitting:
            return fitting[0]
        if newest := self.newest(word):
            return newest
        for place in (path, self.runs_folder / word):
            if _is_there(ledger := _folder_of(place) / LEDGER_NAME):
                raise UsageError(f"{ledger} cannot be read as a ledger: its first line does not say which run it is")
        raise UsageError(f"no run {word!r} in {self.runs_folder}", hint="`cudadiag clean --dry-run` lists the runs")

    def newest(self, case_name: str) -> RunEntry | None:
        """The newest run of a case; None when there is none."""
        return next((r for r in reversed(self.runs()) if r.case_name == case_name), None)


def _folder_of(path: Path) -> Path:
    """The run folder meant by its own path or its ledger's."""
    return path.parent if path.name == LEDGER_NAME else path


def _is_there(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        return False


def _entry(folder: Path) -> RunEntry | None:
    """What the first line says. A foreign or broken folder gives None: it is not ours to judge here."""
    try:
        with open(folder / LEDGER_NAME, "rb") as file:
            data = json.loads(file.readline())
        case = data["case"]
        return RunEntry(
            folder=folder,
            run_id=str(data["run"]),
            case_name=str(case["name"]),
            case_path=case["path"],
            purpose=str(data["purpose"]),
            started=str(data["started"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def probe_folder(run_folder: Path, number: int) -> Path:
    """The folder of probe `number`: made new and empty. What a killed controller left there is put away first."""
    folder = run_folder / "probes" / f"{number:04d}"
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as problem:
        raise Undecided(f"cannot make the probe folder {folder}: {problem.strerror}") from problem
    return folder


def keep_probes(runs: list[RunEntry], case_name: str, keep: int) -> list[RunEntry]:
    """Retention: of a case's runs beyond the newest `keep`, delete what the probes left, and keep the ledger, which is
    enough to judge and explain them again. Gives the runs that lost files; a run going on loses nothing."""
    older = [run for run in runs if run.case_name == case_name][: -keep or None]
    lost = []
    for run in older:
        probes = run.folder / "probes"
        if probes.is_dir() and not is_locked(run.ledger):
            shutil.rmtree(probes, ignore_errors=True)
            shutil.rmtree(run.folder / "build", ignore_errors=True)
            lost.append(run)
    return lost


@dataclass(frozen=True)
class Removal:
    """One run that `clean` removes (or would), with why and how many bytes it holds."""

    entry: RunEntry
    reason: str
    size_bytes: int


def plan_removal(
    runs: list[RunEntry], now: datetime, *, keep: int | None = None, older_than_s: float | None = None
) -> list[Removal]:
    """Which runs go: all but the newest `keep` of each case, or those older than a time. A run going on now stays."""
    removals: list[Removal] = []
    seen: dict[str, int] = {}
    for entry in reversed(runs):
        seen[entry.case_name] = seen.get(entry.case_name, 0) + 1
        reason = _why_remove(entry, seen[entry.case_name], now, keep, older_than_s)
        if reason and not is_locked(entry.ledger):
            removals.append(Removal(entry, reason, folder_bytes(entry.folder)))
    return removals[::-1]


def _why_remove(entry: RunEntry, place: int, now: datetime, keep: int | None, older_than_s: float | None) -> str | None:
    if keep is not None and place > keep:
        kept = {0: "no run", 1: "the newest run"}.get(keep, f"the newest {keep} runs")
        return f"{kept} of {entry.case_name} {'is' if keep < 2 else 'are'} kept"
    age = age_s(entry.started, now)
    if older_than_s is not None and age is not None and age > older_than_s:
        return f"{age / 86400:.1f} days old"
    return None


def age_s(started: str, now: datetime) -> float | None:
    """Seconds since an ISO time; None for text that is none."""
    try:
        then = datetime.fromisoformat(started)
    except ValueError:
        return None
    return (now - then).total_seconds() if then.tzinfo else None


def remove(removal: Removal) -> None:
    """Delete a run's folder. Raises Undecided when the disk does not allow it."""
    try:
        shutil.rmtree(removal.entry.folder)
    except OSError as problem:
        raise Undecided(f"cannot remove {removal.entry.folder}: {problem.strerror}") from problem


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; what vanishes meanwhile counts nothing."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(base, name)).st_size
            except OSError:
                continue
    return total


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")[:48] or "case"
