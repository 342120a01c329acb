"""What `sanitize` and `diagnose` have in common: which shape, and where it can be run."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from cudadiag.cli.running import make_ask, open_session
from cudadiag.diagnose.crosscheck import Agreement, cross_check
from cudadiag.diagnose.experiments import Experiment, Setting
from cudadiag.diagnose.origin import ALIKE, PURPOSES, from_ledger, looked_for_it
from cudadiag.diagnose.plans import SANITIZE, About, Locating, Sanitizing
from cudadiag.diagnose.subject import Subject, given, subject_from_json
from cudadiag.diagnose.witness import Witness
from cudadiag.errors import Undecided, UsageError
from cudadiag.model import Sweep
from cudadiag.report.documents import RunInfo
from cudadiag.report.watch import watcher
from cudadiag.search import Answer
from cudadiag.session.ask import Ask
from cudadiag.session.beforehand import first_request
from cudadiag.session.judged import Judged
from cudadiag.session.judging import judging_from_json
from cudadiag.session.machine import Gpu
from cudadiag.session.progress import Progress
from cudadiag.session.setup import Prepared, Session, prepare
from cudadiag.store.folders import Store
from cudadiag.store.ledger import Ledger, read_ledger
from harness import sanitizer
from harness.disassembly import built_for

shape_option = click.option(
    "--shape",
    "shape_text",
    metavar="NAME=VALUE,...",
    help="The shape, in one word: --shape streams=1,q_len=9. The same as -P for each parameter.",
)


def shape_params(text: str | None) -> tuple[str, ...]:
    """`a=1,b=2` as `-P` options. Raises UsageError for a part that is no assignment."""
    parts = [part.strip() for part in text.split(",")] if text else []
    for part in parts:
        if not part.partition("=")[2] or part.startswith("="):
            raise UsageError(f"--shape {text}: {part!r} is not NAME=VALUE", hint="--shape streams=1,q_len=9")
    return tuple(parts)


def setting_of(prepared: Prepared) -> Setting:
    """Where this run's probes run, and what there is for them."""
    choice, case, ask = prepared.choice, prepared.case, prepared.ask
    observer = ask.observer or case.observer
    emulates = choice.kind != "emulator" or case.needs_device  # other programs run as they are
    return Setting(
        device=choice.kind if emulates else "none",
        target=case.target.kind,
        memory_model=ask.memory_model,
        observer=observer,
        gpus=len(choice.gpus),
        gpus_here=choice.visible,
        troubles=_troubles(choice.gpus),
        tool_problem=_tool_problem() if choice.kind == "cuda" else None,
        can_sequence=case.can_sequence,
        capability=choice.gpus[0].capability if choice.gpus else None,
        driver=choice.driver,
        built_for=_built_for(prepared) if choice.kind == "cuda" else (),
    )


def refuse_observer(purpose: str, setting: Setting) -> None:
    """Raises Undecided where the observer that judges the shape cannot be had here."""
    problem = setting.problem(Experiment(setting.observer))
    if problem is not None and setting.observer not in ("plain", "blocking"):  # these two need nothing
        hint = "--observer blocking judges without it"
        raise Undecided(f"{purpose}: the shape is judged under {setting.observer}: {problem}", hint=hint)


def _troubles(gpus: Sequence[Gpu]) -> tuple[str, ...] | None:
    """What NVML counts against these GPUs; None where it tells nothing of one of them."""
    if not gpus or any(gpu.troubles is None for gpu in gpus):
        return None
    return tuple(f"{trouble} ({gpu.label})" for gpu in gpus for trouble in gpu.troubles or ())


def _built_for(prepared: Prepared) -> tuple[str, ...]:
    """The architectures a command's program holds code for, where it is there already."""
    if prepared.case.target.kind != "command":
        return ()
    request = first_request(prepared.case)
    found = shutil.which(request.target["argv"][0], path=f"{request.cwd or '.'}:{os.environ.get('PATH', '')}")
    program = Path(request.cwd or ".") / request.target["argv"][0]
    return built_for(program if program.is_file() else Path(found)) if program.is_file() or found else ()


def _tool_problem() -> str | None:
    try:
        sanitizer.find()
    except sanitizer.ToolMissing as problem:
        return str(problem)
    return None


def in_sequence(prepared: Prepared, setting: Setting) -> bool:
    """Whether the search begins with the whole sweep in one process."""
    return prepared.case.isolation == "sequence" and setting.can_sequence


def find_subject(prepared: Prepared, store: Path, whole: bool) -> tuple[Subject | None, str]:
    """The shape in question, or None and why the newest run did not give it ("" where there is no run). `whole`: the
    command line named a whole shape with --shape. Raises UsageError where that is not one."""
    sweep, case = prepared.sweep, prepared.case
    if len(sweep) == 1:
        return given(sweep, sweep.shape(0), "the shape given" if case.axes else "the only one"), ""
    if whole:
        case.shape({axis.name: axis.values[0] for axis in case.axes if len(axis.values) == 1})
    runs = reversed(Store(store.absolute()).runs())
    ledgers = (read_ledger(run.ledger) for run in runs if run.case_name == case.name and run.purpose in PURPOSES)
    ledger = next(filter(looked_for_it, ledgers), None)
    if ledger is None:
        return None, ""
    hashes = {str((case.folder / name).resolve()): value for name, value in case.hashes().items()}
    alike = {key: getattr(prepared.ask, key) for key in ALIKE}
    return from_ledger(
        ledger, sweep, device=prepared.choice.kind, hashes=hashes, program=prepared.ask.program, alike=alike
    )


