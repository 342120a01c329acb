"""The joint to the case and the harness: a task becomes a request, the request is run, its line is judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from threading import Event
from typing import Any

from cudadiag.case import Case
from cudadiag.case.problems import CaseError
from cudadiag.evidence import to_json
from cudadiag.model import Shape
from cudadiag.session.disassembling import with_instructions
from cudadiag.session.judged import Judged
from cudadiag.session.judging import Judging
from cudadiag.session.second_opinion import with_opinion
from cudadiag.session.task import Build, Task
from cudadiag.store.lines import ProbeLine
from harness.guardian import Guardian
from harness.launcher import run_probe
from harness.records import ProbeFacts, ProbeRequest

REFUSED = "refused"
"""Key of a target that is not to be started: an expression of the case fails at its shape; the value says where."""
UNOPTIMISED = "--device-debug"
"""Of NVRTC: no optimisation, neither on the way to PTX nor from there to machine code."""
BY_DRIVER = {"CUDA_FORCE_PTX_JIT": "1", "CUDA_CACHE_DISABLE": "1"}
"""The driver then takes a program's PTX and not its machine code, and compiles it anew."""


@dataclass(frozen=True)
class ProbeChoices:
    """How every probe of a run is made. `observer` None: the case's own."""

    observer: str | None = None
    memory_model: str = "exact"
    check: bool = True
    leaks: bool = False
    timing: bool = False
    timeout_s: float | None = None


@dataclass(frozen=True)
class CaseBench:
    """Runs a case's shapes under the guardian. `unmet`: why the case's `requires` does not hold here; then nothing is
    started and every probe says so."""

    case: Case
    choices: ProbeChoices
    slots: Sequence[str]
    guardian: Guardian
    judging: Judging
    build_dir: Path
    unmet: str | None = None

    def request(self, task: Task, slot: str, folder: Path) -> ProbeRequest:
        """Where an expression of the case fails at a shape, only that shape cannot be run: a process that runs several
        ends before it, and one that would begin with it is not started."""
        shapes: list[Shape] = [self.case.sweep.shape(index) for index in task.sequence] or [task.shape]
        try:
            return self._request(task, slot, folder, shapes)
        except CaseError as problem:
            before = self._requestable(task, slot, folder, shapes)
            if before:
                return self._request(task, slot, folder, before)
            reason = problem if len(shapes) == 1 else self._problem(task, slot, folder, shapes[0]) or problem
            return self._refused(task, slot, folder, reason.message)

    def _requestable(self, task: Task, slot: str, folder: Path, shapes: Sequence[Shape]) -> list[Shape]:
        """The shapes before the first at which an expression fails."""
        good = takewhile(lambda shape: self._problem(task, slot, folder, shape) is None, shapes)
        return list(good)

    def _problem(self, task: Task, slot: str, folder: Path, shape: Shape) -> CaseError | None:
        try:
            self._request(task, slot, folder, [shape])
        except CaseError as problem:
            return problem
        return None

    def _refused(self, task: Task, slot: str, folder: Path, why: str) -> ProbeRequest:
        return ProbeRequest(
            target={"kind": self.case.target.kind, REFUSED: why},
            folder=str(folder),
            observer=task.observer or self.choices.observer or self.case.observer,
            device=task.device or slot,
            memory_model=self.choices.memory_model,
        )

    def _request(self, task: Task, slot: str, folder: Path, shapes: Sequence[Shape]) -> ProbeRequest:
        request = self.case.request(
            shapes if task.sequence else shapes[0],
            folder=folder,
            observer=task.observer or self.choices.observer,
            device=task.device or slot,
            memory_model=self.choices.memory_model,
            check=self.choices.check,
            leak_check=self.choices.leaks,
            timing=self.choices.timing,
            timeout_s=self._timeout_s(task),
            build_dir=self.build_dir,
        )
        return _rebuilt(request, task.build)

    def _timeout_s(self, task: Task) -> float | None:
        """The limit is meant for one shape: a process that runs several has that much for each."""
        if not task.sequence:
            return self.choices.timeout_s
        return len(task.sequence) * (self.choices.timeout_s or self.case.limits.timeout_s)

    def run(self, request: ProbeRequest, stop: Event) -> ProbeFacts:
        if self.unmet is not None:
            return ProbeFacts(start_error=self.unmet, folder=request.folder)
        if REFUSED in request.target:
            return ProbeFacts(start_error=request.target[REFUSED], folder=request.folder)
        return run_probe(request, self.guardian, stop.is_set)

    def read(self, facts: ProbeFacts) -> Mapping[str, Any]:
        reading = with_instructions(self.judging.reading(facts), facts.core)
        return to_json(with_opinion(reading, facts.core))

    def judge(self, line: ProbeLine) -> Judged:
        return self.judging.judged(line)


def _rebuilt(request: ProbeRequest, build: Build) -> ProbeRequest:
    """The same with its machine code made in another way."""
    match build:
        case Build.USUAL:
            return request
        case Build.UNOPTIMISED:
            return _unoptimised(request)
        case Build.BY_DRIVER:
            target = request.target
            if target["kind"] == "kernel":
                target = {**target, "compiler": "driver"}
            return dataclasses.replace(request, target=target, env={**request.env, **BY_DRIVER})


def _unoptimised(request: ProbeRequest) -> ProbeRequest:
    """The same with NVRTC told not to optimise. A planted fault is one of the usual machine code: it is not in this."""
    target = {key: value for key, value in request.target.items() if key != "plant"}
    parts: list[dict[str, Any]] = [dict(step) for step in target.get("steps", ())] or [target]
    for part in parts:
        part["kernels"] = [
            {**kernel, "options": [*kernel.get("options", ()), UNOPTIMISED]} for kernel in part.get("kernels", ())
        ]
    if "steps" in target:
        target["steps"] = parts
    return dataclasses.replace(request, target=target)
