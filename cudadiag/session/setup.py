"""From what the user asked to a run that can begin: case, devices, run folder, ledger, build, controller."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from cudadiag import __version__
from cudadiag.case import Case, from_command, load, parse_option
from cudadiag.case.expr import ExpressionError
from cudadiag.case.locate import find_case
from cudadiag.case.sources import source_files
from cudadiag.errors import UsageError
from cudadiag.evidence import Expectations
from cudadiag.model import Sweep
from cudadiag.session.ask import Ask, ask_from_json, resumed
from cudadiag.session.beforehand import check_beforehand
from cudadiag.session.bench import CaseBench, ProbeChoices
from cudadiag.session.building import build
from cudadiag.session.claims import claim
from cudadiag.session.clock import now
from cudadiag.session.controller import Controller
from cudadiag.session.devices import DeviceChoice, choose
from cudadiag.session.judging import Judging
from cudadiag.session.progress import Progress
from cudadiag.session.stop import Stop
from cudadiag.store.folders import Store, keep_probes
from cudadiag.store.ledger import LEDGER_NAME, Ledger, LedgerWriter, read_ledger
from cudadiag.store.lines import NoteLine, RunLine
from cudadiag.store.resume import refuse_if_different
from harness.guardian import Guardian

EMULATED_CAPABILITY = 80
FLAKY_SHARE = "flaky_share"
EMULATED_FLAKY_SHARE = 0.001  # it runs a kernel the same way each time; the case's own Python may not
KEEP_PROBES = 30  # runs of a case that keep what their probes left
TOOL_PACKAGES = ("nvidia-cuda-nvrtc", "cuda-bindings", "llvmlite", "nvidia-cuda-sanitizer-api")


@dataclass(frozen=True)
class Prepared:
    """What a run is about, before anything is started."""

    ask: Ask
    case: Case
    sweep: Sweep
    choice: DeviceChoice
    unmet: str | None
    judging: Judging
    notes: tuple[str, ...]

    @property
    def sources(self) -> list[str]:
        return [str(path) for path in source_files(self.case)]


@dataclass(frozen=True)
class Session:
    """A run under way."""

    prepared: Prepared
    run: RunLine
    folder: Path
    writer: LedgerWriter
    controller: Controller
    stop: Stop

    def note(self, kind: str, document: dict[str, Any]) -> None:
        """A line of the ledger that is no probe."""
        self.writer.append(NoteLine(kind, now(), document))


def prepare(ask: Ask) -> Prepared:
    """Load and check everything. Raises UsageError and Undecided; leaves nothing behind."""
    case, notes = _case(ask)
    choice = choose(ask.device, needs_device=case.needs_device)
    if choice.note:
        notes.append(choice.note)
    case = case.on_device(choice.kind)
    sweep = case.sweep
    observer = ask.observer or case.observer
    ask = dataclasses.replace(
        ask, observer=observer, leaks=ask.leaks or case.leaks, search=_search(ask.search, case, choice)
    )
    if ask.leaks and not _sees_leaks(ask, case, choice):
        raise UsageError(
            "leaks: only memcheck, and the emulated device, see memory that is never freed",
            hint="--observer memcheck, or cudadiag sanitize --leaks",
        )
    unmet = _unmet(case, choice)
    if unmet is None:
        check_beforehand(case)
    return Prepared(ask, case, sweep, choice, unmet, _judging(case, sweep, ask, unmet), tuple(notes))


def _search(search: Mapping[str, Any], case: Case, choice: DeviceChoice) -> Mapping[str, Any]:
    """The choices of a search, with what is known of the device before anything ran. Ledgers of earlier versions do
    not say it, and are gone on with as they were begun."""
    same_each_time = choice.kind == "emulator" and case.target.kind == "kernel"
    return {**search, FLAKY_SHARE: EMULATED_FLAKY_SHARE} if same_each_time and FLAKY_SHARE in search else search


def _sees_leaks(ask: Ask, case: Case, choice: DeviceChoice) -> bool:
    emulated = choice.kind == "emulator" and case.target.kind == "kernel"
    return emulated or ask.observer == "memcheck" or ask.purpose == "sanitize"


def _case(ask: Ask) -> tuple[Case, list[str]]:
    if ask.program is not None:
        if ask.case is not None:
            raise UsageError(f"both a case ({ask.case}) and a program after -- are given: take one")
        return _program_case(ask, ask.program), []
    if ask.case is None:
        raise UsageError(
            "nothing to run: give a case, or a program after --",
            hint="cudadiag bisect verify_attn, or cudadiag bisect -P n=1..64 -- ./bench {n}",
        )
    for option, value in (("--derive", ask.derive), ("--success", ask.success)):
        if value:
            raise UsageError(f"{option} is for a program after --: a case says it in its file")
    found = find_case(ask.case)
    case = load(found.path)
    if ask.params:
        case = case.with_axes([parse_option(param) for param in ask.params])
    for text in ask.where:
        case = _with_where(case, text)
    return case, [found.described]


def _program_case(ask: Ask, program: tuple[str, ...]) -> Case:
    derive = {}
    for text in ask.derive:
        name, equals, expression = text.partition("=")
        if not equals or not expression.strip():
            raise UsageError(f"--derive {text}: write --derive name=expression, such as --derive total=m*n")
        derive[name.strip()] = expression
    return from_command(ask.params, program, cwd=ask.cwd, where=ask.where, derive=derive, success=ask.success)


def _with_where(case: Case, text: str) -> Case:
    try:
        return case.with_where(text)
    except ExpressionError as error:
        raise UsageError(f"--where: {error.pointed()}") from None


def _unmet(case: Case, choice: DeviceChoice) -> str | None:
    """Why the case's `requires` does not hold on one of the devices; None where it holds, or nobody can say."""
    if choice.kind == "emulator":
        return case.requires.unmet(device="emulator", capability=EMULATED_CAPABILITY)
    for gpu in choice.gpus:
        reason = case.requires.unmet(device=gpu.label, capability=gpu.capability, free_bytes=gpu.free_bytes)
        if reason is not None:
            return reason
    return None if choice.gpus else case.requires.unmet(device="none")