def ask_about(purpose: str, options: Mapping[str, Any], shape_text: str | None) -> Ask:
    """The question a command line with --shape asks. Raises UsageError for a --shape that is none, or that names what
    -P names."""
    named = {part.partition("=")[0].strip() for part in options["params"]}
    twice = [part for part in shape_params(shape_text) if part.partition("=")[0].strip() in named]
    if twice:
        raise UsageError(f"--shape {twice[0]}: -P gives it too", hint="name a parameter once: by --shape or by -P")
    return make_ask(purpose, {**options, "params": (*options["params"], *shape_params(shape_text))})


@contextmanager
def open_observing(
    ask: Ask, more: Callable[[Prepared, Setting], Mapping[str, Any]], *, whole: bool, resume: str | None, store: Path
) -> Iterator[tuple[Session, Progress]]:
    """A run about one shape, which is found first where it can be. `more` gives what else its plan is made of, and may
    refuse by raising; a run that is resumed has both in its ledger."""
    why_not = ""
    if resume is not None and whole:
        raise UsageError("--resume takes the shape from the run: leave --shape out, or start anew")
    if resume is None:
        prepared = prepare(ask)
        setting = setting_of(prepared)
        wanted = more(prepared, setting)
        subject, why_not = find_subject(prepared, store, whole)
        ask = with_subject(ask, subject, setting, **wanted)
    with open_session(ask, resume=resume, store=store, watch=watcher) as (session, progress):
        if why_not:
            progress.note(f"{why_not}: searching")
        yield session, progress


def with_subject(ask: Ask, subject: Subject | None, setting: Setting, **more: Any) -> Ask:
    """The question as it goes into the ledger, so that it can be judged again without being asked again."""
    search = {
        "subject": subject.to_json() if subject else None,
        "setting": dataclasses.asdict(setting),
        "jobs": ask.jobs,
        **more,
    }
    return dataclasses.replace(ask, search=search)


def about(search: Mapping[str, Any], sweep: Sweep, locate_under: str, labels: tuple[str, ...]) -> About:
    """What a run is about, from its ledger's first line. Raises UsageError for another document."""
    try:
        names = {field.name for field in dataclasses.fields(Setting)}
        values = {name: value for name, value in search["setting"].items() if name in names}
        troubles = values.get("troubles")
        values["troubles"] = None if troubles is None else tuple(troubles)
        setting = Setting(**{**values, "built_for": tuple(values.get("built_for", ()))})
        subject = subject_from_json(search["subject"]) if search["subject"] else None
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise UsageError(f"the ledger does not say which shape it is about: {problem}") from None
    at_once = max(1, len(labels)) * max(1, int(search.get("jobs", 1)))
    locating = Locating(sweep, locate_under, bool(search.get("in_sequence")), at_once)
    return About(sweep, setting, subject, locating, labels)


def explain_observed(ledger: Ledger, info: RunInfo, as_json: bool) -> int:
    """The screen of a `sanitize` or `diagnose` run again, from its ledger, running nothing."""
    from cudadiag.cli import diagnose, sanitize

    run = ledger.run
    judging = judging_from_json(run.settings.get("judging", {}))
    history = [judging.judged(line) for line in ledger.probes]
    search, labels = run.settings.get("search", {}), tuple(run.device.get("labels", ()))
    if run.purpose == "diagnose":
        plan = diagnose.plan_of(search, run.sweep, labels)
        return diagnose.print_diagnosis(plan, history, list(run.sources), info, as_json)
    located = next((line.observer for line in ledger.probes if line.purpose != SANITIZE), "memcheck")
    seen = sanitize.plan_of(search, run.sweep, labels, located)
    return sanitize.print_agreement(seen, history, list(run.sources), info, as_json)


def ask_observers(session: Session, answer: Answer) -> None:
    """What `bisect` ends with: the shape found under compute-sanitizer. Nothing where that is not to be had, and on the
    emulated device, whose every probe says already what there is to say."""
    prepared = session.prepared
    if answer.first is None or prepared.choice.kind != "cuda" or session.stop.requested:
        return
    setting = setting_of(prepared)
    if setting.tool_problem is not None:
        return
    subject = Subject(prepared.sweep.shape(answer.first), None, "the shape found")
    locating = Locating(prepared.sweep, setting.observer)
    session.controller.follow(Sanitizing(About(prepared.sweep, setting, subject, locating, prepared.choice.labels)))


def asked_observers(answer: Answer, history: Sequence[Judged]) -> Agreement | None:
    """The agreement of the observers on the shape found; None where none but the search's own was asked."""
    if answer.first_shape is None or not any(judged.line.purpose == SANITIZE for judged in history):
        return None
    shape = dict(answer.first_shape)
    own = [j for j in history if dict(j.line.shape) == shape and not j.line.sequence]
    return cross_check(Witness(judged) for judged in own)
