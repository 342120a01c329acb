"""Which shape is in question where none is given: the first failing one of an earlier run of the same thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cudadiag.diagnose.experiments import PURPOSE
from cudadiag.diagnose.plans import SANITIZE
from cudadiag.diagnose.subject import Subject, index_of, of_answer, of_one_run
from cudadiag.errors import CudadiagError
from cudadiag.model import Sweep
from cudadiag.search import Settings
from cudadiag.session.judged import Judged
from cudadiag.session.judging import judging_from_json
from cudadiag.session.searching import Searching
from cudadiag.store.ledger import Ledger
from cudadiag.store.lines import RunLine

PURPOSES = ("run", "sweep", "bisect", "sanitize", "diagnose")


ALIKE = {"leaks": "--leaks", "check": "--no-check", "memory_model": "--memory"}
"""Settings that must be the same for a failure there to be one here, and the options that change them."""


def from_ledger(
    ledger: Ledger, sweep: Sweep, *, device: str, hashes: Mapping[str, str], program: Sequence[str] | None,
    alike: Mapping[str, Any],
) -> tuple[Subject | None, str]:  # fmt: skip
    """The failing shape of a run, as its probes are judged now; None, and why, where it has none that fits.

    Fits: the same sources (or the same command), the same kind of device, judged alike (`alike` has this run's
    settings of ALIKE), a shape of this sweep.
    """
    run = ledger.run
    if run.purpose not in PURPOSES:
        return None, f"the run {run.run_id} was made by `{run.purpose}`"
    before = list(run.settings.get("program") or ()) or None
    if before != (list(program) if program is not None else None) or dict(run.sources) != dict(hashes):
        return None, f"the run {run.run_id} is of another version of the case"
    if kind_of(run.device.get("labels", ())) != device:
        return None, f"the run {run.run_id} was made on another kind of device"
    other = next((option for key, option in ALIKE.items() if key in alike and _differs(run, key, alike[key])), None)
    if other is not None:
        return None, f"the run {run.run_id} was judged otherwise ({other})"
    try:
        judging = judging_from_json(run.settings.get("judging", {}))
    except CudadiagError as problem:
        return None, problem.message
    history = [judging.judged(line) for line in ledger.probes if line.purpose not in (PURPOSE, SANITIZE)]
    found = failing_of(run.sweep, history, f"the run {run.run_id}", run.purpose)
    if found is None:
        failed = "nothing failed in" if came_to_its_end(ledger) else "nothing failed before the end of"
        return None, f"{failed} the run {run.run_id}"
    if not came_to_its_end(ledger):  # the first one may be another, and no rule is settled
        found = replace(found, origin=f"a failing shape of the run {run.run_id}, which did not end", rules=())
    return _in_this_sweep(found, run.sweep, sweep)


def _differs(run: RunLine, key: str, now: Any) -> bool:
    """A run older than a setting was made without it."""
    return bool(run.settings.get(key, {"check": True, "memory_model": "exact"}.get(key, False)) != now)


def came_to_its_end(ledger: Ledger) -> bool:
    """Whether a run concluded, or ran every shape; it may have been interrupted, or killed."""
    kinds = [note.kind for note in ledger.notes]
    if kinds[-1:] == ["interrupted"]:
        return False
    if ledger.run.purpose in ("run", "sweep"):
        return {line.index for line in ledger.probes} >= set(range(len(ledger.run.sweep)))
    return "concluded" in kinds


def looked_for_it(ledger: Ledger) -> bool:
    """Whether a run has a failing shape of its own: `sanitize` and `diagnose` may have been given theirs."""
    run = ledger.run
    observing = run.purpose in ("sanitize", "diagnose")
    return run.purpose in PURPOSES and not (observing and (run.settings.get("search") or {}).get("subject"))


def failing_of(sweep: Sweep, history: Sequence[Judged], origin: str, purpose: str) -> Subject | None:
    """What failed in a run's probes."""
    if purpose == "run":
        return of_one_run(sweep, history, origin)
    answer = Searching(sweep, Settings(sequence=any(judged.line.sequence for judged in history))).answer(history)
    return of_answer(answer, sweep, history, origin)


def _in_this_sweep(found: Subject, before: Sweep, sweep: Sweep) -> tuple[Subject | None, str]:
    """The same with the indices that its shapes have now."""
    index = index_of(sweep, found.shape)
    sequence = [index_of(sweep, before.shape(i)) for i in found.sequence]
    if index is None or None in sequence:
        return None, f"{found.origin} is not in this sweep"
    known = tuple(i for i in sequence if i is not None)
    return Subject(found.shape, index, found.origin, known, found.rules), ""


def kind_of(labels: Any) -> str:
    """ "cuda", "emulator" or "none" of a ledger's device labels."""
    return str(next(iter(labels), "none")).partition(":")[0]