def _judging(case: Case, sweep: Sweep, ask: Ask, unmet: str | None) -> Judging:
    target = case.target
    compared = getattr(target, "reference", None) is not None
    base = Expectations(
        target=target.kind,
        observer=ask.observer or case.observer,
        check=ask.check,
        compared=compared,
        success=case.success,
        leaks=ask.leaks,
        unmet=unmet,
    )
    return Judging(base, _asked_bytes(sweep))


def _asked_bytes(sweep: Sweep) -> dict[int, int]:
    """Device memory that each shape asks for by itself: the sum of its buffers."""
    columns = [column for name, column in sweep.derived.items() if name.endswith(".bytes")]
    sums = [sum(int(value) for value in row) for row in zip(*columns, strict=True)]
    return dict(enumerate(sums))


@contextmanager
def begin(prepared: Prepared, store: Store, command_line: tuple[str, ...], progress: Progress) -> Iterator[Session]:
    """A new run of what was prepared."""
    lost = keep_probes(store.runs(), prepared.case.name, KEEP_PROBES)
    if lost:
        progress.note(f"the files of the probes of {len(lost)} old runs are deleted, their ledgers stay")
    folder = store.new_run(prepared.case.name, datetime.now(UTC))
    run = _run_line(prepared, folder.name, command_line)
    writer = LedgerWriter.create(folder / LEDGER_NAME, run)
    with _session(prepared, run, writer, progress, ()) as session:
        yield session


@contextmanager
def go_on(prepared: Prepared, ledger: Ledger, command_line: tuple[str, ...], progress: Progress) -> Iterator[Session]:
    """A run taken up again. Raises UsageError where the case or its sources are no longer what they were."""
    today = _run_line(prepared, ledger.run.run_id, command_line)
    refuse_if_different(ledger.run, today.case_hash, today.sources, prepared.sweep)
    if list(ledger.run.device.get("labels", ())) != list(prepared.choice.labels):
        raise UsageError(f"cannot go on with the run {ledger.run.run_id}: it ran on {ledger.run.device.get('labels')}")
    prepared = dataclasses.replace(prepared, sweep=ledger.run.sweep)  # the same, but for what older ledgers lack
    writer = LedgerWriter.reopen(ledger)
    if ledger.torn:
        progress.note(f"the ledger's last line was cut off; {len(ledger.torn)} bytes are put aside in ledger.torn")
    writer.append(NoteLine("resumed", now(), {"command_line": list(command_line), "version": __version__}))
    with _session(prepared, ledger.run, writer, progress, ledger.probes) as session:
        yield session


def resume_ask(store: Store, word: str, given: Ask, explicit: frozenset[str]) -> tuple[Ask, Ledger]:
    """What an earlier run asked for, and its ledger."""
    ledger = read_ledger(store.find(word).ledger)
    before = ask_from_json(ledger.run.settings, given.purpose)
    return resumed(before, given, explicit), ledger


@contextmanager
def _session(
    prepared: Prepared, run: RunLine, writer: LedgerWriter, progress: Progress, before: Any
) -> Iterator[Session]:
    folder = writer.path.parent
    with ExitStack() as stack:
        stack.enter_context(writer)
        stack.callback(progress.closed)
        stop = stack.enter_context(Stop())
        stack.enter_context(claim(prepared.choice.labels, prepared.ask.wait_s))
        guardian = stack.enter_context(Guardian())
        for note in prepared.notes:
            progress.note(note)
        build_dir = folder / "build"
        if prepared.unmet is None:
            build(prepared.case, build_dir, guardian, stop, progress)
        bench = CaseBench(
            case=prepared.case,
            choices=_choices(prepared.ask),
            slots=[label for label in prepared.choice.labels for _ in range(prepared.ask.jobs)],
            guardian=guardian,
            judging=prepared.judging,
            build_dir=build_dir,
            unmet=prepared.unmet,
        )
        controller = Controller(bench, writer, progress, stop, before)
        yield Session(prepared, run, folder, writer, controller, stop)


def _choices(ask: Ask) -> ProbeChoices:
    return ProbeChoices(ask.observer, ask.memory_model, ask.check, ask.leaks, ask.timing, ask.timeout_s)


def _run_line(prepared: Prepared, run_id: str, command_line: tuple[str, ...]) -> RunLine:
    case, ask, choice = prepared.case, prepared.ask, prepared.choice
    record = case.record()
    hashes = record.pop("hashes")
    given = {"program": ask.program, "where": ask.where, "derive": ask.derive, "success": ask.success}
    identity = {**record, "path": None, "given": given}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return RunLine(
        run_id=run_id,
        started=now(),
        version=__version__,
        command_line=command_line,
        cwd=ask.cwd,
        purpose=ask.purpose,
        case_name=case.name,
        case_path=None if case.path is None else str(case.path.resolve()),
        case_hash=digest,
        sources={str((case.folder / name).resolve()): value for name, value in hashes.items()},
        sweep=prepared.sweep,
        settings={**ask.to_json(), "judging": prepared.judging.to_json()},
        device={
            "word": ask.device,
            "labels": list(choice.labels),
            "gpus": [dataclasses.asdict(gpu) for gpu in choice.gpus],
            **({"driver": choice.driver} if choice.driver else {}),
        },
        tools=_tools() if case.needs_device else {},
    )


def _tools() -> dict[str, str]:
    found = {}
    for package in TOOL_PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
