"""The answer of a bisection: five lines first, then the evidence. Every number names the probe it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cudadiag.model import Fault, Outcome, Scalar, Sweep
from cudadiag.report.answerdoc import Confirmation
from cudadiag.report.fault import fault_lines, fault_words
from cudadiag.report.grid import LEGEND, LEGEND_TOO_FEW, grid_lines
from cudadiag.report.probe import how_words
from cudadiag.report.style import count_words, faint, outcome_word, printable, shape_words, strong
from cudadiag.search.answer import Answer, Rate
from cudadiag.search.rate import at_least
from cudadiag.session.judged import Judged

MAX_PROBES_NAMED = 12
MAX_RATES = 16  # shapes whose runs are told one by one
SETTLED = 0.9  # below this posterior the rule is one guess of several


@dataclass(frozen=True)
class Findings:
    """What a search found, with the probes it rests on."""

    sweep: Sweep
    answer: Answer
    history: Sequence[Judged]
    confirmation: Confirmation | None
    sources: Sequence[str]

    @property
    def first(self) -> Judged | None:
        """The probe that shows the first failing shape best: one alone, its cause known if possible. Where shapes fail
        only after others, the shortest sequence that failed."""
        alone = [
            j
            for j in self.history
            if j.line.index is not None
            and j.line.index == self.answer.first
            and j.outcome.is_failure
            and not j.line.sequence
        ]
        if self.answer.first is None and self.answer.order is not None:
            alone = sorted(
                (j for j in self.history if j.line.sequence and j.outcome.is_failure),
                key=lambda j: len(j.steps),
            )
        known = [j for j in alone if j.fault and j.fault.caused]
        return next(iter(known or alone), None)

    @property
    def fault(self) -> Fault | None:
        return self.first.fault if self.first else None


def answer_lines(found: Findings) -> list[str]:
    """The whole report."""
    return [*five_lines(found), "", *evidence_lines(found)]


def five_lines(found: Findings) -> list[str]:
    """First failing shape, rule, claim, fault, confirmation."""
    answer = found.answer
    if answer.first_shape is None:
        return _nothing_found(found)
    return [
        f"{strong('first failing shape')}  {strong(shape_words(answer.first_shape))}{_first_words(found)}",
        f"{strong('rule')}                 {_rule_words(answer)}",
        f"{strong('claim')}                {answer.claim_text}",
        f"{strong('fault')}                {_fault_words(found)}",
        f"{strong('confirmed')}            {_confirmed_words(found)}",
    ]


def _nothing_found(found: Findings) -> list[str]:
    answer = found.answer
    counts = answer.counts
    in_order = answer.order is not None and answer.order.kind != "independent"
    lines = [
        f"{strong('first failing shape')}  {'none alone: it depends on the order' if in_order else 'none found'}",
        f"{strong('claim')}                {answer.claim_text}",
        f"{strong('run')}                  {counts.run} of {count_words(counts.shapes, 'shape')}"
        f", {count_words(counts.processes, 'process', 'processes')}",
    ]
    if counts.unknown:
        lines.append(f"{strong('unresolved')}           {count_words(counts.unknown, 'shape')}: see the probes below")
    if answer.order:
        lines.append(f"{strong('order')}                {answer.order.text}")
    if in_order and (fault := found.fault) and found.first:
        after = count_words(len(found.first.steps) - 1, "other shape")
        lines.append(
            f"{strong('fault')}                {fault_words(fault)} (probe {found.first.line.number}, after {after})"
        )
    return lines


def _first_words(found: Findings) -> str:
    answer, first = found.answer, found.first
    place = f"shape {answer.first + 1} of {len(found.sweep)}" if answer.first is not None else ""
    probe = f", probe {first.line.number}" if first else ""
    return faint(f"  ({place}{probe})")


def _rule_words(answer: Answer) -> str:
    if not answer.rules:
        return answer.rule_note or "not looked for by this strategy"
    settled = all(rule.complete or rule.confidence >= SETTLED for rule in answer.rules)
    words = "; ".join(_where(rule.outcome, rule.text) for rule in answer.rules)
    return words if settled else f"{words} (not settled: see below)"


def _where(outcome: str, condition: str) -> str:
    """`fault where n > 8`; a rule without a condition needs no `where`."""
    always = condition in ("true", "whatever the shape")
    return f"{outcome} whatever the shape" if always else f"{outcome} where {condition}"


def _fault_words(found: Findings) -> str:
    first = found.first
    if first is None:
        return "(no probe of this shape alone)"
    fault = first.fault
    if fault is None:
        return f"{outcome_word(first.outcome)}: {printable(first.verdict.reason)}"
    return fault_words(fault)


def _confirmed_words(found: Findings) -> str:
    confirmation = found.confirmation
    if confirmation is None or not confirmation.runs:
        return "no: it was not repeated"
    runs = count_words(confirmation.runs, "fresh process", "fresh processes")
    bound = _bound_words(found) if confirmation.failed == confirmation.runs else ""
    return f"failed in {confirmation.failed} of {runs}, alone ({probes_words(confirmation.probes)}){bound}"


def _bound_words(found: Findings) -> str:
    """What so many failures without a pass say about the shape's rate."""
    if found.first is not None and found.first.line.device == "emulator":
        return "; the emulated device does the same each time"
    runs = found.confirmation.runs if found.confirmation else 0
    return f": rate above {100 * at_least(runs):.0f} % with 95 % confidence"


