"""Explanation by the host program."""

from __future__ import annotations

import re
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.words import numbers_words, only_text
from cudadiag.diagnose.interface import Expects, Explanation, Finding, not_asked, refuted, supported, untested
from cudadiag.diagnose.witness import HOST_KINDS, Witness
from cudadiag.model import FaultKind, Outcome

KERNEL_STEPS = ("launch", "synchronise")
"""A worker's steps in which a kernel may be running."""
ENDS = (*HOST_KINDS, FaultKind.OTHER_CUDA)


class HostProgram(Explanation):
    """The program fails by itself, on the CPU."""

    name = "host-program"
    title = "A fault in the host program"
    predicts = (
        "it dies of a signal, an exception or an exit status of its own, and no CUDA call and no tool reports anything"
    )
    needs_cuda = False
    advice = "debug it as any program: its traceback, gdb, or an address sanitizer"

    expects: ClassVar[Expects] = {Experiment.MEMCHECK: "clean"}

    def weigh(self, evidence: Evidence) -> Finding:
        found = [w for w in evidence.failing if w.kind in HOST_KINDS]
        device = [w for w in evidence.own if w.recorded_kinds or (w.outcome is Outcome.FAULT and w.kind not in ENDS)]
        if found and device:
            why = f"its end is a consequence: {device[0].judged.verdict.reason}"
            return refuted(why, device)
        if found:
            # A program may end itself because of what the device did to its data: memcheck is asked first.
            left = not_asked(evidence, Experiment.MEMCHECK)
            # An exit status alone may be the program's word on a result that was wrong before.
            said = any(_where(w) or not (w.kind is FaultKind.HOST_EXIT or _only_status(w)) for w in found)
            return untested(left, found) if left else supported(_how(found[0]), found, suggested=not said)
        if not evidence.failing:
            return untested("nothing failed")
        if evidence.hangs and not evidence.uses_cuda:
            return supported(_still_running(evidence.hangs[0]), evidence.hangs, suggested=True)
        if evidence.hangs and not device:
            return _by_hang(evidence)
        misused = [w for w in evidence.failing if w.kind is FaultKind.OTHER_CUDA and w.fault and w.fault.noticed]
        if misused and not device:
            return supported(f"a CUDA call was misused: {misused[0].judged.verdict.reason}", misused, suggested=True)
        if only_text(evidence, evidence.failing) and evidence.outcomes == {Outcome.FAULT}:
            return untested(f"{numbers_words(evidence)}, and nobody else says so", evidence.failing)
        return refuted(f"the program did not die by itself: {numbers_words(evidence)}", evidence.failing)

    def advise(self, evidence: Evidence) -> str:
        found = [w for w in evidence.failing if w.kind in HOST_KINDS]
        placed = next((where for w in found if (where := _where(w))), "")
        if placed:
            return f"look at {placed}: the traceback is in its stderr"
        if any(w.kind is FaultKind.HOST_SIGNAL for w in found):
            if all(w.kind is FaultKind.HOST_SIGNAL and _killed(w) for w in found):
                return "look for the OOM killer in the kernel log (dmesg), and for whoever else sends SIGKILL"
            return "run it under gdb, or built with an address sanitizer: no traceback was printed"
        if evidence.hangs and not found:
            return "raise --timeout, or look where it stands (py-spy dump, gdb -p)"
        if not found:
            return "look at the arguments of that call, and at what it was given before"
        return self.advice


def _by_hang(evidence: Evidence) -> Finding:
    """A host that waits for ever looks as a kernel does that never ends, until somebody sees the kernel."""
    seen = [w for w in evidence.hangs if w.reading.core and w.reading.core.running]
    if evidence.setting.target == "kernel":
        seen += [w for w in evidence.hangs if w.judged.line.facts.last_step in KERNEL_STEPS]
    if seen:
        return refuted("it hangs in a kernel", seen)
    why = "it hangs: a host that waits for ever looks the same, and no kernel was seen running"
    return untested(why, evidence.hangs)


def _still_running(witness: Witness) -> str:
    seconds = re.search(r"after ([\d.]+) ?s\b", witness.judged.verdict.reason)
    return f"still running at the limit of {seconds[1]} s" if seconds else "still running at the time limit"


def _killed(witness: Witness) -> bool:
    """Died of SIGKILL, or of a status that says so: nobody can catch it, and a debugger sees no fault."""
    return "SIGKILL" in witness.judged.verdict.reason


def _only_status(witness: Witness) -> bool:
    """Whether a signal is known from an exit status of 128 and more alone: something below died of it, or nothing."""
    facts = witness.judged.line.facts
    inner = facts.inner_exit or {}
    signal = inner.get("signal") if "exit_code" in inner or "signal" in inner else facts.signal
    return witness.kind is FaultKind.HOST_SIGNAL and signal is None


def _how(witness: Witness) -> str:
    reason, where = witness.judged.verdict.reason, _where(witness)
    return f"{reason} at {where}" if where and where not in reason else reason


def _where(witness: Witness) -> str:
    """`raises.py:2`, where a traceback names the line; "" elsewhere."""
    noticed = witness.fault.noticed if witness.fault else None
    return f"{noticed.file}:{noticed.line}" if noticed and noticed.file and noticed.line else ""
