"""Explanations by how the run ends: the kernel's own check, a wait without end, a result that is just wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.words import best, differing, numbers_words, place
from cudadiag.diagnose.interface import Expects, Explanation, Finding, not_asked, refuted, supported, untested
from cudadiag.diagnose.witness import Witness
from cudadiag.model import FaultKind, Outcome

DIFFERING = "a race, memory that nobody wrote, or an access outside a buffer"
"""What makes the same computation end differently."""
CHECKS = (Experiment.MEMCHECK, Experiment.RACECHECK, Experiment.INITCHECK)


class OwnCheck(Explanation):
    """The kernel found something wrong itself."""

    name = "own-check"
    title = "The kernel's own assert or trap"
    predicts = "710 with the assert's text, or a trap that memcheck or a core file records (719 without a tool)"
    advice = "the condition at that line says what the kernel did not expect of this shape"

    expects: ClassVar[Expects] = {Experiment.MEMCHECK: "a trap", Experiment.COREDUMP: "a trap"}

    def weigh(self, evidence: Evidence) -> Finding:
        asserted = evidence.with_kind(FaultKind.DEVICE_ASSERT)
        if asserted:
            return supported(_said(asserted), asserted)
        trapped = evidence.recorded(FaultKind.LAUNCH_FAILURE)
        # Under memcheck every device fault reads 719: only probes without a tool count for it.
        reported = [w for w in evidence.with_number(719) if w.tool is None]
        other = sorted({kind.value for w in evidence.own for kind in w.recorded_kinds if kind != "launch-failure"})
        if other:
            return refuted(f"a checker recorded {other[0]}", [w for w in evidence.own if w.recorded_kinds])
        if trapped:
            return supported(_said(trapped), trapped)
        if reported:
            left = not_asked(evidence, *self.expects) or "nobody recorded which"
            return untested(f"719: it could be a trap, or a fault that has no number of its own; {left}", reported)
        if not evidence.failing:
            return untested("nothing failed")
        return refuted(f"{numbers_words(evidence)}; an assert gives 710, a trap 719", evidence.failing)


def _said(found: Sequence[Witness]) -> str:
    shown = best(found)
    return f"{shown.judged.verdict.reason} in {place(shown.caused)}"


class EndlessWait(Explanation):
    """A loop or a wait without end."""

    name = "endless-wait"
    title = "A loop or a wait that never ends"
    predicts = "no error, only the time limit; a core file asked for from outside shows where the threads stand"
    competes = False
    expects: ClassVar[Expects] = {Experiment.COREDUMP: "threads that stand at a line"}
    needs_cuda = False
    advice = "look at what the line waits for, and who should have changed it"

    def weigh(self, evidence: Evidence) -> Finding:
        if evidence.hangs:
            placed = [w for w in evidence.hangs if w.caused and w.caused.line]
            if placed:
                return supported(f"its threads stand in {place(placed[0].caused)}", [*placed])
            if evidence.did(Experiment.COREDUMP) or evidence.setting.problem(Experiment.COREDUMP):
                step = evidence.hangs[0].judged.line.facts.last_step
                return supported(
                    f"it hangs{f' (last step: {step})' if step else ''}; where is not known", evidence.hangs
                )
            return untested("it hangs; no core file was asked for yet", evidence.hangs)
        if not evidence.failing:
            return untested("nothing failed")
        return refuted("it ended by itself", evidence.failing)

    def advise(self, evidence: Evidence) -> str:
        if any(w.caused and w.caused.line for w in evidence.hangs):
            return self.advice
        return "find where it stands: py-spy dump or gdb -p for the host, a core file or cuda-gdb for the device"


class WrongResult(Explanation):
    """The computation itself is wrong for this shape."""

    name = "wrong-result"
    title = "A wrong result without any fault"
    predicts = "the result differs from the reference, and no checker records anything"
    needs_cuda = False
    advice = "compare intermediate results with the reference at this shape and at its passing neighbour"

    def weigh(self, evidence: Evidence) -> Finding:
        wrong = [w for w in evidence.failing if w.outcome is Outcome.WRONG]
        if not wrong:
            return refuted("no result is wrong") if evidence.failing else untested("nothing failed")
        recorded = [w for w in evidence.own if w.recorded_kinds]
        if recorded:
            kind = sorted(recorded[0].recorded_kinds)[0]
            return refuted(f"a checker recorded {kind.value}: the wrong result is its consequence", recorded)
        differs = differing(wrong)
        varies = f"; it differs in runs alike ({differs}): {DIFFERING}" if differs else ""
        left = not_asked(evidence, *CHECKS)
        if left:
            return untested(f"{left}{varies}", wrong)
        checked = [w for w in evidence.own if w.checked or w.exact]
        why = f"{wrong[0].judged.verdict.reason}; "
        clean = ", ".join(dict.fromkeys(w.observer for w in checked))
        why += f"clean under {clean}" if checked else "no checker could be asked"
        return supported(f"{why}{varies}", [*wrong, *checked], suggested=not checked or bool(differs))

    def advise(self, evidence: Evidence) -> str:
        if any(w.emulated and w.judged.line.memory_model == "hardware" for w in evidence.failing):
            return "run it with --memory exact, which checks every access; then compare with the reference"
        if differing(evidence.failing):
            return f"look for {DIFFERING}: compare two runs at the first element that differs"
        return self.advice
