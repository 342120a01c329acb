"""`cudadiag sweep`: every shape."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cudadiag.cli.options import leaks_option, run_options, target_options
from cudadiag.cli.running import ended, make_ask, open_session, run_info, say_run
from cudadiag.model import Outcome, Sweep
from cudadiag.report.documents import DOCUMENT_VERSION, SweepDocument, probe_document, to_text
from cudadiag.report.style import count_words
from cudadiag.report.table import InOrder, SweepTable, summary_lines
from cudadiag.report.watch import print_row, watcher
from cudadiag.session.apart import apart
from cudadiag.session.ending import exit_code
from cudadiag.session.judged import Judged
from cudadiag.session.plans import EveryShape, InSequence, UnlessHopeless
from cudadiag.session.progress import PassedOn, Progress
from cudadiag.session.setup import Session
from cudadiag.session.task import Plan


class RowPrinter(PassedOn):
    """Prints rows of the table as they become due."""

    def __init__(self, inner: Progress, sweep: Sweep, timed: bool, repeat: int) -> None:
        super().__init__(inner)
        self._sweep, self._table, self._order = sweep, SweepTable(sweep, timed), InOrder(repeat)
        print_row(inner, self._table.header())

    def finished(self, judged: Judged) -> None:
        super().finished(judged)
        self._print(self._rows(judged))

    def closed(self) -> None:
        self._print(self._order.rest())
        super().closed()

    def _rows(self, judged: Judged) -> list[Judged]:
        return [row for part in apart(judged, self._sweep) for row in self._order.add(part)]

    def _print(self, rows: Sequence[Judged]) -> None:
        for judged in rows:
            print_row(self.inner, self._table.row(judged))


@click.command("sweep")
@target_options
@leaks_option
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, metavar="N", help="Run each shape N times.")
@run_options
def command(store: Path, as_json: bool, resume: str | None, git_bisect: bool, **options: Any) -> int:
    """Run every shape of the sweep, each in a process of its own, and print a table as they end.

    A crash costs its own row only: what was measured before and after it stays. Kernel targets show the time of a call
    on the device beside the reference's on the host; other targets the seconds of the whole process.

    A case with `isolation: sequence` runs its shapes after each other in one process; after a crash the next shape
    begins a new one.

    \b
    Examples:
      cudadiag sweep verify_attn
      cudadiag sweep verify_attn -P streams=1 -P prefix=256,4096 --no-check
      cudadiag sweep -P n=1..64:+3 --jobs 4 -- ./bench {n}
      cudadiag sweep verify_attn --json > sweep.json
      cudadiag sweep --resume last
    """
    ask = make_ask("sweep", options)

    def watch(sweep: Sweep) -> Progress:
        return watcher(sweep, lines=as_json)

    with open_session(ask, resume=resume, store=store, watch=watch) as (session, progress):
        prepared = session.prepared
        if not as_json:
            timed = prepared.case.target.kind == "kernel"
            progress = RowPrinter(progress, prepared.sweep, timed, prepared.ask.repeat)
            session.controller.watch(progress)
        session.controller.follow(UnlessHopeless(_plan(session)))
        progress.closed()
        history = _by_shape(session)
        shapes_run = len({j.line.index for j in history if j.outcome is not Outcome.UNRESOLVED})
        complete = shapes_run == len(prepared.sweep)
        code = exit_code((judged.outcome for judged in history), complete=complete)
        if as_json:
            click.echo(to_text(_document(session, code, shapes_run)))
        else:
            say_run(session, *summary_lines(prepared.sweep, history), *_sequence_lines(session))
        return ended(session, code)


def _plan(session: Session) -> Plan:
    prepared = session.prepared
    sweep = _possible(prepared.sweep, prepared.unmet)
    if prepared.case.isolation == "sequence":
        return InSequence(sweep, prepared.ask.repeat)
    return EveryShape(sweep, prepared.ask.repeat)


def _by_shape(session: Session) -> list[Judged]:
    """What was run, one entry for a shape, also where several ran in one process."""
    return [part for judged in session.controller.history for part in apart(judged, session.prepared.sweep)]


def _sequence_lines(session: Session) -> list[str]:
    if session.prepared.case.isolation != "sequence":
        return []
    processes = count_words(len(session.controller.history), "process", "processes")
    return [f"shapes ran after each other in {processes}, as the case asks (isolation: sequence)"]


def _possible(sweep: Sweep, unmet: str | None) -> Sweep:
    """Where the case's requirements do not hold, one probe says so for all."""
    return sweep if unmet is None else dataclasses.replace(sweep, shapes=sweep.shapes[:1], derived={})


def _document(session: Session, code: int, shapes_run: int) -> SweepDocument:
    history = _by_shape(session)
    counts = Counter(judged.outcome.value for judged in history)
    return SweepDocument(
        document="sweep",
        schema=DOCUMENT_VERSION,
        exit_code=code,
        info=run_info(session),
        shapes=len(session.prepared.sweep),
        shapes_run=shapes_run,
        counts=dict(counts),
        probes=[probe_document(judged) for judged in sorted(history, key=lambda j: (j.line.index, j.line.number))],
    )
