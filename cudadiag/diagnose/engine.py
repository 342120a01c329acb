"""Weighing: how every explanation stands, which experiment can tell two of them apart, what is most likely.

Pure functions of the evidence: a run can be continued, and judged again, from its ledger alone. An experiment is worth
its process only where two explanations that are still open foretell different results ("something else" is always
open, and foretells no change); once a cause is shown, rival causes are no longer open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cudadiag.diagnose.crosscheck import cross_check
from cudadiag.diagnose.evidence import Evidence, outcomes_words
from cudadiag.diagnose.experiments import REPEATS, Experiment
from cudadiag.diagnose.explanations import EXPLANATIONS
from cudadiag.diagnose.interface import NO_CUDA, Explanation, Finding, Status, Strength, untested

AS_BEFORE = "as before"
AT_ONCE = 4
NOTHING_FAILED = "give the shape that fails (--shape), or look how often it does (cudadiag run --repeat 100)"


@dataclass(frozen=True)
class Weighed:
    """An explanation with how it stands."""

    explanation: Explanation
    finding: Finding

    @property
    def shown(self) -> bool:
        return self.finding.status is Status.SUPPORTED and self.finding.strength is Strength.SHOWN


@dataclass(frozen=True)
class Diagnosis:
    """All explanations, the most likely cause (None: none is supported), how sure that is, and what to do next."""

    weighed: tuple[Weighed, ...]
    cause: Weighed | None
    sureness: str
    next_step: str

    def standing(self, name: str) -> Finding:
        """How the explanation of that name stands. Raises KeyError for one that is none."""
        return {w.explanation.name: w.finding for w in self.weighed}[name]


def weigh(evidence: Evidence) -> tuple[Weighed, ...]:
    """Every explanation as it stands, in the order of the table."""
    weighed = tuple(Weighed(explanation, _weigh(explanation, evidence)) for explanation in EXPLANATIONS)
    shown = next((w for w in weighed if w.shown and w.explanation.competes), None)
    return tuple(w if shown is None else _passed_over(w, shown, evidence) for w in weighed)


def _weigh(explanation: Explanation, evidence: Evidence) -> Finding:
    if evidence.unjudged is not None:
        return untested(evidence.unjudged)
    if _out_of_reach(explanation, evidence):
        return untested(NO_CUDA)
    return explanation.weigh(evidence)


def _out_of_reach(explanation: Explanation, evidence: Evidence) -> bool:
    """Only a CUDA device could show it, and none is in use: nothing speaks for or against it."""
    return explanation.needs_cuda and not evidence.uses_cuda


def _passed_over(weighed: Weighed, shown: Weighed, evidence: Evidence) -> Weighed:
    """An open rival of a cause that is shown says why it was left, where it could have been tested."""
    explanation, finding = weighed.explanation, weighed.finding
    possible = [e for e in explanation.expects if evidence.setting.problem(e) is None and not evidence.did(e)]
    if finding.settled or not explanation.competes or not possible:
        return weighed
    why = f"{finding.why}: `{shown.explanation.name}` already explains the failure (--all tests it)"
    return Weighed(explanation, untested(why))


def wanted(evidence: Evidence, *, everything: bool = False, at_once: int = AT_ONCE) -> tuple[Experiment, ...]:
    """The experiments to make next, most telling first, at most `at_once`; () when no more can be learnt."""
    if not evidence.did(Experiment.AS_JUDGED):
        return (Experiment.AS_JUDGED,)
    if cross_check(evidence.own).blocking_differs and not _plain_enough(evidence):
        return (Experiment.PLAIN,)  # again: one run each does not tell a difference from chance
    open_to = [e for e in Experiment if not evidence.did(e) and evidence.setting.problem(e) is None]
    if everything:
        return tuple(open_to)[:at_once]
    if evidence.unjudged is not None:  # what cannot be judged once cannot be compared
        return ()
    live = _live(weigh(evidence), evidence)
    told = {experiment: _told_apart(experiment, live) for experiment in open_to}
    useful = [experiment for experiment in open_to if told[experiment] > 1]
    best = max((told[e] for e in useful), default=0)
    # The most telling first and alone with its equals: what it shows may make the others pointless.
    return tuple(e for e in useful if told[e] == best)[:at_once]


def _plain_enough(evidence: Evidence) -> bool:
    """Whether plain runs were made often enough, also where they could not be judged."""
    made = [w for w in evidence.own if w.observer == Experiment.PLAIN]
    return not made or len(made) > REPEATS


def _live(weighed: Sequence[Weighed], evidence: Evidence) -> list[Explanation]:
    shown = any(w.shown and w.explanation.competes for w in weighed)
    left = [w.explanation for w in weighed if not w.finding.settled and not (shown and w.explanation.competes)]
    return [explanation for explanation in left if not _out_of_reach(explanation, evidence)]


def _told_apart(experiment: Experiment, live: Sequence[Explanation]) -> int:
    """How many different results the open explanations foretell."""
    return len({explanation.expects.get(experiment, AS_BEFORE) for explanation in live} | {AS_BEFORE})


def diagnosis(evidence: Evidence) -> Diagnosis:
    """What follows from the evidence as it stands."""
    weighed = weigh(evidence)
    supported = [w for w in weighed if w.finding.status is Status.SUPPORTED]
    cause = min(supported, key=_likeliness, default=None)
    if evidence.unjudged is not None:
        return Diagnosis(weighed, None, f"nothing is known: {evidence.unjudged}", "make the shape run to its end")
    if cause is None:
        step = _what_is_missing(weighed, evidence) if evidence.failing else NOTHING_FAILED
        return Diagnosis(weighed, None, _nothing_supported(evidence, weighed), step)
    return Diagnosis(weighed, cause, _sureness(evidence, cause, weighed), cause.explanation.next_step(evidence))


def _likeliness(weighed: Weighed) -> tuple[bool, bool, int]:
    """A cause before what only describes, the shown before the suggested, then the order of the table."""
    place = EXPLANATIONS.index(weighed.explanation)
    return not weighed.explanation.competes, not weighed.shown, place


def _sureness(evidence: Evidence, cause: Weighed, weighed: Sequence[Weighed]) -> str:
    runs = [w for w in evidence.own if w.outcome.is_evidence and w.observer == evidence.setting.observer]
    failed = sum(w.outcome.is_failure for w in runs)
    rate = f"{failed} of {len(runs)} runs under {evidence.setting.observer} failed" if runs else "no plain run"
    others = [
        w.explanation.name
        for w in weighed
        if w.explanation.competes
        and w.finding.status is Status.UNTESTED
        and w is not cause
        and not _out_of_reach(w.explanation, evidence)
    ]
    hinted = [w.explanation.name for w in weighed if w.explanation.competes and _is_hint(w) and w is not cause]
    left = f"; not excluded: {', '.join(others)}" if others else "; every rival is refuted or was shown too"
    if hinted:
        left = f"; also suggested: {', '.join(hinted)}{left if others else ''}"
    if not evidence.uses_cuda:
        left = f"; what only a CUDA device could show was not tested: {NO_CUDA}"
    if cause.shown:
        return f"shown by {probe_words(cause.finding.probes)}; {rate}{left}"
    return f"suggested, nobody recorded it; {rate}{left}"


def _is_hint(weighed: Weighed) -> bool:
    return weighed.finding.status is Status.SUPPORTED and not weighed.shown


def _nothing_supported(evidence: Evidence, weighed: Sequence[Weighed]) -> str:
    if not evidence.failing:
        runs = [w for w in evidence.own if w.outcome.is_evidence]
        return f"the shape did not fail here ({outcomes_words(runs)})"
    left = [w.explanation.name for w in weighed if w.finding.status is Status.UNTESTED]
    return f"none is supported; untested: {', '.join(left)}" if left else "every explanation is refuted"


def _what_is_missing(weighed: Sequence[Weighed], evidence: Evidence) -> str:
    """What would let an experiment be made that an open explanation foretells something of."""
    open_to = [w.explanation for w in weighed if w.finding.status is Status.UNTESTED]
    left = [e for explanation in open_to for e in explanation.expects if not evidence.did(e)]
    problems = dict.fromkeys(problem for e in left if (problem := evidence.setting.problem(e)) is not None)
    if problems:
        return f"make possible what could not be tested: {'; '.join(problems)}"
    return "make the experiments that are left (--all)" if left else "look at the streams of the probes"


def probe_words(of: Sequence[int], most: int = 6) -> str:
    """`probes 1, 4, 5, ...`, each once, at most so many of them."""
    numbers = list(dict.fromkeys(of))
    shown = ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")
    return f"probe{'s' if len(numbers) != 1 else ''} {shown}" if numbers else "the case itself"
