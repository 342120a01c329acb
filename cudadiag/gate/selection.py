"""Which shapes of a case the gate runs: what its `gate:` says, else the ends of the sweep; always the known crashes and
what failed before, with the passing neighbours of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cudadiag.case import Case
from cudadiag.case.expr import Expression, ExpressionError
from cudadiag.case.gating import Selector
from cudadiag.case.shapes import constants
from cudadiag.case.targets import Formula
from cudadiag.errors import UsageError
from cudadiag.gate.caserun import Chosen
from cudadiag.gate.covering import Covered, Neighbours, agrees, truth
from cudadiag.model import Sweep

MOST_EDGES = 8  # pairs on both sides of one condition
MOST_OF_A_CRASH = 4  # shapes run of one known crash
MOST_PAST = 16

WEIGHTS = {"boundary": 8, "failed before": 6, "changed sources": 5, "known crash": 4, "smoke": 2, "end": 1, "every": 1}
"""How telling a shape is. Edges of known rules come first: a rule that moved shows there."""


class Choosing:
    """Collects shapes with the reasons why."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self._why: dict[int, dict[str, None]] = {}
        self._neighbours = Neighbours(sweep)

    def add(self, indices: Iterable[int], why: str) -> None:
        for index in indices:
            self._why.setdefault(index, {})[why] = None

    def edges(self, inside: Callable[[int], bool], indices: Iterable[int]) -> list[int]:
        """Shapes of which a neighbour is on the other side, each pair, up to MOST_EDGES pairs in sweep order."""
        pairs: list[int] = []
        for index in indices:
            for other in self._neighbours.of(index):
                if inside(index) != inside(other):
                    pairs += [index, other]
            if len(pairs) >= 2 * MOST_EDGES:
                break
        return pairs

    def neighbours(self, index: int) -> list[int]:
        return self._neighbours.of(index)

    def chosen(self, changed: bool | None) -> tuple[Chosen, ...]:
        """Most telling first, then in sweep order. `changed`: the case's files are not what they were when it last
        ran."""
        more = ("changed sources",) if changed else ()
        rows = [Chosen(i, (*why, *more), sum(WEIGHTS[w] for w in (*why, *more))) for i, why in self._why.items()]
        return tuple(sorted(rows, key=lambda choice: (-choice.weight, choice.index)))


def choose(
    case: Case, crashes: Sequence[Covered] = (), failed_before: Sequence[int] = (), changed: bool | None = None
) -> tuple[Chosen, ...]:
    """The shapes to run. `crashes`: the shapes of each known crash. Raises CaseError where a condition of `gate:` fails
    at a shape."""
    choosing = Choosing(case.sweep)
    given = case.gate
    if given.every:
        choosing.add(range(len(case.sweep)), "every")
    for selector in given.smoke:
        holds = _holds(case, selector)
        choosing.add((i for i in range(len(case.sweep)) if holds(i)), "smoke")
    for selector in given.boundaries:
        choosing.add(choosing.edges(_holds(case, selector), range(len(case.sweep))), "boundary")
    for selector in given.known_bad:
        _add_crash(choosing, _matching(case, selector), "smoke")
    if not given.chooses:
        choosing.add(ends(case.sweep), "end")
    for covers in crashes:
        _add_crash(choosing, covers.indices, "known crash")
    for index in failed_before[:MOST_PAST]:
        choosing.add([index], "failed before")
        choosing.add(choosing.neighbours(index), "boundary")
    return choosing.chosen(changed)


def ends(sweep: Sweep) -> list[int]:
    """First and last shape, and for every axis the last shape of it nearest to the first shape otherwise."""
    found = {0, len(sweep) - 1}
    first = sweep.shapes[0]
    for j, axis in enumerate(sweep.axes):
        last = [i for i, shape in enumerate(sweep.shapes) if shape[j] == axis.values[-1]]
        found |= set(sorted(last, key=lambda i: _distance(first, sweep.shapes[i], j))[:1])
    return sorted(found)


def _distance(first: Sequence[object], shape: Sequence[object], skip: int) -> int:
    return sum(a != b for j, (a, b) in enumerate(zip(first, shape, strict=True)) if j != skip)


def _add_crash(choosing: Choosing, indices: Sequence[int], why: str) -> None:
    """Some shapes of a crash, first and last among them, and the edges of where it is expected."""
    inside = set(indices)
    some = indices if len(indices) <= MOST_OF_A_CRASH else [*indices[: MOST_OF_A_CRASH - 1], indices[-1]]
    choosing.add(some, why)
    edges = choosing.edges(inside.__contains__, indices)
    choosing.add(edges[:MOST_OF_A_CRASH], "boundary")


def _matching(case: Case, selector: Selector) -> list[int]:
    holds = _holds(case, selector)
    return [index for index in range(len(case.sweep)) if holds(index)]


def _holds(case: Case, selector: Selector) -> Callable[[int], bool]:
    if not isinstance(selector, Formula):
        return lambda index: agrees(case.sweep, index, selector)
    content = selector.content
    assert isinstance(content, Expression)  # a selector is no text
    known = constants(case)
    plain = content.names <= known.keys() | case.sweep.derived.keys() | {axis.name for axis in case.sweep.axes}
    holds = truth(content, case.sweep, known) if plain else _with_macros(case, content)

    def checked(index: int) -> bool:
        try:
            return holds(index)
        except ExpressionError as error:
            raise _error(case, selector, error) from None

    return checked


def _with_macros(case: Case, condition: Expression) -> Callable[[int], bool]:
    """A condition that uses macros which depend on the shape."""
    derived = {name: case.sweep.derived[name] for name in condition.names & case.sweep.derived.keys()}

    def holds(index: int) -> bool:
        columns = {name: column[index] for name, column in derived.items()}
        return bool(condition.evaluate({**case.values(case.sweep.shape(index)), **columns}))

    return holds


def _error(case: Case, selector: Formula, error: ExpressionError) -> UsageError:
    return case.error(selector.path, error.message, offset=error.offset + selector.shift)
