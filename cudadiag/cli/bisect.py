"""`cudadiag bisect`: the first failing shape and the rule."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from cudadiag.cli.observing import ask_observers, asked_observers
from cudadiag.cli.options import leaks_option, run_options, target_options
from cudadiag.cli.running import ended, follow, make_ask, open_session, run_info, say_run
from cudadiag.diagnose.documents import agreement_part
from cudadiag.diagnose.plans import SANITIZE
from cudadiag.diagnose.report import closing_lines
from cudadiag.diagnose.witness import Witness
from cudadiag.errors import UsageError
from cudadiag.report.answer import Findings, answer_lines, confirmation, safe_list
from cudadiag.report.answerdoc import BisectDocument, without_long_prediction
from cudadiag.report.documents import DOCUMENT_VERSION, RunInfo, probe_document, to_text
from cudadiag.report.watch import watcher
from cudadiag.search.settings import Settings, Strategy
from cudadiag.session.judged import Judged
from cudadiag.session.searching import Searching
from cudadiag.session.setup import Prepared, Session
from cudadiag.store.atomic import OutputFile
from cudadiag.store.lines import strict_json


@click.command("bisect")
@target_options
@leaks_option
@click.option(
    "--strategy",
    type=click.Choice([strategy.value for strategy in Strategy]),
    default="auto",
    show_default=True,
    help="How to look: rules (auto), linear, bisect (assumes that all after the first fail), exhaustive.",
)
@click.option("--prove", is_flag=True, help="Run every earlier shape, whatever it costs, so that the claim is proven.")
@click.option(
    "--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True, help="For flaky faults."
)
@click.option("--max-probes", type=click.IntRange(min=1), metavar="N", help="Stop after N probes with what is known.")
@click.option("--sequence", is_flag=True, help="Also run shapes in one process, in several orders.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random choices of the search.")
@click.option(
    "--repeat", type=click.IntRange(1, 1000), metavar="N", help="Runs that measure a failing shape's rate. Default: 3."
)
@click.option("--partial-ok", is_flag=True, help="End with 0 when nothing failed, although not every shape was run.")
@click.option(
    "--write-safe",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the shapes known good, bad and unknown as JSON.",
)
@click.option("--no-sanitize", is_flag=True, help="Do not ask other observers about the shape found (GPU only).")
@run_options
def command(
    store: Path,
    as_json: bool,
    resume: str | None,
    git_bisect: bool,
    write_safe: Path | None,
    no_sanitize: bool,
    **options: Any,
) -> int:
    """Find the first failing shape in sweep order and the rule that the failing shapes obey.

    Every shape runs in a process of its own. The answer says how sure it is: proven (every earlier shape was run),
    implied by a rule that survived attacks, assumed (monotone), or a boundary. The first five lines are the answer, the
    rest is the evidence; every number names its probe. On a GPU the shape found is then run under compute-sanitizer, as
    `cudadiag sanitize` does it.

    \b
    Examples:
      cudadiag bisect verify_attn
      cudadiag bisect verify_attn --observer plain --no-check
      cudadiag bisect -P q_len=9,17,33 -P prefix=256..8192:x2 -- ./bench --q {q_len} --prefix {prefix}
      cudadiag bisect verify_attn --prove --write-safe safe.json
      cudadiag bisect --resume last
    """
    ask = make_ask("bisect", options, search_settings(options))
    with (
        OutputFile(write_safe) if write_safe else nullcontext() as output,
        open_session(ask, resume=resume, store=store, watch=watcher) as (session, progress),
    ):
        searching = Searching(session.prepared.sweep, _settings(session.prepared))
        follow(session, searching)
        if not no_sanitize:
            ask_observers(session, searching.answer(session.controller.history))
        progress.closed()
        found = findings(session, searching)
        session.note("concluded", strict_json(found.answer.to_json()))
        _print(session, found, as_json)
        if output:
            output.write(json.dumps(safe_list(found), indent=2).encode() + b"\n")
        return ended(session, found.answer.exit_code)


def _print(session: Session, found: Findings, as_json: bool) -> None:
    if as_json:
        click.echo(to_text(document(found, found.answer.exit_code, run_info(session))))
    else:
        click.echo("\n".join(lines_of(found)))
        say_run(session)


def search_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The search's settings as JSON, for the ledger."""
    settings = Settings(
        strategy=Strategy(options["strategy"]),
        seed=options["seed"],
        confidence=options["confidence"],
        prove=options["prove"],
        partial_ok=options["partial_ok"],
        sequence=options["sequence"],
        max_probes=options["max_probes"],
        parallelism=options["jobs"] or 1,
        rate_repeats=options["repeat"] or Settings().rate_repeats,
    )
    return dataclasses.asdict(settings)


def settings_from(data: Mapping[str, Any]) -> Settings:
    """The inverse; keys that this version does not know are left out."""
    names = {field.name for field in dataclasses.fields(Settings)}
    values = {name: value for name, value in data.items() if name in names}
    return Settings(**{**values, "strategy": Strategy(values.get("strategy", "auto"))})


def _settings(prepared: Prepared) -> Settings:
    """A case with `isolation: sequence` asks for sequences by itself. Raises UsageError where they cannot be had."""
    settings = settings_from(prepared.ask.search)
    if settings.sequence and not prepared.case.can_sequence:
        raise UsageError("--sequence: a command runs one shape; several in one process need a kernel or python target")
    return dataclasses.replace(settings, sequence=settings.sequence or prepared.case.isolation == "sequence")


def findings(session: Session, searching: Searching) -> Findings:
    """What the search found so far, with the probes it rests on."""
    prepared, history = session.prepared, session.controller.history
    answer = searching.answer(history)
    return Findings(prepared.sweep, answer, history, confirmation(answer, history), prepared.sources)


def lines_of(found: Findings) -> list[str]:
    """The whole report: the answer, and what the observers said of the shape found."""
    agreement = asked_observers(found.answer, found.history)
    own = [judged for judged in found.history if judged.line.purpose != SANITIZE]
    searched = dataclasses.replace(found, history=own)
    if agreement is not None and agreement.cause is not None and searched.first is not None:
        first = searched.first
        told = with_cause(first, agreement.cause)
        searched = dataclasses.replace(found, history=[told if judged is first else judged for judged in own])
    closing = closing_lines(agreement, found.sources) if agreement else []
    return [*answer_lines(searched), *closing]


def with_cause(first: Judged, cause: Witness) -> Judged:
    """The probe that shows the first failing shape, with the cause that another observer found, where it had none."""
    fault = first.fault
    if fault is None or fault.caused is not None:
        return first
    found_by = f"{fault.found_by}, the cause by {cause.observer} (probe {cause.number})"
    known = dataclasses.replace(fault, caused=cause.caused, found_by=found_by)
    return dataclasses.replace(first, verdict=dataclasses.replace(first.verdict, fault=known))


def document(found: Findings, code: int, info: RunInfo) -> BisectDocument:
    """The JSON document of an answer."""
    first, agreement = found.first, asked_observers(found.answer, found.history)
    return BisectDocument(
        document="bisect",
        schema=DOCUMENT_VERSION,
        exit_code=code,
        info=info,
        answer=without_long_prediction(found.answer),
        fault=found.fault,
        first_probe=first.line.number if first else None,
        confirmation=found.confirmation,
        probes=[probe_document(judged) for judged in found.history],
        observers=agreement_part(agreement) if agreement else None,
    )
