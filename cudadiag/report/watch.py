"""Watching a run: a live bar, grid and rules when a person sits at a terminal, plain lines otherwise. All on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cudadiag.model import Outcome, Sweep
from cudadiag.report.grid import LEGEND, grid_lines
from cudadiag.report.probe import short_words
from cudadiag.report.style import count_words, faint, outcome_word, seconds_words, shape_words
from cudadiag.session.apart import reached
from cudadiag.session.judged import Judged
from cudadiag.session.progress import Progress
from cudadiag.session.task import Task

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


def watcher(sweep: Sweep, *, lines: bool = True) -> Progress:
    """Who watches this run. `lines`: whether plain output has a line for every probe (a sweep prints its own rows)."""
    if sys.stderr.isatty():
        return LiveWatcher(sweep)
    return PlainWatcher(lines)


def probe_row(judged: Judged) -> str:
    """`probe 3   fault  q_len=9 prefix=4096   illegal-address (700)   0.9 s`."""
    line = judged.line
    shape = shape_words(line.shape)
    if len(line.sequence) > 1:
        shape = _in_sequence(judged)
    words = [f"probe {line.number:<4}", outcome_word(judged.outcome, 10), shape]
    what = short_words(judged)
    return "  ".join([*words, what, faint(f"{line.purpose}, {seconds_words(line.facts.wall_s)}")])


def _in_sequence(judged: Judged) -> str:
    """The shape a process was meant for, or which of its shapes ended it before it came to that."""
    line, came_to = judged.line, len(reached(judged))
    if came_to < len(line.sequence):
        return f"shape {came_to} of {len(line.sequence)} in one process"
    return f"{shape_words(line.shape)} after {count_words(came_to - 1, 'other')}"


class PlainWatcher:
    """One line per probe as it ends: what a log wants."""

    def __init__(self, lines: bool = True) -> None:
        self._lines = lines

    def note(self, text: str) -> None:
        click.echo(f"cudadiag: {text}", err=True)

    def asking(self, doing: str, best: Sequence[str], wanted: int) -> None: ...

    def started(self, task: Task, slot: str) -> None: ...

    def finished(self, judged: Judged) -> None:
        if self._lines:
            click.echo(probe_row(judged), err=True)

    def closed(self) -> None: ...


class LiveWatcher:
    """What a person sees: what is being done, the grid filling in, the best rules so far, what runs now."""

    def __init__(self, sweep: Sweep) -> None:
        from rich.console import Console
        from rich.live import Live

        self._sweep = sweep
        self._outcomes: dict[int, set[Outcome]] = {}
        self._running: list[str] = []
        self._doing, self._best, self._ended = "", (), 0  # type: tuple[str, tuple[str, ...], int]
        self._live: Live = Live(
            console=Console(stderr=True), get_renderable=self._view, transient=True, refresh_per_second=8
        )
        self._live.start()

    def note(self, text: str) -> None:
        self._print(f"cudadiag: {text}")

    def asking(self, doing: str, best: Sequence[str], wanted: int) -> None:
        self._doing, self._best = doing, tuple(best)

    def started(self, task: Task, slot: str) -> None:
        self._running.append(shape_words(task.shape))

    def finished(self, judged: Judged) -> None:
        self._ended += 1
        words = shape_words(judged.line.shape)
        if words in self._running:
            self._running.remove(words)
        if judged.line.index is not None and not judged.line.sequence:
            self._outcomes.setdefault(judged.line.index, set()).add(judged.outcome)

    def closed(self) -> None:
        self._live.stop()

    def row(self, text: str) -> None:
        """A line of data while the view is on the same terminal: above it, to stay."""
        self._print(text)

    def _print(self, text: str) -> None:
        from rich.text import Text

        self._live.console.print(Text.from_ansi(text), soft_wrap=True)

    def _view(self) -> Text:
        from rich.text import Text

        rows = grid_lines(self._sweep, self._outcomes)
        if rows:
            rows.append(faint(LEGEND))
        rows += [f"rule so far: {rule}" for rule in self._best[:3]]
        rows.append(f"{count_words(self._ended, 'probe')} ended; {self._doing or 'working'}")
        rows += [faint(f"  now: {shape}") for shape in self._running[:8]]
        return Text.from_ansi("\n".join(rows))


def print_row(progress: Progress, text: str) -> None:
    """A row of data on stdout at once, without tearing a live view on the same terminal."""
    if isinstance(progress, LiveWatcher) and sys.stdout.isatty():
        progress.row(text)
    else:
        click.echo(text)
        sys.stdout.flush()
