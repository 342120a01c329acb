"""Simulated probes for the gate's pure part, and a repository of cases for its real one."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import io
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cudadiag.cli.main import run_cli
from cudadiag.gate.baseline import Baseline, parse_baseline
from cudadiag.gate.caserun import CaseRun, Chosen
from cudadiag.gate.decide import decide, exit_code
from cudadiag.gate.finding import Finding
from cudadiag.gate.plan import GatePlan
from cudadiag.gate.seen import Seen, from_judged
from cudadiag.gate.status import Status
from cudadiag.model import Axis, Caused, Fault, FaultKind, Outcome, Sweep, Verdict
from cudadiag.session.judged import Judged
from cudadiag.session.task import Task
from cudadiag.store.lines import ProbeLine
from harness.records import ProbeFacts

TODAY = datetime.date(2026, 6, 1)
SWEEP = Sweep((Axis("n", tuple(range(10))),), tuple((n,) for n in range(10)))
PASS = Verdict(Outcome.PASS, "", proof="finished")
UNRESOLVED = Verdict(Outcome.UNRESOLVED, "no device")
HANG = Verdict(Outcome.HANG, "still running after 30 s")


def crash(kernel: str | None = "attn", kind: FaultKind = FaultKind.OUT_OF_BOUNDS, line: int | None = 41) -> Verdict:
    """A fault in a kernel."""
    caused = Caused(kernel=kernel, file="attn.cu", line=line, access="write", space="global") if kernel else None
    return Verdict(Outcome.FAULT, f"{kind.value} in {kernel}", Fault(kind, caused=caused))


def judged(task: Task, verdict: Verdict, number: int) -> Judged:
    line = ProbeLine(
        number=number,
        shape=task.shape,
        index=task.index,
        purpose=task.purpose,
        observer="blocking",
        device="none",
        memory_model="exact",
        repeat=0,
        started="",
        facts=ProbeFacts(exit_code=0, wall_s=0.1),
    )
    return Judged(line, verdict)


def seen(index: int, verdict: Verdict, sweep: Sweep = SWEEP) -> Seen:
    found = from_judged(judged(Task(sweep.shape(index), index, "gate"), verdict, 1))
    assert found is not None
    return found


def case_run(*indices: int, name: str = "c", repeat: int = 1, sweep: Sweep = SWEEP, **more: object) -> CaseRun:
    chosen = tuple(Chosen(index, ("smoke",), 1) for index in indices)
    return CaseRun(name, f"cases/{name}.yaml", sweep=sweep, chosen=chosen, repeat=repeat, **more)  # type: ignore[arg-type]


def known(where: str = "rule: n >= 5", signature: str = "v1/fault/memory-access/attn", more: str = "") -> Baseline:
    text = f"""\
version: 1
known:
  - case: c
    {where}
    signature: {signature}
    reason: scratch too small
    owner: mb
    issue: https://example.org/7
    expires: 2027-01-01
    {more}
"""
    return parse_baseline(text, Path("baseline.yaml"))


def simulate(run: CaseRun, baseline: Baseline, outcome: Callable[[int], Verdict]) -> tuple[CaseRun, list[Judged]]:
    """The plan followed to its end, each process answered by `outcome`."""
    plan = GatePlan(run, baseline)
    history: list[Judged] = []
    while tasks := plan.next(history).tasks:
        for task in tasks:
            assert task.index is not None
            history.append(judged(task, outcome(task.index), len(history) + 1))
        assert len(history) < 5000, "the plan never ends"
    probes = tuple(s for s in map(from_judged, history) if s is not None)
    return dataclasses.replace(run, seen=probes), history


def verdict_of(
    run: CaseRun, baseline: Baseline, outcome: Callable[[int], Verdict], *, strict: bool = False
) -> tuple[int, list[Finding]]:
    """Exit code and findings of one simulated gate."""
    ended, _ = simulate(run, baseline, outcome)
    findings = decide([ended], baseline, TODAY, all_cases=True)
    return exit_code(findings, [ended], strict=strict), findings


def flaky(rate: float, seed: int, failing: Callable[[int], bool], verdict: Verdict) -> Callable[[int], Verdict]:
    """Fails in a share `rate` of the processes of some shapes."""
    dice = random.Random(seed)
    return lambda index: verdict if failing(index) and dice.random() < rate else PASS


PROGRAM = """\
case: {name}
target:
  command: sh {name}.sh {{n}}
sweep: {{n: [1, 2, 3, 4, 5, 6, 7, 8]}}
limits: {{timeout: 20}}
"""
KERNEL = """\
case: {name}
target:
  kernel:
    source: {name}.cu
    entry: fill
    grid: ceil_div(n, 32)
    block: 32
    args:
      - {{out: y, dtype: float32, shape: [n]}}
      - {{scalar: n, dtype: int32}}
sweep: {{n: [32, 64, 96, 100]}}
limits: {{timeout: 120}}
"""
SOURCE = """\
extern "C" __global__ void fill(float* y, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if ({guard})
        y[i] = 1.0f;
}}
"""
GOOD, BAD = "i < n", "true"


def program(folder: Path, name: str, script: str) -> None:
    """A case that runs a shell script with n as $1."""
    (folder / "cases").mkdir(exist_ok=True)
    (folder / f"cases/{name}.yaml").write_text(PROGRAM.format(name=name))
    (folder / f"cases/{name}.sh").write_text(textwrap.dedent(script))


def kernel(folder: Path, name: str, guard: str) -> None:
    """A case with a CUDA kernel; without the guard `i < n` it writes behind its buffer where n is ragged."""
    (folder / "cases").mkdir(exist_ok=True)
    (folder / f"cases/{name}.yaml").write_text(KERNEL.format(name=name))
    (folder / f"cases/{name}.cu").write_text(SOURCE.format(guard=guard))


COMMAND = [sys.executable, "-m", "cudadiag"]


@dataclass(frozen=True)
class Done:
    """How one call of `cudadiag gate` ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The findings: status and the rest."""
        rows = [line.split(None, 1) for line in self.out.splitlines()]
        return [(row[0], row[1]) for row in rows if row and row[0] in set(Status)]


DROPPED = ("NO_COLOR", "FORCE_COLOR", "CUDADIAG_STORE", "GITHUB_STEP_SUMMARY")


def gate(folder: Path, *words: str, device: str | None = "none", expect: int | None = None, **env: str) -> Done:
    """`cudadiag gate` in a folder: the whole command line, in this process (a start costs a second)."""
    given = [] if device is None or words[:1] == ("merge",) else ["--device", device]
    before, environment, here = dict(os.environ), {**os.environ, **env}, Path.cwd()
    out, err = io.StringIO(), io.StringIO()
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update({k: v for k, v in environment.items() if k not in DROPPED or k in env})
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_cli(["gate", *words, *given])
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)
    result = Done(code, out.getvalue(), err.getvalue())
    assert "Traceback" not in result.err, result.err
    if expect is not None:
        assert result.code == expect, f"exit {result.code}\n{result.out}\n{result.err}"
    return result


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """`cudadiag gate` in a process of its own."""
    return subprocess.Popen(
        [*COMMAND, "gate", *words],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k not in DROPPED},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
