"""`cudadiag diagnose`: which of the usual explanations stand, each tested by an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cudadiag.cli.observing import about, ask_about, in_sequence, open_observing, refuse_observer, shape_option
from cudadiag.cli.options import run_options, target_options
from cudadiag.cli.running import ended, follow, run_info, say_run
from cudadiag.diagnose.crosscheck import cross_check
from cudadiag.diagnose.documents import DiagnoseDocument, agreement_part, explanation_parts, subject_part
from cudadiag.diagnose.engine import diagnosis
from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Setting
from cudadiag.diagnose.plans import Diagnosing
from cudadiag.diagnose.report import diagnosis_lines, nothing_found_lines, unfinished_lines
from cudadiag.errors import EXIT_FOUND
from cudadiag.model import Sweep
from cudadiag.report.documents import DOCUMENT_VERSION, RunInfo, probe_document, to_text
from cudadiag.session.ending import exit_code
from cudadiag.session.judged import Judged
from cudadiag.session.setup import Prepared
from cudadiag.store.lines import strict_json


@click.command("diagnose")
@target_options
@shape_option
@click.option("--all", "everything", is_flag=True, help="Make every experiment that is possible here.")
@run_options
def command(
    store: Path, as_json: bool, resume: str | None, git_bisect: bool, shape_text: str | None, **options: Any
) -> int:
    """Test the usual explanations of a failure, one by one, and say which stand.

    Each explanation predicts something; the experiments that can tell two of them apart are made, each in a process of
    its own: with and without blocking launches, alone and after other shapes, under each tool of compute-sanitizer,
    with a core dump, without optimisation, again. Every explanation ends supported, refuted or untested, with the
    probes behind it. `cudadiag explain` judges the run again and runs nothing.

    \b
    Examples:
      cudadiag diagnose verify_attn
      cudadiag diagnose verify_attn --shape streams=1,q_len=9,prefix=4096 --all
      cudadiag diagnose -P q=9 -- ./bench --q {q}
    """
    everything = options.pop("everything")

    def more(prepared: Prepared, setting: Setting) -> dict[str, Any]:
        refuse_observer("diagnose", setting)
        return {"all": everything, "in_sequence": in_sequence(prepared, setting)}

    ask = ask_about("diagnose", options, shape_text)
    with open_observing(ask, more, whole=shape_text is not None, resume=resume, store=store) as (session, progress):
        plan = plan_of(session.prepared.ask.search, session.prepared.sweep, session.prepared.choice.labels)
        follow(session, plan)
        progress.closed()
        history = session.controller.history
        code = print_diagnosis(plan, history, session.prepared.sources, run_info(session), as_json)
        if not as_json:
            say_run(session)
        found = plan.diagnosis(history)
        if found is not None:
            standing = {w.explanation.name: w.finding.status.value for w in found.weighed}
            session.note("concluded", strict_json({"explanations": standing, "sureness": found.sureness}))
        return ended(session, code)


def plan_of(search: Any, sweep: Sweep, labels: Sequence[str]) -> Diagnosing:
    """The plan as a run's ledger asks for it."""
    observer = search.get("setting", {}).get("observer", "blocking")
    return Diagnosing(about(search, sweep, observer, tuple(labels)), bool(search.get("all")))


def print_diagnosis(
    plan: Diagnosing, history: Sequence[Judged], sources: Sequence[str], info: RunInfo, as_json: bool
) -> int:
    """Print what follows from the probes, and give the exit code."""
    evidence = plan.about.evidence(history)
    code = _exit_code(plan, evidence, history)
    if as_json:
        click.echo(to_text(_document(evidence, history, info, code)))
    elif evidence is None:
        click.echo("\n".join(nothing_found_lines(plan.about, history)))
    else:
        lines = diagnosis_lines(evidence, diagnosis(evidence), cross_check(evidence.own), sources)
        click.echo("\n".join([*lines, *unfinished_lines(plan, history)]))
    return code


def _exit_code(plan: Diagnosing, evidence: Evidence | None, history: Sequence[Judged]) -> int:
    if evidence is not None and evidence.failing:
        return EXIT_FOUND
    complete = not plan.next(history).tasks if evidence is not None else plan.about.ran_all(history)
    return exit_code((judged.outcome for judged in history), complete=complete)


def _document(evidence: Evidence | None, history: Sequence[Judged], info: RunInfo, code: int) -> DiagnoseDocument:
    found = diagnosis(evidence) if evidence else None
    steps = {w.explanation.name: w.explanation.next_step(evidence) for w in found.weighed} if found and evidence else {}
    return DiagnoseDocument(
        document="diagnose",
        schema=DOCUMENT_VERSION,
        exit_code=code,
        info=info,
        subject=subject_part(evidence.subject) if evidence else None,
        cause=found.cause.explanation.name if found and found.cause else None,
        sureness=found.sureness if found else None,
        next_step=found.next_step if found else None,
        explanations=explanation_parts(found, steps) if found else [],
        agreement=agreement_part(cross_check(evidence.own)) if evidence else None,
        probes=[probe_document(judged) for judged in history],
    )
