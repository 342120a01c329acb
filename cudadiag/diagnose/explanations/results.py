"""Explanations by how the run ends: the kernel's own check, a wait without end, a result that is just wrong."""

from __future__ import annotations

from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.words import best, numbers_words, place
from cudadiag.diagnose.interface import Expects, Explanation, Finding, refuted, supported, untested
from cudadiag.model import FaultKind, Outcome

CHECKS = (Experiment.MEMCHECK, Experiment.RACECHECK, Experiment.INITCHECK)


class OwnCheck(Explanation):
    """The kernel found something wrong itself."""

    name = "own-check"
    title = "The kernel's own assert or trap"
    predicts = "710 with the assert's text, or 719 without any tool"
    advice = "the condition at that line says what the kernel did not expect of this shape"

    def weigh(self, evidence: Evidence) -> Finding:
        # Under memcheck every device fault reads 719: only probes without a tool count for it.
        found = [
            w
            for w in evidence.failing
            if w.kind is FaultKind.DEVICE_ASSERT or (w.kind is FaultKind.LAUNCH_FAILURE and w.tool is None)
        ]
        if found:
            shown = best(found)
            return supported(f"{shown.judged.verdict.reason} in {place(shown.caused)}", found)
        if not evidence.failing:
            return untested("nothing failed yet")
        return refuted(f"{numbers_words(evidence)}; an assert gives 710, a trap 719", evidence.failing)


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
            return untested("nothing failed yet")
        return refuted("it ended by itself", evidence.failing)


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
            return refuted("no result is wrong") if evidence.failing else untested("nothing failed yet")
        recorded = [w for w in evidence.own if w.recorded_kinds]
        if recorded:
            kind = sorted(recorded[0].recorded_kinds)[0]
            return refuted(f"a checker recorded {kind.value}: the wrong result is its consequence", recorded)
        open_to = [e for e in CHECKS if evidence.uses_cuda and not evidence.did(e) and not evidence.setting.problem(e)]
        if open_to:
            return untested(f"not run under {', '.join(open_to)}", wrong)
        checked = [w for w in evidence.own if w.checked or w.exact]
        why = f"{wrong[0].judged.verdict.reason}; "
        clean = ", ".join(dict.fromkeys(w.observer for w in checked))
        why += f"clean under {clean}" if checked else "no checker could be asked"
        return supported(why, [*wrong, *checked], suggested=not checked)
