"""Rules about the probe itself: could it run, did we end it, did its tool do its work."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from cudadiag.evidence.caused import caused_by_core
from cudadiag.evidence.core import CoreException
from cudadiag.evidence.rules.build import fault, unresolved
from cudadiag.evidence.rules.view import BEFORE_CONTEXT, Evidence
from cudadiag.evidence.sanitizer.records import Health
from cudadiag.model import FaultKind, Outcome, Verdict

if TYPE_CHECKING:
    from harness.records import ProbeFacts

SIGKILL = 9
HEALTH_WORDS = {
    Health.NO_REPORT: "it left no report",
    Health.NO_SUMMARY: "its text ends before the summary line",
    Health.KILLED: "it was killed before it could report",
    Health.TRUNCATED: "its XML is cut off",
    Health.NEVER_REACHED_CUDA: "the program ended before its first CUDA call",
    Health.NO_CONNECTION: "it could not attach to the program",
    Health.INTERNAL_ERROR: "it reports an internal error, after which errors may go undetected",
    Health.FILTERED_OUT: "its filters left no kernel to check",
    Health.CACHING_ALLOCATOR: "a caching allocator hides overruns (PYTORCH_NO_CUDA_MEMORY_CACHING=1)",
    Health.DEVICE_NOT_SUPPORTED: "it does not support this device",
}


def requirement_unmet(evidence: Evidence) -> Verdict | None:
    """The case's `requires` does not hold here."""
    return unresolved(evidence.expected.unmet) if evidence.expected.unmet else None


def not_started(evidence: Evidence) -> Verdict | None:
    """The process could not be started, or a tool it was to run under is missing."""
    problem = evidence.facts.start_error
    return unresolved(f"could not be started: {problem}") if problem else None


def tool_never_ran(evidence: Evidence) -> Verdict | None:
    """A sanitizer left neither a report nor a word about the program's end: what was printed may be
    the tool's own help."""
    tool = evidence.expected.tool
    report = evidence.reading.sanitizer
    inner = evidence.facts.inner_exit or {}
    if tool is None or evidence.facts.timed_out or "exit_code" in inner or "signal" in inner:
        return None
    left_nothing = report is None or report.health is Health.NO_REPORT
    return unresolved(f"{tool} did not run: {HEALTH_WORDS[Health.NO_REPORT]}") if left_nothing else None


def not_supported(evidence: Evidence) -> Verdict | None:
    """The device said it cannot run this (an instruction that is not emulated, an architecture it lacks)."""
    if evidence.error.get("type") != "NotSupported":
        return None
    return unresolved(f"the device cannot run this: {evidence.error.get('text') or evidence.error.get('message')}")


def not_compiled(evidence: Evidence) -> Verdict | None:
    """The kernel's source did not compile: nothing ran."""
    if evidence.error.get("type") != "CompileError":
        return None
    log = str(evidence.error.get("log") or evidence.error.get("text") or "").strip()
    first = next((line for line in log.splitlines() if "error" in line.lower()), log.split("\n", 1)[0])
    return unresolved(f"the kernel did not compile: {first[:300]}")


def ended_by_us(evidence: Evidence) -> Verdict | None:
    """We ended it for another reason than its time limit."""
    killed = evidence.facts.killed_by_us
    return unresolved(f"ended by cudadiag: {killed}") if killed and not evidence.facts.timed_out else None


_HOST_STEPS = ("compile", "allocate", "check")
"""Steps of a worker in which no kernel runs: a slow compiler or a slow reference is no hang of the device."""


def timed_out(evidence: Evidence) -> Verdict | None:
    """The wall limit was reached: a hang, with its place where a core shows one; not so under a tool (it may only be
    slow), nor before a context existed, nor while the host compiled, allocated or checked."""
    facts = evidence.facts
    core = evidence.reading.core
    # a core without an exception was asked for, and only a run that reached its limit is asked
    asked_for = core is not None and bool(core.running) and not core.exceptions
    if not facts.timed_out and not asked_for:
        return None
    after = _still_running(facts)
    if evidence.expected.tool is not None:
        return unresolved(f"{after} under {evidence.expected.tool}, killed without a report: raise --timeout")
    if core is not None and core.running:
        return _hang_at(evidence, after, core.running[0])
    progress = evidence.reading.progress
    if evidence.expected.observer == "coredump" and progress is not None and not progress.done:
        at = f" at {progress.percent} %" if progress.percent is not None else ""
        return unresolved(f"{after} while a core dump was being written{at}: raise --timeout")
    if evidence.expected.is_worker and facts.last_step in BEFORE_CONTEXT:
        return unresolved(f"{after}, before it had a context (last step: {facts.last_step or 'none'})")
    if evidence.expected.is_worker and facts.last_step in _HOST_STEPS:
        return unresolved(f"{after}, no kernel was running (last step: {facts.last_step}): raise --timeout")
    step = f", last step: {facts.last_step}" if facts.last_step else ""
    return Verdict(Outcome.HANG, f"{after}{step}")


_LIMIT = re.compile(r"time limit of ([\d.]+(?:e[+-]?\d+)?) s$")


def _still_running(facts: ProbeFacts) -> str:
    """The limit that was reached; the wall time has the seconds in it that the program was given to end."""
    told = _LIMIT.search(facts.killed_by_us or "")
    limit_s = float(told[1]) if told else facts.wall_s
    after = f"still running after {limit_s:.1f} s" if limit_s >= 0.1 else f"still running after {limit_s:g} s"
    return f"{after} (SIGTERM did not end it)" if told and facts.signal == SIGKILL else after


def _hang_at(evidence: Evidence, after: str, found: CoreException) -> Verdict:
    line = f", {found.file}:{found.line}" if found.file else ""
    reason = f"{after} in {found.kernel or 'an unnamed kernel'}{line}"
    caused = fault(evidence, reason, kind=FaultKind.LAUNCH_TIMEOUT, caused=caused_by_core(found))
    return replace(caused, outcome=Outcome.HANG)


def tool_unhealthy(evidence: Evidence) -> Verdict | None:
    """A sanitizer run that does not prove it checked anything is not clean."""
    tool = evidence.expected.tool
    if tool is None:
        return None
    report = evidence.reading.sanitizer
    health = report.health if report else Health.NO_REPORT
    if health is Health.OK and evidence.facts.result.get("caching_allocator") and tool in ("memcheck", "initcheck"):
        health = Health.CACHING_ALLOCATOR
    if health is Health.OK:
        return _unexplained(evidence)
    detail = f" ({report.health_detail[0]})" if report and report.health_detail else ""
    return unresolved(f"{tool} did not check this run: {HEALTH_WORDS[health]}{detail}")


def _unexplained(evidence: Evidence) -> Verdict | None:
    """The summary counts errors of which no record could be read."""
    report = evidence.reading.sanitizer
    if report is None or not report.errors or report.records:
        return None
    return unresolved(f"{evidence.expected.tool} counted {report.errors} errors, of which no record could be read")


def outlived(evidence: Evidence) -> Verdict | None:
    """Processes outlived SIGKILL: the device may still be in their hands, so the run proves nothing."""
    survivors = evidence.facts.survivors
    return unresolved(f"process {', '.join(map(str, survivors))} outlived SIGKILL") if survivors else None
