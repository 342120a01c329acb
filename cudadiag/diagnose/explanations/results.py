"""Explanations by how the run ends: the kernel's own check, a wait without end, a result that is just wrong."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.looked import initcheck_missed
from cudadiag.diagnose.explanations.words import (
    best,
    differing,
    left_open,
    numbers_words,
    only_printed,
    only_text,
    place,
    printed_words,
)
from cudadiag.diagnose.interface import Expects, Explanation, Finding, not_asked, refuted, sound, supported, untested
from cudadiag.diagnose.witness import HOST_KINDS, Witness
from cudadiag.model import Caused, FaultKind, Outcome

DIFFERING = "a race, memory that nobody wrote, or an access outside a buffer"
"""What makes the same computation end differently."""
CHECKS = (Experiment.MEMCHECK, Experiment.RACECHECK, Experiment.INITCHECK)


PLACES = 4
"""So many places of a hang are named."""
LANES = 64
"""So many threads the emulated device names."""


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
            suggested = only_text(evidence, asserted)
            return supported(_said(asserted, suggested), asserted, suggested=suggested)
        trapped = evidence.recorded(FaultKind.LAUNCH_FAILURE)
        # Under memcheck every device fault reads 719: only probes without a tool count for it.
        reported = [w for w in evidence.with_number(719) if w.tool is None]
        other = sorted({kind.value for w in evidence.own for kind in w.recorded_kinds if kind != "launch-failure"})
        if other:
            return refuted(f"a checker recorded {other[0]}", [w for w in evidence.own if w.recorded_kinds])
        if trapped:
            return supported(_said(trapped, False), trapped)
        if reported:
            left = not_asked(evidence, *self.expects) or "nobody recorded which"
            return untested(f"719: it could be a trap, or a fault that has no number of its own; {left}", reported)
        if not evidence.failing:
            return untested("nothing failed")
        if unseen := left_open(evidence, 710, 719):
            return untested(unseen, evidence.failing)
        return refuted(f"{numbers_words(evidence)}; an assert gives 710, a trap 719", evidence.failing)

    def advise(self, evidence: Evidence) -> str:
        found = (*evidence.with_kind(FaultKind.DEVICE_ASSERT), *evidence.recorded(FaultKind.LAUNCH_FAILURE))
        if any(w.caused and w.caused.line for w in found):
            return self.advice
        return "find the assert's own text (file, line, condition) in what the program prints: it says what failed"


def _said(found: Sequence[Witness], printed: bool) -> str:
    shown = best(found)
    if printed and shown.caused is None:
        return printed_words(found)
    if printed:
        return f'the program printed "{shown.judged.verdict.reason}" in {place(shown.caused)}'
    if shown.caused is None and only_printed(shown):
        return f"{printed_words(found)}; which assert is not known"
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
                return supported(_standing(placed[0]), [*placed])
            if evidence.did(Experiment.COREDUMP) or evidence.setting.problem(Experiment.COREDUMP):
                step = evidence.hangs[0].judged.line.facts.last_step
                why = f"it hangs{f' (last step: {step})' if step else ''}; where is not known"
                # Without a device nothing but the time limit says so.
                return supported(why, evidence.hangs, suggested=not evidence.uses_cuda)
            return untested("it hangs; no core file was asked for yet", evidence.hangs)
        if not evidence.failing:
            return untested("nothing failed")
        return refuted("it ended by itself", evidence.failing)

    def advise(self, evidence: Evidence) -> str:
        if any(w.caused and w.caused.line for w in evidence.hangs):
            return self.advice
        return "find where it stands: py-spy dump or gdb -p for the host, a core file or cuda-gdb for the device"


def _standing(witness: Witness) -> str:
    """Where threads stand, each place once with how many: one thread's place is not everybody's."""
    caused = witness.caused or Caused()
    lanes = [lane for r in witness.judged.line.facts.device_records for lane in r.get("lanes") or ()]
    core = witness.reading.core
    if lanes:
        found = Counter((lane.get("file"), lane.get("line")) for lane in lanes)
        each = [_at(file, line, count) for (file, line), count in found.most_common()]
        what = "threads" if len(lanes) < LANES else f"first {LANES} threads"
    elif core and core.running:
        warps: Counter[tuple[str | None, int | None]] = Counter()
        for warp in core.running:
            warps[(warp.file, warp.line)] += warp.warps
        each = [_at(file, line, count) for (file, line), count in warps.most_common()]
        what = "warps"
    else:
        return f"a thread stands in {place(caused)}"
    kernel = place(replace(caused, line=None))
    if len(each) == 1:
        return f"its {what} stand in {place(caused)}" if len(lanes) != 1 else f"a thread stands in {place(caused)}"
    rest = f" and {len(each) - PLACES} more places" if len(each) > PLACES else ""
    return f"its {what} stand in {kernel} at {', '.join(each[:PLACES])}{rest}"


def _at(file: str | None, line: int | None, count: int) -> str:
    return f"{os.path.basename(file)}:{line} ({count})" if file and line else f"an unknown line ({count})"


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
            return _not_compared(evidence)
        recorded = [w for w in evidence.own if w.recorded_kinds]
        if recorded:
            kind = sorted(recorded[0].recorded_kinds)[0]
            return refuted(f"a checker recorded {kind.value}: the wrong result is its consequence", recorded)
        differs = differing(wrong)
        varies = f"; it differs in runs alike ({differs}): {DIFFERING}" if differs else ""
        left = not_asked(evidence, *CHECKS)
        if left:
            return untested(f"{left}{varies}", wrong)
        clean = {tool: found for tool in CHECKS if (found := sound(evidence, tool))}
        checked = [w for found in clean.values() for w in found]
        missing = [tool.value for tool in CHECKS if tool not in clean]
        if Experiment.INITCHECK in clean and initcheck_missed(evidence):
            missing.append(f"initcheck ({initcheck_missed(evidence)})")
        parts = [wrong[0].judged.verdict.reason]
        names = ("the emulated device's memory check" if found[0].exact else tool for tool, found in clean.items())
        parts += [f"clean under {', '.join(names)}"] if clean else []
        parts += [f"not checked by {', '.join(missing)}"] if missing else []
        return supported(f"{'; '.join(parts)}{varies}", [*wrong, *checked], suggested=bool(missing or differs))

    def advise(self, evidence: Evidence) -> str:
        if any(w.emulated and w.judged.line.memory_model == "hardware" for w in evidence.failing):
            return "run it with --memory exact, which checks every access; then compare with the reference"
        if differing(evidence.failing):
            return f"look for {DIFFERING}: compare two runs at the first element that differs"
        return self.advice


def _not_compared(evidence: Evidence) -> Finding:
    """Where no probe says that a result is wrong: one may have been, where the program judges it itself."""
    if not evidence.failing:
        return untested("nothing failed")
    recorded = [w for w in evidence.own if w.recorded_kinds]
    if recorded:
        kind = sorted(recorded[0].recorded_kinds)[0]
        return refuted(f"a checker recorded {kind.value}, and no result was compared", recorded)
    if any(w.compared for w in evidence.failing):
        return refuted("no result is wrong", evidence.failing)
    statuses = [w for w in evidence.failing if w.kind is FaultKind.HOST_EXIT]
    if statuses:
        return untested("no result was compared; the program's own exit status may say that one is wrong", statuses)
    checked = [w for w in evidence.failing if _own_check_failed(w)]
    if checked:
        return untested("no result was compared; the program's own assertion may say that one is wrong", checked)
    first = evidence.failing[0]
    how = "it died" if first.kind in HOST_KINDS else UNCOMPARED.get(first.outcome, "it ended")
    return refuted(f"{how} before a result was compared", evidence.failing)


def _own_check_failed(witness: Witness) -> bool:
    return witness.kind is FaultKind.HOST_EXCEPTION and "AssertionError" in witness.judged.verdict.reason


UNCOMPARED = {Outcome.FAULT: "it faulted", Outcome.HANG: "it hung", Outcome.SKIPPED: "its kernel was refused"}
"""How a run ends that has no result."""
