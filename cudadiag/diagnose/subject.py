"""The shape in question: which one, and who says so. A fault may need other shapes before it in the same process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cudadiag.model import Outcome, Scalar, Sweep
from cudadiag.search import Answer
from cudadiag.session.judged import Judged


@dataclass(frozen=True)
class Rule:
    """The condition that the failing shapes obey, as the search found it."""

    outcome: str
    expression: str


@dataclass(frozen=True)
class Subject:
    """`sequence`: indices of the shapes that must run in one process, `index` the last; () where it fails alone."""

    shape: Mapping[str, Scalar]
    index: int | None
    origin: str
    sequence: tuple[int, ...] = ()
    rules: tuple[Rule, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "shape": dict(self.shape),
            "index": self.index,
            "origin": self.origin,
            "sequence": list(self.sequence),
            "rules": [[rule.outcome, rule.expression] for rule in self.rules],
        }


def subject_from_json(data: Mapping[str, Any]) -> Subject:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError for another document."""
    return Subject(
        shape=dict(data["shape"]),
        index=data["index"],
        origin=str(data["origin"]),
        sequence=tuple(int(i) for i in data["sequence"]),
        rules=tuple(Rule(str(outcome), str(text)) for outcome, text in data["rules"]),
    )


def given(sweep: Sweep, shape: Mapping[str, Scalar], origin: str = "the shape given") -> Subject:
    """A shape that the user named; it need not be on the axes."""
    return Subject(shape, index_of(sweep, shape), origin)


def index_of(sweep: Sweep, shape: Mapping[str, Scalar]) -> int | None:
    """Where a shape stands in sweep order; None for one outside the sweep."""
    wanted = tuple(shape.get(axis.name) for axis in sweep.axes)
    return next((i for i, values in enumerate(sweep.shapes) if values == wanted), None)


def of_answer(answer: Answer, sweep: Sweep, history: Sequence[Judged], origin: str) -> Subject | None:
    """The first failing shape an answer knows, or the sequence it found; None where nothing failed."""
    rules = tuple(Rule(rule.outcome, rule.expression) for rule in answer.rules)
    if answer.first is not None:
        return Subject(sweep.shape(answer.first), answer.first, f"the first failing shape of {origin}", (), rules)
    order = answer.order
    if order is not None and order.kind != "independent" and order.sequence:
        last = order.sequence[-1]
        return Subject(sweep.shape(last), last, f"the shortest failing sequence of {origin}", order.sequence, rules)
    return of_sequences(sweep, history, origin)


def of_sequences(sweep: Sweep, history: Sequence[Judged], origin: str) -> Subject | None:
    """The shortest run of several shapes in one process that ended with a failure."""
    failing = [
        judged.line.sequence[: len(judged.steps)]
        for judged in history
        if judged.line.sequence and judged.steps and judged.steps[-1].outcome.is_failure
    ]
    shortest = min(failing, key=len, default=())
    if not shortest:
        return None
    last = shortest[-1]
    return Subject(sweep.shape(last), last, f"a failing sequence of {origin}", shortest)


def of_one_run(sweep: Sweep, history: Sequence[Judged], origin: str) -> Subject | None:
    """The failing shape of a `run`, which had one shape only."""
    bad = next((judged for judged in history if judged.outcome not in (Outcome.PASS, Outcome.UNRESOLVED)), None)
    return given(sweep, bad.line.shape, f"the failing shape of {origin}") if bad else None