def probes_words(numbers: Sequence[int]) -> str:
    """`probe 3`, `probes 3, 4, 7`, `probes 3, 4, ... (15 in all)`."""
    shown = ", ".join(str(n) for n in numbers[:MAX_PROBES_NAMED])
    more = f", ... ({len(numbers)} in all)" if len(numbers) > MAX_PROBES_NAMED else ""
    return f"{'probe' if len(numbers) == 1 else 'probes'} {shown}{more}"


def evidence_lines(found: Findings) -> list[str]:
    """All that stands behind the five lines."""
    blocks = [
        _grid_block(found),
        _fault_block(found),
        _rules_block(found.answer),
        _shapes_block(found),
        _remarks_block(found.answer),
        _unresolved_block(found),
        _effort_block(found),
    ]
    lines: list[str] = []
    for block in blocks:
        if block:
            lines += [*block, ""]
    return lines[:-1]


def outcomes_seen(history: Sequence[Judged]) -> dict[int, set[Outcome]]:
    """What was seen at each shape, alone in its process. `unresolved` is shown only where nothing else was seen."""
    seen: dict[int, set[Outcome]] = {}
    for judged in history:
        if judged.line.index is not None and not judged.line.sequence:
            seen.setdefault(judged.line.index, set()).add(judged.outcome)
    for outcomes in seen.values():
        if len(outcomes) > 1:
            outcomes.discard(Outcome.UNRESOLVED)
    return seen


def _grid_block(found: Findings) -> list[str]:
    few = frozenset(found.answer.passed_too_seldom)
    rows = grid_lines(found.sweep, outcomes_seen(found.history), few)
    return [*rows, faint(f"{LEGEND}{LEGEND_TOO_FEW if few else ''}")] if rows else []


def _fault_block(found: Findings) -> list[str]:
    first = found.first
    if first is None or first.fault is None:
        return []
    head = (
        f"{strong('The fault')} {faint(f'(probe {first.line.number}, {how_words(first)}: {first.line.facts.folder})')}"
    )
    return [head, *[f"  {line}" for line in fault_lines(first.fault, found.sources)]]


def _rules_block(answer: Answer) -> list[str]:
    lines = []
    for rule in answer.rules:
        sure = "every legal shape was run and agrees" if rule.complete else f"confidence {rule.confidence:.3f}"
        others = " or ".join(_outcome_words(answer, label) for label in rule.unless)
        unless = f", unless {others}" if others else ""
        what = _where(rule.outcome, rule.expression)
        lines.append(f"  {what}{unless}: {count_words(rule.failing, 'shape')}, {sure}")
    if answer.rules and answer.rule_note and not all(rule.complete for rule in answer.rules):
        lines.append(f"  {answer.rule_note}")
    for rival in answer.rivals[:5]:
        outcome, apart = _outcome_words(answer, rival.outcome), _rival_words(rival.shape, rival.legal)
        lines.append(f"  not told apart: {_where(outcome, rival.expression)}{apart}")
    if len(answer.rivals) > 5:
        lines.append(f"  and {count_words(len(answer.rivals) - 5, 'more rival')} (--json has them)")
    return [strong("The rule"), *lines] if lines else []


def _outcome_words(answer: Answer, label: str) -> str:
    """`fault [v1/fault/memory-access/k]` without its signature, unless rules for several signatures need it."""
    word = label.partition(" [")[0]
    return word if sum(rule.outcome == word for rule in answer.rules) <= 1 else label


def _rival_words(shape: Mapping[str, Scalar] | None, legal: bool) -> str:
    if shape is None:
        return " (equal on every legal shape)"
    where = "in the sweep, not run" if legal else "outside the sweep"
    return f" ({shape_words(shape)}, {where}, would)"


def _shapes_block(found: Findings) -> list[str]:
    answer = found.answer
    lines = []
    if answer.smallest:
        minimal = "every smaller neighbour passes" if answer.smallest.minimal else _NOT_MINIMAL[_is_flaky(answer)]
        lines.append(f"  smallest failing  {shape_words(answer.smallest.shape)} ({minimal})")
        lines += [f"    on the way another fault was met: {met}" for met in answer.smallest.met]
    if answer.last_pass is not None:
        lines.append(f"  passes before it  {shape_words(found.sweep.shape(answer.last_pass))}{_passes_words(found)}")
    if answer.rate and answer.rate.runs:
        lines += _rate_lines(found.sweep, answer.rate)
    if answer.order:
        lines.append(f"  order             {answer.order.text}")
        lines += [f"    {shape_words(shape)}" for shape in answer.order.shapes]
    return [strong("Shapes"), *lines] if lines else []


