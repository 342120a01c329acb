"""`cudadiag run`: one shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cudadiag.cli.options import leaks_option, run_options, target_options
from cudadiag.cli.running import ended, make_ask, open_session, run_info
from cudadiag.errors import UsageError
from cudadiag.report.documents import DOCUMENT_VERSION, RunDocument, TimelineRow, probe_document, to_text
from cudadiag.report.probe import stream_lines, timeline_lines, timeline_rows, verdict_lines
from cudadiag.report.watch import watcher
from cudadiag.session.ending import exit_code
from cudadiag.session.plans import OneShape
from cudadiag.session.setup import Session


@click.command("run")
@target_options
@leaks_option
@click.option("--repeat", type=click.IntRange(1, 100_000), default=1, metavar="N", help="Run it in N fresh processes.")
@click.option(
    "--time-line",
    "time_line",
    is_flag=True,
    help="Print both streams and the steps merged in their order; `=`: which of two lines was first is not known.",
)
@run_options
def command(store: Path, as_json: bool, resume: str | None, time_line: bool, git_bisect: bool, **options: Any) -> int:
    """Run one shape in a process of its own and judge it: the verdict, then both streams, kept apart.

    Every parameter needs one value: -P name=value for each axis with several.

    \b
    Examples:
      cudadiag run verify_attn -P streams=1 -P q_len=9 -P prefix=4096
      cudadiag run verify_attn -P streams=1 -P q_len=9 -P prefix=4096 --observer memcheck
      cudadiag run --time-line -- ./bench --q 9
      cudadiag run --repeat 100 --json -- ./flaky
    """
    ask = make_ask("run", options)
    with open_session(ask, resume=resume, store=store, watch=lambda sweep: watcher(sweep, lines=False)) as (
        session,
        progress,
    ):
        prepared = session.prepared
        shape = prepared.case.shape({})
        if len(prepared.sweep) != 1:
            raise UsageError("run takes one shape: give each parameter one value")
        session.controller.follow(OneShape(shape, 0, prepared.ask.repeat))
        progress.closed()
        outcomes = [judged.outcome for judged in session.controller.history]
        code = exit_code(outcomes, complete=len(outcomes) >= prepared.ask.repeat)
        if as_json:
            click.echo(to_text(_document(session, code, time_line)))
        else:
            click.echo("\n".join(_lines(session, time_line)))
        return ended(session, code)


def _document(session: Session, code: int, time_line: bool) -> RunDocument:
    history = session.controller.history
    rows = None
    if time_line and history:
        rows = [TimelineRow(*row) for row in timeline_rows(history[-1].line.facts)]
    probes = [probe_document(judged) for judged in history]
    return RunDocument("run", DOCUMENT_VERSION, code, run_info(session), probes, rows)


def _lines(session: Session, time_line: bool) -> list[str]:
    history = session.controller.history
    sources = session.prepared.sources
    lines: list[str] = []
    for judged in history:
        lines += [*verdict_lines(judged, sources), ""]
    if history:
        facts = history[-1].line.facts
        lines += timeline_lines(facts) if time_line else stream_lines(facts)
    return lines
