"""What the commands that run probes have in common: from click's options to a run under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cudadiag.cli.options import invocation
from cudadiag.errors import CudadiagError
from cudadiag.model import Sweep
from cudadiag.report.documents import RunInfo
from cudadiag.report.style import count_words
from cudadiag.session.ask import Ask
from cudadiag.session.plans import OneShape, UnlessHopeless, hopeless
from cudadiag.session.progress import Progress
from cudadiag.session.setup import Session, begin, go_on, prepare, resume_ask
from cudadiag.session.task import Plan
from cudadiag.store.folders import Store

_FIELDS = {
    "case": "case",
    "params": "params",
    "where": "where",
    "derive": "derive",
    "success": "success",
    "observer": "observer",
    "device": "device",
    "memory": "memory_model",
    "timeout_s": "timeout_s",
    "no_check": "check",
    "leaks": "leaks",
    "jobs": "jobs",
    "wait_s": "wait_s",
    "repeat": "repeat",
}
"""click's parameter names -> fields of Ask."""


def make_ask(purpose: str, options: Mapping[str, Any], search: Mapping[str, Any] | None = None) -> Ask:
    """The question a command line asks. `search` are the settings of its search."""
    return Ask(
        purpose=purpose,
        case=options["case"],
        program=invocation().program,
        params=tuple(options["params"]),
        where=tuple(options["where"]),
        derive=tuple(options["derive"]),
        success=options["success"],
        cwd=str(Path.cwd()),
        observer=options["observer"],
        device=options["device"],
        memory_model=options["memory"],
        timeout_s=options["timeout_s"],
        check=not options["no_check"],
        leaks=bool(options.get("leaks")),
        timing=purpose in ("run", "sweep"),
        repeat=options.get("repeat") or 1,
        jobs=options["jobs"] or 1,
        wait_s=options["wait_s"],
        search=dict(search or {}),
    )


def explicit_fields() -> frozenset[str]:
    """Fields of Ask that the command line names; for --resume, which takes the others from the run."""
    ctx = click.get_current_context()
    given = {field for name, field in _FIELDS.items() if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    search = [n for n in SEARCH_OPTIONS if ctx.get_parameter_source(n) is ParameterSource.COMMANDLINE]
    if search:
        given.add("search")
    if invocation().program is not None:
        given.add("program")
    return frozenset(given)


SEARCH_OPTIONS = ("strategy", "prove", "seed", "confidence", "max_probes", "sequence", "partial_ok")


@contextmanager
def open_session(
    ask: Ask, *, resume: str | None, store: Path, watch: Callable[[Sweep], Progress]
) -> Iterator[tuple[Session, Progress]]:
    """A run that is new, or taken up again. Everything that can be wrong with the question is told before it begins."""
    command_line = invocation().command_line
    kept = Store(store.absolute())
    ledger = None
    if resume is not None:
        ask, ledger = resume_ask(kept, resume, ask, explicit_fields())
    prepared = prepare(ask)
    progress = watch(prepared.sweep)
    try:
        if ledger is not None:
            opened = go_on(prepared, ledger, command_line, progress)
        else:
            opened = begin(prepared, kept, command_line, progress)
        with opened as session:
            try:
                yield session, progress
            except CudadiagError:
                progress.closed()
                _tell_what_is_kept(session)
                raise
    finally:
        progress.closed()


def run_info(session: Session) -> RunInfo:
    """The run as documents name it."""
    run = session.run
    settings = {k: v for k, v in run.settings.items() if k != "judging"}
    interrupted = session.stop.requested
    return RunInfo(run.run_id, str(session.folder), run.case_name, run.case_path, run.device, settings, interrupted)


def follow(session: Session, plan: Plan) -> None:
    """Run a plan; where the case's requirements do not hold, one probe says so."""
    prepared = session.prepared
    if prepared.unmet is None:
        session.controller.follow(UnlessHopeless(plan))
    else:
        session.controller.follow(OneShape(prepared.sweep.shape(0), 0))


def say_run(session: Session, *lines: str) -> None:
    """The end of a report, for people: `lines`, why the run ended early where nothing could be learnt, its folder."""
    reason = session.prepared.unmet or hopeless(session.controller.history)
    given_up = [] if reason is None else [f"cudadiag: given up: {reason}"]
    click.echo("\n".join([*lines, *given_up, f"run: {session.folder}"]), err=True)


def _tell_what_is_kept(session: Session) -> None:
    """A run that a wrong case or a full disk ends in its middle has learnt something all the same."""
    done = len(session.controller.history)
    if done:
        said = f"{_finished_words(done)} kept; `cudadiag explain {session.run.run_id}` answers from them"
        click.echo(f"cudadiag: ended early: {said}", err=True)


def _finished_words(count: int) -> str:
    return f"{count_words(count, 'finished probe')} {'is' if count == 1 else 'are'}"


def ended(session: Session, code: int) -> int:
    """The exit code of a run: its own, or the signal's where the user stopped it. Written down in the ledger."""
    if session.stop.requested:
        session.note("interrupted", {"signal": session.stop.signal})
        click.echo(
            f"cudadiag: stopped; {_finished_words(len(session.controller.history))} kept in {session.folder}\n"
            f"  go on with: cudadiag {session.run.purpose} --resume {session.run.run_id}",
            err=True,
        )
        return session.stop.exit_code
    return code
