"""The answer of the strategy `rules`: claim, rules in words, rivals, what does not matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Claim
from cudadiag.search import closing, expr, insight, rate, report, rivals
from cudadiag.search.answer import Answer, RuleReport
from cudadiag.search.belief import PASS
from cudadiag.search.closing import Claimed
from cudadiag.search.conclusion import Conclusion
from cudadiag.search.exceptions import best_with_exceptions
from cudadiag.search.rules import RuleSearch


def rules_answer(search: RuleSearch) -> Answer:
    """What follows from the evidence so far, under the claims that DESIGN defines."""
    tally, settings, sweep = search.tally, search.settings, search.sweep
    more: dict[str, Any] = {"warnings": insight.sweep_warnings(sweep) + insight.tally_warnings(tally, settings)}
    if tally.first is None:
        claimed = closing.claim_none_found(tally, len(sweep))
        return report.base_answer(sweep, search.observations, tally, claimed, settings, **more)
    found = search.conclusion
    claimed = _claim(search, found)
    if found is None:
        more |= _without_rule(search)
    else:
        more |= _with_rule(search, found)
    return report.base_answer(sweep, search.observations, tally, claimed, settings, **more)


def _claim(search: RuleSearch, found: Conclusion | None) -> Claimed:
    """The strongest claim the evidence carries: proven, else implied by a settled rule that was attacked, else
    boundary."""
    tally, settings = search.tally, search.settings
    first = tally.first or 0
    proven = closing.claim_by_proof(tally, settings)
    if proven is not None:
        return proven
    if found is None or found.first != first or found.certainty_first < settings.confidence:
        return closing.claim_boundary(tally, first, settings)
    survived, left = _earlier_attacks(search, found)
    if not survived or (survived < settings.attacks and left):
        return closing.claim_boundary(tally, first, settings)
    bound = exception_bound(survived, tally.pessimistic_rate)
    text = (
        f"implied by a rule that survived {survived} attacks at random earlier shapes: "
        f"at most {bound:.1%} of the {first} earlier shapes are exceptions (95 %)"
    )
    return Claimed(Claim.IMPLIED, min(found.certainty_first, closing.proof_confidence(tally, 0, settings)), text)


def _earlier_attacks(search: RuleSearch, found: Conclusion) -> tuple[int, int]:
    """Random earlier shapes at which this prediction was tried and held, and earlier shapes left to try."""
    first = search.tally.first or 0
    done = search.attacks(found.fingerprint)
    held = done[(done < first) & search.tally.passing[done]]
    return len(held), int(search.open_shapes[:first].sum())


def exception_bound(attacks: int, fault_rate: float) -> float:
    """3/N: with 95 % confidence no larger share of the shapes drawn from goes against the rule (rule of three). A flaky
    exception shows itself in a share of the runs only."""
    return min(1.0, 3 / (attacks * fault_rate)) if attacks else 1.0


def _with_rule(search: RuleSearch, found: Conclusion) -> dict[str, Any]:
    tally, settings = search.tally, search.settings
    attacks = search.attacks(found.fingerprint)
    survived, _ = _earlier_attacks(search, found)
    predicted = _merge_predicted(search, found)
    failing = np.array([p not in (None, "pass") for p in predicted])
    flat = tally.flaky and bool(failing.all()) and found.certainty >= settings.confidence
    bits = _bits(found)
    if tally.flaky:
        bits /= rate.capacity(found.belief.noise.rate)
    measured = closing.measured_rate(tally, failing if tally.flaky and found.certainty >= settings.confidence else None)
    counted = report.counts(
        search.sweep,
        tally,
        settings,
        attacks=len(attacks),
        attacks_earlier=survived,
        exception_bound=exception_bound(survived, tally.pessimistic_rate) if survived else None,
    )
    return {
        "counts": counted,
        "effort": report.effort(search.observations, bits),
        "rules": _rule_reports(search, found),
        "rule_note": _note(search, found),
        "rivals": rivals.rivals(search, found),
        "rate": None if measured is None else insight.with_structure(measured, flat),
        "predicted": predicted,
        "axes_without_effect": insight.axes_without_effect(search.sweep, predicted),
    }


def _bits(found: Conclusion) -> float:
    return sum(-float(p.log_prior[0]) / math.log(2) for p in found.belief.views[0].posteriors)


def _rule_reports(search: RuleSearch, found: Conclusion) -> tuple[RuleReport, ...]:
    belief = found.belief
    reports = []
    for position, (label, rule) in enumerate(found.rules):
        outcome, signature = belief.labels[label]
        above = tuple(report.label_text(belief.labels[o]) or "" for o, _ in found.rules[:position])
        named = found.predicted == label
        reports.append(
            RuleReport(
                outcome=outcome,
                signature=signature,
                text=expr.words(rule),
                expression=expr.text(rule),
                form=expr.to_json(rule) if isinstance(rule, expr.Op) else {"op": "and", "args": [expr.to_json(rule)]},
                failing=int(named.sum()),
                confidence=float(belief.views[0].posteriors[position].shares[0]),
                complete=_is_complete(search, found),
                unless=above,
            )
        )
    return tuple(reports)


def _is_complete(search: RuleSearch, found: Conclusion) -> bool:
    """Every legal shape was run, and shows what the rules predict. A deterministic fault settles a shape in one run."""
    tally = search.tally
    if bool((tally.fails + tally.passes == 0).any()):
        return False
    named = found.predicted != PASS
    return not (tally.flaky and bool((_too_few(search) | (named & ~tally.failing)).any()))


def _too_few(search: RuleSearch) -> NDArray[np.bool_]:
    return closing.passed_too_seldom(search.tally, search.settings)


def _flaky_note(search: RuleSearch, found: Conclusion) -> str:
    """How many shapes rest on what: under a flaky fault a pass is not the end of it."""
    tally, few = search.tally, _too_few(search)
    untested = int((tally.fails + tally.passes == 0).sum())
    enough = closing.passes_needed(tally, 1, search.settings)
    unseen = int((~tally.failing & (found.predicted != PASS) & (tally.passes > 0)).sum())
    parts = [
        f"{int(tally.failing.sum())} of {len(few)} legal shapes failed",
        f"{int((tally.passing & ~few).sum())} passed in at least {_runs(enough)} each",
        f"{int(few.sum())} only passed, in fewer runs ({_span(tally.passes[few])})" if few.any() else "",
        f"{untested} not run" if untested else "",
    ]
    named = f"; by the rule {unseen} of those that only passed {'fails' if unseen == 1 else 'fail'}" if unseen else ""
    return f"fits what was run: {', '.join(p for p in parts if p)}{named}"


def _runs(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"


def _span(counts: NDArray[np.int64]) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{_runs(low)} each" if low == high else f"{low} to {high} each"


def _note(search: RuleSearch, found: Conclusion) -> str:
    if not search.settled:
        return "several rules still fit; this is the likeliest"
    if search.tally.flaky:
        return _flaky_note(search, found)
    missed = int((~search.tally.failing & (search.tally.passes == 0)).sum())
    if not missed:
        return "every legal shape was run and agrees"
    return f"fits everything run; {missed} {'shapes were' if missed > 1 else 'shape was'} not run"


def _merge_predicted(search: RuleSearch, found: Conclusion) -> tuple[str | None, ...]:
    """Evidence where there is some, the rules elsewhere. Under a flaky fault the rules also overrule single passes."""
    names = [report.label_text(label) for label in found.belief.labels]
    by_rule = ["pass" if label == PASS else names[label] for label in found.predicted.tolist()]
    seen = report.states(search.tally)
    if search.tally.flaky:
        return tuple(s if s not in (None, "pass") else rule for s, rule in zip(seen, by_rule, strict=True))
    return tuple(s if s is not None else rule for s, rule in zip(seen, by_rule, strict=True))


def _without_rule(search: RuleSearch) -> dict[str, Any]:
    """No rule fits: the contradiction, or the simple rule with stray exceptions, if there is one."""
    stray = best_with_exceptions(search.vocabulary, search.tally)
    if stray is None:
        note = "no rule of the vocabulary fits: each of them says pass at a failing shape or fail at a passing one"
        return {"rule_note": note, "contradictions": insight.contradictions(search.sweep, search.tally)}
    note = f'no rule fits everything; "{expr.words(stray.rule)}" does but for {len(stray.exceptions)} stray shapes'
    return {"rule_note": note, "exceptions": stray.exceptions}
