"""`cudadiag explain`: the answer again from a ledger, running nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from cudadiag.cli.bisect import document, lines_of, settings_from
from cudadiag.cli.observing import explain_observed
from cudadiag.cli.options import complete_run, json_option, store_option
from cudadiag.report.answer import Findings, confirmation
from cudadiag.report.documents import RunInfo, to_text
from cudadiag.search.settings import Strategy
from cudadiag.session.judging import judging_from_json
from cudadiag.session.searching import Searching
from cudadiag.store.folders import Store
from cudadiag.store.ledger import Ledger, read_ledger


@click.command("explain")
@click.argument("run", default="last", metavar="[RUN]", shell_complete=complete_run)
@click.option(
    "--strategy",
    type=click.Choice([strategy.value for strategy in Strategy]),
    help="Answer as this strategy would. Default: the run's own, or rules for a sweep.",
)
@store_option
@json_option
def command(run: str, strategy: str | None, store: Path, as_json: bool) -> int:
    """Judge the probes of a run again and answer from them, running nothing.

    RUN is a run's name, its end, its folder, `last`, or a case's name (its newest run). Runs of `sweep` can be
    explained as well: the rule is looked for among the shapes that were run. Runs of `sanitize` and `diagnose` are
    explained as those commands do.

    \b
    Examples:
      cudadiag explain
      cudadiag explain verify_attn
      cudadiag explain .cudadiag/runs/20261129-185313-verify_attn-3f2a --json
    """
    ledger = read_ledger(Store(store.absolute()).find(run).ledger)
    if ledger.run.purpose in ("sanitize", "diagnose"):
        return explain_observed(ledger, info_of(ledger), as_json)
    found = findings(ledger, strategy)
    code = found.answer.exit_code
    if as_json:
        click.echo(to_text(document(found, code, info_of(ledger))))
        return code
    if ledger.torn:
        click.echo(f"cudadiag: the ledger's last line is cut off ({len(ledger.torn)} bytes): not used", err=True)
    click.echo("\n".join(lines_of(found)))
    click.echo(f"run: {ledger.folder}", err=True)
    return code


def findings(ledger: Ledger, strategy: str | None) -> Findings:
    """What follows from a ledger as it stands, its probes judged anew."""
    settings = settings_from(ledger.run.settings.get("search", {}))
    if strategy is not None:
        settings = dataclasses.replace(settings, strategy=Strategy(strategy))
    judging = judging_from_json(ledger.run.settings.get("judging", {}))
    history = [judging.judged(line) for line in ledger.probes]
    answer = Searching(ledger.run.sweep, settings).answer(history)
    return Findings(ledger.run.sweep, answer, history, confirmation(answer, history), list(ledger.run.sources))


def info_of(ledger: Ledger) -> RunInfo:
    run = ledger.run
    settings = {k: v for k, v in run.settings.items() if k != "judging"}
    interrupted = bool(ledger.notes) and ledger.notes[-1].kind == "interrupted"
    return RunInfo(run.run_id, str(ledger.folder), run.case_name, run.case_path, run.device, settings, interrupted)
