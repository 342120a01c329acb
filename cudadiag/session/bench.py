"""The joint to the case and the harness: a task becomes a request, the request is run, its line is judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from cudadiag.case import Case
from cudadiag.evidence import to_json
from cudadiag.session.disassembling import with_instructions
from cudadiag.session.judged import Judged
from cudadiag.session.judging import Judging
from cudadiag.session.task import Task
from cudadiag.store.lines import ProbeLine
from harness.guardian import Guardian
from harness.launcher import run_probe
from harness.records import ProbeFacts, ProbeRequest

UNOPTIMISED = "--ptxas-options=-O0"


@dataclass(frozen=True)
class ProbeChoices:
    """How every probe of a run is made. `observer` None: the case's own."""

    observer: str | None = None
    memory_model: str = "exact"
    check: bool = True
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
        shape = [self.case.sweep.shape(index) for index in task.sequence] if task.sequence else task.shape
        request = self.case.request(
            shape,
            folder=folder,
            observer=task.observer or self.choices.observer,
            device=task.device or slot,
            memory_model=self.choices.memory_model,
            check=self.choices.check,
            timing=self.choices.timing,
            timeout_s=self._timeout_s(task),
            build_dir=self.build_dir,
        )
        return _unoptimised(request) if task.unoptimised else request

    def _timeout_s(self, task: Task) -> float | None:
        """The limit is meant for one shape: a process that runs several has that much for each."""
        if not task.sequence:
            return self.choices.timeout_s
        return len(task.sequence) * (self.choices.timeout_s or self.case.limits.timeout_s)

    def run(self, request: ProbeRequest, stop: Event) -> ProbeFacts:
        if self.unmet is not None:
            return ProbeFacts(start_error=self.unmet, folder=request.folder)
        return run_probe(request, self.guardian, stop.is_set)

    def read(self, facts: ProbeFacts) -> Mapping[str, Any]:
        return to_json(with_instructions(self.judging.reading(facts), facts.core))

    def judge(self, line: ProbeLine) -> Judged:
        return self.judging.judged(line)


def _unoptimised(request: ProbeRequest) -> ProbeRequest:
    """The same with NVRTC told not to optimise the machine code."""
    target = dict(request.target)
    parts: list[dict[str, Any]] = [dict(step) for step in target.get("steps", ())] or [target]
    for part in parts:
        part["kernels"] = [
            {**kernel, "options": [*kernel.get("options", ()), UNOPTIMISED]} for kernel in part.get("kernels", ())
        ]
    if "steps" in target:
        target["steps"] = parts
    return dataclasses.replace(request, target=target)
