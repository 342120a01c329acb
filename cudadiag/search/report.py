"""From evidence and claim to an `Answer`: the parts that every strategy shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudadiag.model import Sweep
from cudadiag.search import closing
from cudadiag.search.answer import Answer, Counts, Effort, Smallest
from cudadiag.search.closing import Claimed
from cudadiag.search.memo import SweepMemo
from cudadiag.search.observation import TO_THE_ANSWER, Observation, Purpose
from cudadiag.search.settings import Settings
from cudadiag.search.tally import Label, Tally


def label_text(label: Label | None) -> str | None:
    """`fault`, or `fault [signature]`."""
    if label is None:
        return None
    outcome, signature = label
    return outcome if signature is None else f"{outcome} [{signature}]"


def base_answer(
    sweep: Sweep, observations: Sequence[Observation], tally: Tally, claimed: Claimed, settings: Settings, **more: Any
) -> Answer:
    """The answer with everything that follows from the evidence alone; `more` overrides and adds fields."""
    first = tally.first
    label = None if first is None else tally.labels[first]
    fields: dict[str, Any] = {
        "strategy": settings.effective.value,
        "claim": claimed.claim,
        "confidence": claimed.confidence,
        "claim_text": claimed.text,
        "counts": counts(sweep, tally, settings),
        "effort": effort(observations),
        "first": first,
        "first_shape": None if first is None else sweep.shape(first),
        "first_outcome": label[0] if label else None,
        "first_signature": label[1] if label else None,
        "last_pass": _last_pass(tally, first),
        "smallest": smallest(sweep, tally, closing.passes_needed(tally, 1, settings)),
        "rate": closing.measured_rate(tally),
        "predicted": states(tally),
        "passed_too_seldom": tuple(np.flatnonzero(closing.passed_too_seldom(tally, settings)).tolist()),
        "partial_ok": settings.partial_ok,
    }
    return Answer(**{**fields, **more})


def counts(sweep: Sweep, tally: Tally, settings: Settings, **more: Any) -> Counts:
    tested = tally.passes + tally.fails > 0
    first = tally.first or 0
    return Counts(
        shapes=len(sweep),
        run=int(tested.sum()),
        failing=int(tally.failing.sum()),
        unknown=int(tally.given_up(settings).sum()),
        processes=tally.processes,
        earlier=first,
        earlier_run=int(tested[:first].sum()),
        **more,
    )


def effort(observations: Sequence[Observation], bits: float | None = None) -> Effort:
    """Processes by purpose; observations without one (from a ledger of a sweep) count as scans."""
    by = Counter((o.purpose or Purpose.SCAN) for o in observations if o.alone)
    named: Mapping[str, int] = {p.value: by[p] for p in Purpose if by[p]}
    return Effort(named, sum(by[p] for p in TO_THE_ANSWER), bits)


def _last_pass(tally: Tally, first: int | None) -> int | None:
    if first is None:
        return None
    before = np.flatnonzero(tally.passing[:first])
    return int(before[-1]) if before.size else None


def states(tally: Tally) -> tuple[str | None, ...]:
    """What the evidence alone says of each shape: its failure, "pass", or None where it was not run."""
    return tuple(
        label_text(label) if label else ("pass" if passed else None)
        for label, passed in zip(map(tally.labels.get, range(len(tally.passes))), tally.passing.tolist(), strict=True)
    )


def smallest(sweep: Sweep, tally: Tally, passes: int = 1) -> Smallest | None:
    """The smallest failing shape known: of those that fail like the first one and have no axis larger than it has, the
    one with the first axis smallest, then the second, and so on.

    Claim: `minimal` where every one-step-smaller neighbour passed, in `passes` runs or more (1-minimal, as ddmin's).
    Costs no probe itself; the strategy asks for the neighbours. Numbers are ordered by value, other axes as declared.
    """
    if tally.first is None:
        return None
    label = tally.labels[tally.first]
    known = np.zeros(len(tally.passes), dtype=bool)
    known[[i for i, other in tally.labels.items() if other == label]] = True
    index = smallest_of(sweep, tally.first, known)
    below = neighbours_below(sweep, index)
    met = {label_text(tally.labels[i]) or "" for i in below if tally.labels.get(i, label) != label}
    minimal = all(tally.passing[i] and tally.passes[i] >= passes for i in below)
    return Smallest(index, sweep.shape(index), minimal, tuple(sorted(met)))


def smallest_of(sweep: Sweep, start: int, failing: NDArray[np.bool_]) -> int:
    """The smallest of the `failing` shapes that are no larger than `start` on any axis (which is failing itself)."""
    indices = np.flatnonzero(failing)
    ranks = ranks_of(sweep)[indices]
    own = ranks[np.searchsorted(indices, start)]
    inside = (ranks <= own).all(axis=1)
    best = np.lexsort((indices[inside], *ranks[inside].T[::-1]))[0]
    return int(indices[inside][best])


def _ranks(sweep: Sweep) -> NDArray[np.int32]:
    """For each shape the position of each of its values among those of the axis, smallest first."""
    columns = []
    for j, axis in enumerate(sweep.axes):
        order = {value: i for i, value in enumerate(_ascending(axis.values))}
        columns.append(np.fromiter((order[shape[j]] for shape in sweep.shapes), np.int32, len(sweep)))
    return np.stack(columns, axis=1) if columns else np.zeros((len(sweep), 0), dtype=np.int32)


ranks_of = SweepMemo(_ranks)


def _ascending(values: Sequence[Any]) -> list[Any]:
    return sorted(values) if _is_numeric(values) else list(values)


def neighbours_below(sweep: Sweep, index: int) -> list[int]:
    """Legal shapes that differ from `index` in one axis only, by the next smaller value there."""
    ranks = ranks_of(sweep)
    own = ranks[index]
    same = ranks == own
    others_same = same.sum(axis=1) == ranks.shape[1] - 1
    found = []
    for j in range(ranks.shape[1]):
        below = np.flatnonzero(others_same & ~same[:, j] & (ranks[:, j] < own[j]))
        if below.size:
            found.append(int(below[ranks[below, j].argmax()]))
    return found


def _is_numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
