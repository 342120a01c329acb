"""`cudadiag sanitize`: what a fault is and where it was caused, told by several observers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cudadiag.cli.observing import about, ask_about, in_sequence, open_observing, refuse_observer, shape_option
from cudadiag.cli.options import leaks_option, run_options, target_options
from cudadiag.cli.running import ended, follow, run_info, say_run
from cudadiag.diagnose.crosscheck import Agreement
from cudadiag.diagnose.documents import SanitizeDocument, agreement_part, subject_part
from cudadiag.diagnose.experiments import TOOLS, Experiment, Setting
from cudadiag.diagnose.plans import Sanitizing
from cudadiag.diagnose.report import nothing_found_lines, sanitize_lines, unfinished_lines
from cudadiag.errors import EXIT_UNDECIDED, Undecided
from cudadiag.model import Outcome, Sweep
from cudadiag.report.documents import DOCUMENT_VERSION, RunInfo, probe_document, to_text
from cudadiag.session.ending import exit_code
from cudadiag.session.judged import Judged
from cudadiag.session.setup import Prepared
from cudadiag.store.lines import strict_json

EMULATED_NOTE = (
    "the emulated device checks every memory access itself, whoever watches; "
    "races, reads of what was never written and barriers it does not check"
)


@click.command("sanitize")
@target_options
@leaks_option
@shape_option
@click.option("--all", "everything", is_flag=True, help="Every observer, also where memcheck already names the cause.")
@run_options
def command(
    store: Path, as_json: bool, resume: str | None, git_bisect: bool, shape_text: str | None, **options: Any
) -> int:
    """Run one shape under several observers and say what the fault is, where it was caused, and who agrees.

    The shape is the one given, else the first failing one of the newest run of this case, else it is searched for under
    memcheck. First plain, blocking and memcheck; the other tools and a core dump where memcheck names no cause. With
    --observer only that one. A pass under a tool never overrides a failure without it.

    \b
    Examples:
      cudadiag sanitize verify_attn
      cudadiag sanitize verify_attn --shape streams=1,q_len=9,prefix=4096
      cudadiag sanitize verify_attn --all --json
      cudadiag sanitize --observer racecheck -- ./bench --q 9
      cudadiag sanitize --leaks -- ./server --once
    """
    everything, chosen = options.pop("everything"), options["observer"]

    def more(prepared: Prepared, setting: Setting) -> dict[str, Any]:
        refuse_without_tool(setting, chosen)
        refuse_observer("sanitize", setting)
        return {"observer": chosen, "all": everything, "in_sequence": in_sequence(prepared, setting)}

    ask = ask_about("sanitize", options, shape_text)
    with open_observing(ask, more, whole=shape_text is not None, resume=resume, store=store) as (session, progress):
        now = session.prepared
        plan = plan_of(now.ask.search, now.sweep, now.choice.labels, locate_under(now))
        follow(session, plan)
        progress.closed()
        history = session.controller.history
        code = print_agreement(plan, history, now.sources, run_info(session), as_json)
        if not as_json:
            say_run(session)
        found = plan.agreement(history)
        if found is not None:
            session.note("concluded", strict_json({"outcome": found.outcome.value, "words": list(found.words)}))
        return ended(session, code)


def refuse_without_tool(setting: Setting, chosen: str | None) -> None:
    """Raises Undecided where what was asked for cannot be had here."""
    wanted = Experiment(chosen) if chosen else Experiment.MEMCHECK
    problem = setting.problem(wanted)
    if problem is None or (setting.device == "emulator" and chosen is None):
        return
    if chosen is None or wanted in TOOLS or wanted is Experiment.COREDUMP:
        hint = "--device emulator runs kernel cases under an exact memory checker on the CPU"
        raise Undecided(
            f"sanitize: {problem}", hint=hint if setting.target == "kernel" else "`cudadiag doctor` says more"
        )


def plan_of(search: Mapping[str, Any], sweep: Sweep, labels: Sequence[str], locate_under: str) -> Sanitizing:
    """The plan as a run's ledger asks for it."""
    chosen = search.get("observer")
    found = about(search, sweep, chosen or locate_under, tuple(labels))
    return Sanitizing(found, (chosen,) if chosen else None, bool(search.get("all")))


def locate_under(prepared: Prepared) -> str:
    """The observer of the search for a shape: the case's own tool, else memcheck."""
    if prepared.choice.kind != "cuda":
        return "blocking"
    return prepared.case.observer if prepared.case.observer in TOOLS else "memcheck"


def print_agreement(
    plan: Sanitizing, history: Sequence[Judged], sources: Sequence[str], info: RunInfo, as_json: bool
) -> int:
    """Print what the observers say together, and give the exit code."""
    subject, found = plan.about.subject_in(history), plan.agreement(history)
    code = _exit_code(plan, found, history)
    notes = _notes(plan)
    if as_json:
        document = SanitizeDocument(
            document="sanitize",
            schema=DOCUMENT_VERSION,
            exit_code=code,
            info=info,
            subject=subject_part(subject) if subject else None,
            agreement=agreement_part(found) if found else None,
            notes=notes,
            probes=[probe_document(judged) for judged in history],
        )
        click.echo(to_text(document))
    elif subject and found:
        lines = sanitize_lines(subject, found, sources, notes)
        click.echo("\n".join([*lines, *unfinished_lines(plan, history)]))
    else:
        click.echo("\n".join(nothing_found_lines(plan.about, history)))
    return code


def _exit_code(plan: Sanitizing, found: Agreement | None, history: Sequence[Judged]) -> int:
    if found is None:
        return exit_code((judged.outcome for judged in history), complete=plan.about.ran_all(history))
    if found.outcome is Outcome.UNRESOLVED:
        return EXIT_UNDECIDED
    return exit_code([found.outcome], complete=not plan.next(history).tasks)


def _notes(plan: Sanitizing) -> list[str]:
    setting = plan.about.setting
    return [EMULATED_NOTE] if setting.device == "emulator" and setting.memory_model == "exact" else []
