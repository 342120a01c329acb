"""A sign of life on stderr every couple of seconds, for work of which nobody knows how long it takes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from cudadiag.report.style import printable

EVERY_S = 2.0
WIDTH = 100
CLEAR_LINE = "\r\x1b[K"


@contextmanager
def ticking(words: Callable[[], str], every_s: float = EVERY_S) -> Iterator[None]:
    """Prints `words()` every `every_s` seconds while the body runs: on a terminal always on the same line."""
    ended = threading.Event()
    thread = threading.Thread(target=_tick, args=(words, every_s, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tick(words: Callable[[], str], every_s: float, ended: threading.Event) -> None:
    live = sys.stderr.isatty()
    told = False
    while not ended.wait(every_s):
        text = f"cudadiag: {printable(words())}"
        click.echo(f"{CLEAR_LINE}{text[:WIDTH]}" if live else text, err=True, nl=not live)
        told = True
    if live and told:
        click.echo(CLEAR_LINE, err=True, nl=False)
