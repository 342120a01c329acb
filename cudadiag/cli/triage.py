"""`cudadiag triage`: any crash log to its first real fault."""

from __future__ import annotations

from pathlib import Path

import click

from cudadiag.case import load, locate
from cudadiag.cli.options import json_option, store_option
from cudadiag.errors import UsageError
from cudadiag.model import Sweep
from cudadiag.report.documents import to_text
from cudadiag.report.ticking import ticking
from cudadiag.signature import Judgements, read_judgements
from cudadiag.triage import STDIN, Left, Reading, Told, document_of, incidents, tell_all
from cudadiag.triage.render import cluster_lines, story_lines

JUDGEMENTS_NAME = "signatures.yaml"


@click.command("triage")
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--case", "case_name", metavar="CASE", help="Name the shape after the last finished row of a table.")
@click.option("--each", is_flag=True, help="Every file is a log of its own: group them.")
@click.option("--together", is_flag=True, help="Everything, folders too, is of one incident.")
@click.option("--record", is_flag=True, help="Remember the logs for `cudadiag history`.")
@store_option
@json_option
def command(
    logs: tuple[Path, ...], case_name: str | None, each: bool, together: bool, record: bool, store: Path, as_json: bool
) -> int:
    """Read crash logs and name the first real fault; fold its echoes and what follows from it.

    FILE is a log of any program, a sanitizer report (text or XML), a GPU core file, a kernel log, or `-` for stdin;
    .gz, .bz2 and .xz are unpacked. Several files are one incident (ranks, server and client, stdout and stderr, dmesg).
    A folder is read as many logs, which are grouped by signature; sources, executables and other binary files in it are
    left out, and counted on stderr.

    Exit code 1: a cause is named; 3: the cause is not in the log; 0: nothing wrong found.

    \b
    Examples:
      cudadiag triage server.log client.log
      dmesg | cudadiag triage -
      cudadiag triage logs/ --json
      cudadiag triage --case verify_attn bench_out.txt bench_err.txt
    """
    if each and together:
        raise UsageError("--each and --together exclude each other")
    told = _told(logs or (STDIN,), each, together)
    sweep = _sweep(case_name) if case_name else None
    document = document_of(told, sweep=sweep, judgements=judgements_of(store))
    if record:
        from cudadiag.triage.index import record_logs

        record_logs(store, told)
    if as_json:
        click.echo(to_text(document))
    elif len(told) > 1:
        click.echo("\n".join(cluster_lines(document.clusters)).rstrip())
    else:
        click.echo("\n".join(story_lines(document)))
    return document.exit_code


def _told(logs: tuple[Path, ...], each: bool, together: bool) -> list[Told]:
    """Reads everything, telling on stderr how far it is and what it left out."""
    left, reading = Left(), Reading()
    try:
        with ticking(lambda: _doing(left, reading)):
            return tell_all(incidents(logs, each=each, together=together, left=left), reading)
    finally:
        for problem in reading.problems:
            click.echo(f"cudadiag: left out: {problem}", err=True)
        if left.counts and reading.total:
            click.echo(f"cudadiag: {left.words()}", err=True)


def _doing(left: Left, reading: Reading) -> str:
    if not reading.total:
        return f"looking for logs: {left.total} files so far"
    return f"reading log {min(reading.done + 1, reading.total)} of {reading.total}: {reading.name}"


def _sweep(name: str) -> Sweep:
    return load(locate(name)).sweep


def judgements_of(store: Path) -> Judgements:
    """What people decided about signatures, from the store's file for it."""
    path = store / JUDGEMENTS_NAME
    if not path.is_file():
        return Judgements()
    return read_judgements(path.read_text(encoding="utf-8"), str(path))
