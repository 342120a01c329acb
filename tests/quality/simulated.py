"""Simulated kernels: a sweep with a true failing rule, and a controller that runs the search against it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from restricted import Condition, Refused

from cudadiag.model import Axis, Outcome, Sweep
from cudadiag.search import Answer, Observation, Probe, Settings, answer, next_probes

STATES = {"first_in_process", "earlier"}
LIMIT = 20_000  # processes after which a search counts as running away


@dataclass(frozen=True)
class Kernel:
    """One entry of a benchmark file. `outcomes` are tried in order; `rate` is the chance that a failing shape fails
    in one fresh process. A process that faults or hangs is over; after `wrong` or `skipped` it goes on."""

    name: str
    sweep: Sweep
    outcomes: tuple[tuple[Condition, Outcome], ...]
    rate: float = 1.0
    stateful: bool = False
    shapes: list[dict[str, Any]] = field(default_factory=list, repr=False, compare=False)

    @cached_property
    def truth(self) -> tuple[str, ...]:
        """The outcome of every shape run alone, where it is not by chance."""
        return tuple(self.outcome(i, ()).value for i in range(len(self.sweep)))

    @property
    def first(self) -> int | None:
        return next((i for i, o in enumerate(self.truth) if o != "pass"), None)

    def outcome(self, index: int, earlier: Sequence[int]) -> Outcome:
        """What the shape does after `earlier` ran in the same process."""
        shape = self.shapes[index]
        env: Mapping[str, Any] = shape
        if self.stateful:
            env = {**shape, "first_in_process": not earlier, "earlier": [self.shapes[e] for e in earlier]}
        return next((outcome for condition, outcome in self.outcomes if condition(env)), Outcome.PASS)


def load(path: Path) -> list[Kernel]:
    """The entries of a file of the form of rules.yaml. Raises Refused with the entry's name where one cannot be
    used."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    entries = data.get("rules") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        raise Refused(f"{path}: a list of rules is wanted, under `rules:`")
    kernels = []
    for number, entry in enumerate(entries):
        try:
            made = kernel(entry)
            if not made.truth:
                raise ValueError("no legal shape")
            kernels.append(made)
        except (KeyError, TypeError, ValueError, AttributeError, Refused) as error:
            name = entry.get("id", number) if isinstance(entry, dict) else number
            raise Refused(f"{path}: rule {name}: {type(error).__name__}: {error}") from error
    return kernels


def kernel(entry: Mapping[str, Any]) -> Kernel:
    """A kernel from `axes`, `fails` (and `outcome`) or `outcomes`, and optionally `where`, `derive`, `constants`,
    `rate`."""
    axes = tuple(Axis(name, tuple(values)) for name, values in entry["axes"].items())
    names = [axis.name for axis in axes]
    where = entry.get("where", [])
    legal = [Condition(str(w)) for w in (where if isinstance(where, list) else [where])]
    shapes = [s for s in product(*(a.values for a in axes)) if all(w(dict(zip(names, s, strict=True))) for w in legal)]
    constants = entry.get("constants", {})
    dicts = [constants | dict(zip(names, s, strict=True)) for s in shapes]
    derived = {}
    for name, text in entry.get("derive", {}).items():
        quantity = Condition(str(text))
        derived[name] = tuple(quantity.value(d) for d in dicts)
        dicts = [d | {name: value} for d, value in zip(dicts, derived[name], strict=True)]
    rules = entry.get("outcomes") or [entry]
    outcomes = tuple((Condition(str(r["fails"])), Outcome(r.get("outcome", "fault"))) for r in rules)
    used = frozenset().union(*(c.names for c, _ in outcomes))
    return Kernel(
        name=str(entry.get("id", "unnamed")),
        sweep=Sweep(axes, tuple(shapes), derived, constants),
        outcomes=outcomes,
        rate=float(entry.get("rate", 1)),
        stateful=bool(used & STATES),
        shapes=dicts,
    )


class RunAway(Exception):
    """The search asked for more processes than there can be a reason for."""


def run_probe(subject: Kernel, probe: Probe, chance: random.Random) -> list[Observation]:
    """One process: the shape alone, or the sequence until it dies."""
    results: list[tuple[Outcome, str | None]] = []
    sequence = probe.sequence or (probe.shape,)
    for position, index in enumerate(sequence):
        outcome = subject.outcome(index, sequence[:position])
        if outcome.is_failure and chance.random() >= subject.rate:
            outcome = Outcome.PASS
        results.append((outcome, None))
        if outcome in (Outcome.FAULT, Outcome.HANG):
            break
    if probe.sequence:
        return probe.observed_sequence(results)
    return [probe.observed(results[0][0])]


def search(subject: Kernel, settings: Settings, chance_seed: int = 0) -> tuple[Answer, list[Observation]]:
    """Run a search to its end. Raises RunAway beyond LIMIT processes."""
    chance = random.Random(chance_seed)
    seen: list[Observation] = []
    while batch := next_probes(subject.sweep, seen, settings):
        for probe in batch.probes:
            for _ in range(probe.repeat):
                seen += run_probe(subject, probe, chance)
        if len(seen) > LIMIT:
            raise RunAway(f"{subject.name}: {len(seen)} observations and still asking")
    return answer(subject.sweep, seen, settings), seen