_NOT_MINIMAL = {False: "its neighbours were not all run", True: "its neighbours were not all run enough to say"}


def _is_flaky(answer: Answer) -> bool:
    return answer.rate is not None and answer.rate.flaky


def _passes_words(found: Findings) -> str:
    """How often the shape before the first failing one passed, where once is not the end of it."""
    if not _is_flaky(found.answer):
        return ""
    index = found.answer.last_pass
    alone = (j for j in found.history if j.line.index == index and not j.line.sequence)
    runs = sum(j.outcome is Outcome.PASS for j in alone)
    few = ", too few to say" if index in found.answer.passed_too_seldom else ""
    return f" (in {count_words(runs, 'run')} of {runs}{few})"


def _rate_lines(sweep: Sweep, rate: Rate) -> list[str]:
    """The rate over all shapes counted, and under a flaky fault what each of them did."""
    what = "repeats" if rate.repeats else "fresh processes"
    repeated = sum(each.runs > 1 for each in rate.each)
    names = f" of the {count_words(len(rate.each), 'shape')} that the rule names"
    which = names if not rate.repeats else f" of {count_words(repeated, 'shape')}" if repeated > 1 else ""
    whatever = ", whatever the shape" if rate.whatever_the_shape else ""
    interval = f"95 % interval {rate.low:.2f} to {rate.high:.2f}"
    flaky = "flaky: " if rate.flaky else ""
    lines = [f"  failure rate      {flaky}{rate.fails} of {rate.runs} {what}{which}{whatever} ({interval})"]
    if not rate.flaky:
        return lines
    lines += [
        f"    {each.fails} of {each.runs}  {shape_words(sweep.shape(each.shape))}" for each in rate.each[:MAX_RATES]
    ]
    if len(rate.each) > MAX_RATES:
        lines.append(f"    and {count_words(len(rate.each) - MAX_RATES, 'more shape')} (--json has them)")
    return lines


def _remarks_block(answer: Answer) -> list[str]:
    lines = [f"  warning: {warning}" for warning in answer.warnings]
    lines += [f"  contradiction: {text}" for text in answer.contradictions]
    if answer.axes_without_effect:
        lines.append(f"  without effect: {', '.join(answer.axes_without_effect)}")
    if answer.exceptions:
        lines.append(
            f"  against the rule: shapes {', '.join(str(i + 1) for i in answer.exceptions[:20])} in sweep order"
        )
    return [strong("Remarks"), *lines] if lines else []


def _unresolved_block(found: Findings) -> list[str]:
    reasons: dict[str, list[int]] = {}
    for judged in found.history:
        if judged.outcome is Outcome.UNRESOLVED:
            reasons.setdefault(judged.verdict.reason, []).append(judged.line.number)
    lines = [f"  {printable(reason)} ({probes_words(numbers)})" for reason, numbers in reasons.items()]
    return [strong("Unresolved"), *lines] if lines else []


def _effort_block(found: Findings) -> list[str]:
    effort = found.answer.effort
    parts = ", ".join(f"{purpose} {count}" for purpose, count in effort.by_purpose.items() if count)
    bits = f"; naming the rule costs {effort.bits:.1f} bits" if effort.bits is not None else ""
    total = count_words(len(found.history), "process", "processes")
    return [f"{strong('Probes')}  {total} ({parts}); {effort.to_the_answer} to the answer{bits}"]


def confirmation(answer: Answer, history: Sequence[Judged]) -> Confirmation | None:
    """The repeats of the first failing shape alone, after the probe that found it; None where there is none."""
    runs = [j for j in history if j.line.index == answer.first and not j.line.sequence and j.outcome.is_evidence]
    found = next((place for place, judged in enumerate(runs) if judged.outcome.is_failure), None)
    if answer.first is None or found is None:
        return None
    later = runs[found + 1 :]
    return Confirmation(sum(j.outcome.is_failure for j in later), len(later), [j.line.number for j in later])


def safe_list(found: Findings) -> dict[str, object]:
    """Shapes known good, known bad, unknown, for a benchmark runner to skip. Only what was run counts as known, and a
    pass only where it was run often enough."""
    seen = outcomes_seen(found.history)
    few = frozenset(found.answer.passed_too_seldom)
    groups: dict[str, list[dict[str, Scalar]]] = {"good": [], "bad": [], "unknown": []}
    for index in range(len(found.sweep)):
        outcomes = seen.get(index, set())
        if any(outcome.is_failure for outcome in outcomes):
            group = "bad"
        elif outcomes == {Outcome.PASS} and index not in few:
            group = "good"
        else:
            group = "unknown"
        groups[group].append(found.sweep.shape(index))
    return {"document": "safe-list", "schema": 1, "claim": found.answer.claim.value, **groups}
