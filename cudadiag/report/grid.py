"""The grid of shapes: one letter per shape, the last axis across, every combination of the others a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import click

from cudadiag.model import Outcome, Scalar, Sweep
from cudadiag.report.style import OUTCOME_COLOURS, scalar_word

LETTERS = {
    Outcome.PASS: ".",
    Outcome.FAULT: "F",
    Outcome.HANG: "H",
    Outcome.WRONG: "W",
    Outcome.SKIPPED: "S",
    Outcome.UNRESOLVED: "?",
}
UNKNOWN, ILLEGAL, MIXED, TOO_FEW = "·", " ", "~", ","
LEGEND = ". pass  F fault  H hang  W wrong  S skipped  ? unresolved  ~ differs from run to run  · not run"
LEGEND_TOO_FEW = "  , only passed, in too few runs to say"
MAX_ROWS, MAX_COLUMNS = 60, 64


def grid_lines(sweep: Sweep, outcomes: Mapping[int, set[Outcome]], too_few: Set[int] = frozenset()) -> list[str]:
    """Lines of the grid, [] when too large to read. `outcomes`: index in sweep order -> what was seen there. `too_few`:
    those that only passed, in too few runs to count as passing."""
    if not sweep.axes or not sweep.shapes:
        return []
    across = sweep.axes[-1]
    if len(across.values) > MAX_COLUMNS or len(sweep.shapes) > MAX_ROWS * MAX_COLUMNS:
        return []
    rows = _rows(sweep)
    if len(rows) > MAX_ROWS:
        return []
    widths = [max(len(a.name), *(len(scalar_word(v)) for v in a.values)) for a in sweep.axes[:-1]]
    names = _label([axis.name for axis in sweep.axes[:-1]], widths)
    margin = len(names)
    heads = [scalar_word(value) for value in across.values]
    cell = max(len(head) for head in heads) + 1
    lines = [f"{names}  {across.name}", " " * margin + " " + "".join(f"{head:>{cell}}" for head in heads)]
    for row, indices in rows.items():
        cells = "".join(_cell(indices.get(_key(value)), outcomes, too_few, cell) for value in across.values)
        lines.append(f"{_label([scalar_word(v) for v in row], widths)} {cells}".rstrip())
    return lines


def _label(words: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(f"{word:>{width}}" for word, width in zip(words, widths, strict=True))


def _rows(sweep: Sweep) -> dict[tuple[Scalar, ...], dict[tuple[str, Scalar], int]]:
    """For each combination of the leading axes, the index of the shape at each value of the last."""
    rows: dict[tuple[Scalar, ...], dict[tuple[str, Scalar], int]] = {}
    for index, shape in enumerate(sweep.shapes):
        rows.setdefault(shape[:-1], {})[_key(shape[-1])] = index
    return rows


def _key(value: Scalar) -> tuple[str, Scalar]:
    return type(value).__name__, value


def _cell(index: int | None, outcomes: Mapping[int, set[Outcome]], too_few: Set[int], width: int) -> str:
    if index is None:
        return f"{ILLEGAL:>{width}}"
    seen = outcomes.get(index, set())
    if len(seen) > 1:
        return f"{MIXED:>{width}}"
    if not seen:
        return f"{UNKNOWN:>{width}}"
    (outcome,) = seen
    if outcome is Outcome.PASS and index in too_few:
        return f"{TOO_FEW:>{width}}"
    return " " * (width - 1) + click.style(LETTERS[outcome], fg=OUTCOME_COLOURS[outcome], bold=outcome.is_failure)
