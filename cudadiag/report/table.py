"""The table of a sweep: a row for each probe in sweep order, its time beside the reference's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cudadiag.model import Outcome, Sweep
from cudadiag.report.probe import short_words
from cudadiag.report.style import (
    count_words,
    faint,
    outcome_word,
    scalar_word,
    shape_words,
    strong,
    us_words,
)
from cudadiag.session.judged import Judged

NUMBER_WIDTH = 11


class SweepTable:
    """Column widths are fixed by the axes, so that rows can be printed as probes end."""

    def __init__(self, sweep: Sweep, timed: bool) -> None:
        self._timed = timed
        self._names = [axis.name for axis in sweep.axes]
        self._widths = [max(len(a.name), *(len(scalar_word(v)) for v in a.values)) for a in sweep.axes]

    def header(self) -> str:
        names = [f"{name:>{width}}" for name, width in zip(self._names, self._widths, strict=True)]
        times = ["us/call", "reference"] if self._timed else ["seconds"]
        return strong("  ".join([*names, *(f"{time:>{NUMBER_WIDTH}}" for time in times), "outcome"]))

    def row(self, judged: Judged) -> str:
        shape = judged.line.shape
        cells = [f"{scalar_word(shape[n]):>{w}}" for n, w in zip(self._names, self._widths, strict=True)]
        if self._timed:
            times = [us_words(judged.us_per_call), us_words(judged.reference_us)]
        else:
            times = [f"{judged.line.facts.wall_s:.3f}"]
        what = short_words(judged)
        cells += [f"{time:>{NUMBER_WIDTH}}" for time in times]
        cells.append(outcome_word(judged.outcome, 10 if what else 0))
        return "  ".join([*cells, f"{what} {faint(f'(probe {judged.line.number})')}" if what else ""]).rstrip()


class InOrder:
    """Holds back rows that ended early, so that those given out are in sweep order."""

    def __init__(self, repeat: int = 1) -> None:
        self._repeat = repeat  # probes that each shape has
        self._waiting: dict[int, list[Judged]] = {}
        self._given: Counter[int] = Counter()
        self._next = 0

    def add(self, judged: Judged) -> list[Judged]:
        """The rows that can be given out now."""
        if judged.line.index is None:
            return [judged]
        self._waiting.setdefault(judged.line.index, []).append(judged)
        ready: list[Judged] = []
        while self._next in self._waiting:
            rows = self._waiting[self._next]
            ready += rows
            self._given[self._next] += len(rows)
            rows.clear()
            if self._given[self._next] < self._repeat:
                break
            del self._waiting[self._next]
            self._next += 1
        return ready

    def rest(self) -> list[Judged]:
        """What is still held back, in sweep order."""
        rows = [judged for index in sorted(self._waiting) for judged in self._waiting[index]]
        self._waiting.clear()
        return rows


def summary_lines(sweep: Sweep, history: Sequence[Judged]) -> list[str]:
    """Counts, the first failing shape, what was not run."""
    counts = Counter(judged.outcome for judged in history)
    words = ", ".join(f"{counts[o]} {o.value}" for o in Outcome if counts[o]) or "nothing run"
    run = {judged.line.index for judged in history}
    lines = [f"{len(run)} of {count_words(len(sweep), 'shape')} run: {words}"]
    failing = [j for j in history if j.outcome.is_failure and j.line.index is not None]
    if failing:
        first = min(failing, key=lambda judged: (judged.line.index, judged.line.number))
        sure = "" if _all_before(first, run) else " (not all before it were run)"
        lines.append(f"first failing shape: {shape_words(first.line.shape)}, probe {first.line.number}{sure}")
    return lines


def _all_before(first: Judged, run: set[int | None]) -> bool:
    return all(index in run for index in range(first.line.index or 0))
