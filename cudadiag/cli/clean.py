"""`cudadiag clean`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import click

from cudadiag.cli.options import json_option, store_option
from cudadiag.report.documents import DOCUMENT_VERSION, CleanDocument, RunRow, to_text
from cudadiag.report.style import bytes_words, count_words
from cudadiag.store.folders import Removal, Store, folder_bytes, plan_removal, remove

UNITS_S = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


class Age(click.ParamType[float]):
    """`90m`, `12h`, `30d`, `8w` as seconds."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", str(value))
        if not match:
            self.fail(f"{value!r} is not an age: write 90m, 12h, 30d or 8w", param, ctx)
        return float(match[1]) * UNITS_S[match[2]]


@click.command("clean")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N runs of each case.")
@click.option("--older-than", type=Age(), metavar="AGE", help="Remove runs older than 90m, 12h, 30d, 8w.")
@click.option("--case", "case_name", metavar="NAME", help="Only runs of this case.")
@click.option("--dry-run", is_flag=True, help="List the runs, remove nothing.")
@store_option
@json_option
def command(
    keep: int | None, older_than: float | None, case_name: str | None, dry_run: bool, store: Path, as_json: bool
) -> int:
    """List the runs kept here and remove old ones. A run that is going on is never removed.

    Without --keep and --older-than the newest 10 runs of each case stay.

    \b
    Examples:
      cudadiag clean --dry-run
      cudadiag clean --keep 3
      cudadiag clean --older-than 30d --case verify_attn
      cudadiag clean --keep 0               # everything
    """
    runs = [run for run in Store(store).runs() if case_name in (None, run.case_name)]
    if keep is None and older_than is None:
        keep = 10
    removals = {r.entry.run_id: r for r in plan_removal(runs, datetime.now(UTC), keep=keep, older_than_s=older_than)}
    rows = []
    for run in runs:
        removal = removals.get(run.run_id)
        size = removal.size_bytes if removal else folder_bytes(run.folder)
        gone = _remove(removal, dry_run)
        rows.append(RunRow(run.run_id, run.case_name, run.started, size, removal.reason if removal else None, gone))
    _report(rows, dry_run, as_json)
    return 0


def _remove(removal: Removal | None, dry_run: bool) -> bool:
    if removal is None or dry_run:
        return False
    remove(removal)
    return True


def _report(rows: list[RunRow], dry_run: bool, as_json: bool) -> None:
    if as_json:
        click.echo(to_text(CleanDocument("clean", DOCUMENT_VERSION, 0, rows)))
        return
    for row in rows:
        word = "kept" if row.reason is None else "would go" if dry_run else "removed"
        why = f"  ({row.reason})" if row.reason else ""
        click.echo(f"{word:<8}  {row.run}  {bytes_words(row.bytes):>9}{why}")
    freed = sum(row.bytes for row in rows if row.reason is not None)
    going = sum(row.reason is not None for row in rows)
    verb = "would be removed" if dry_run else "removed"
    click.echo(f"{count_words(len(rows), 'run')}, {going} {verb} ({bytes_words(freed)})", err=True)
