"""The cases of a gate, loaded, checked and planned before anything is started."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cudadiag.case import Case, load
from cudadiag.case.locate import Found, cases_below, find_case
from cudadiag.case.shapes import constants
from cudadiag.case.sources import source_files
from cudadiag.errors import CudadiagError, Undecided, UsageError
from cudadiag.gate.ask import GateAsk
from cudadiag.gate.baseline import Baseline
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.past import look_back
from cudadiag.gate.planning import DEFAULT_PROBE_S, in_shard
from cudadiag.gate.selection import choose
from cudadiag.session.devices import choose as choose_device
from cudadiag.session.setup import EMULATED_CAPABILITY, Prepared, prepare
from cudadiag.store.folders import RunEntry, Store

FOLDER = "cases"
NO_FALLBACK = "there is no NVIDIA driver, and the gate takes no other device by itself"


class WrongCases(UsageError):
    """Several wrong case files, each with its places."""

    def __init__(self, problems: Sequence[CudadiagError]) -> None:
        super().__init__("\n".join(p.message for p in problems), hint=problems[0].hint)
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Candidate:
    """A case of the gate. `prepared` None: it cannot be run here, and `run` says why."""

    run: CaseRun
    prepared: Prepared | None = None


def gather(ask: GateAsk, store: Store, baseline: Baseline) -> list[Candidate]:
    """Every case with the shapes chosen for this shard. Raises UsageError: a wrong case, a wrong option, no case."""
    found = find(ask.cases)
    loaded = _load(found)
    names = Counter(case.name for case in loaded)
    runs = store.runs()
    candidates = []
    for place, case in zip(found, loaded, strict=True):
        name = case.name if names[case.name] == 1 else f"{place.group}/{case.name}"
        candidates.append(_candidate(name, place.path, case, ask, runs, baseline))
    _check_device(ask, loaded)
    return candidates


def find(words: Sequence[str]) -> list[Found]:
    """The case files meant. Raises UsageError where there are none."""
    if words:
        found = [place for word in words for place in _named(word)]
        return list({place.path.resolve(): place for place in found}.values())
    below = cases_below(Path(FOLDER)) if Path(FOLDER).is_dir() else []
    if not below:
        raise UsageError("no cases: there are none below ./cases", hint="name them, or write one: `cudadiag init`")
    return below


def _named(word: str) -> list[Found]:
    path = Path(word)
    if not path.is_dir():
        return [find_case(word)]
    below = cases_below(path)
    if not below:
        raise UsageError(f"no cases below {word}")
    return below


def _load(found: Sequence[Found]) -> list[Case]:
    loaded, problems = [], []
    for place in found:
        try:
            case = load(place.path)
            len(case.sweep)
            loaded.append(case)
        except UsageError as problem:
            problems.append(problem)
    if problems:
        raise WrongCases(problems)
    return loaded


def _check_device(ask: GateAsk, cases: Sequence[Case]) -> None:
    """A wrong --device word is wrong use also where no case got as far as using it."""
    try:
        choose_device(ask.device, needs_device=any(case.needs_device for case in cases))
    except Undecided:
        pass  # said case by case


def _candidate(name: str, path: Path, case: Case, ask: GateAsk, runs: list[RunEntry], baseline: Baseline) -> Candidate:
    run = CaseRun(name, str(path), case.title, sweep=case.sweep, left_out=case.gate.leave_out)
    if run.left_out is not None:
        return Candidate(run)
    try:
        prepared = prepare(ask.of_case(str(path), case.needs_device))
        if ask.device == "auto" and prepared.choice.kind != "cuda":
            hint = "--device emulator" if case.needs_device else "--device none, or emulator"
            raise Undecided(NO_FALLBACK, hint=f"{hint} says that this is meant")
    except Undecided as problem:
        return Candidate(dataclasses.replace(run, problem=words(problem)))
    case = prepared.case
    run = dataclasses.replace(run, sweep=case.sweep, fixed=constants(case), device=prepared.choice.labels[0])
    if prepared.unmet is not None:
        key = "left_out" if _declared(prepared) else "problem"
        return Candidate(dataclasses.replace(run, **{key: prepared.unmet}))  # type: ignore[arg-type]
    return Candidate(_planned(run, case, ask, runs, baseline), prepared)


def _planned(run: CaseRun, case: Case, ask: GateAsk, runs: list[RunEntry], baseline: Baseline) -> CaseRun:
    past = look_back(case, runs)
    covers = {entry.place: run.covered(entry) for entry in run.entries(baseline)}
    cost_s = past.probe_s or DEFAULT_PROBE_S
    chosen = choose(case, list(covers.values()), past.indices(case), past.changed)
    run = dataclasses.replace(
        run,
        chosen=tuple(dataclasses.replace(choice, cost_s=cost_s) for choice in chosen),
        repeat=case.gate.repeat or ask.repeat,
        sources=tuple(str(path) for path in source_files(case)),
        covers=covers,
        changed=past.changed,
    )
    return in_shard(run, ask.shard, baseline)


def _declared(prepared: Prepared) -> bool:
    """Whether the case says itself that it is not for this kind of device; too little free memory is no such word."""
    requires = dataclasses.replace(prepared.case.requires, memory_bytes=None)
    choice = prepared.choice
    if choice.gpus:
        return any(requires.unmet(device=gpu.label, capability=gpu.capability) for gpu in choice.gpus)
    capability = EMULATED_CAPABILITY if choice.kind == "emulator" else None
    return requires.unmet(device=choice.kind, capability=capability) is not None


def words(problem: CudadiagError) -> str:
    """A problem with its hint, on one line."""
    text = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
    return " ".join(text.split())
