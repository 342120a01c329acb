"""How a run ends, as an exit code: something wrong found wins over unresolved, unresolved over nothing wrong."""

from __future__ import annotations

from collections.abc import Iterable

from cudadiag.errors import EXIT_CLEAN, EXIT_FOUND, EXIT_UNDECIDED
from cudadiag.model import Outcome


def exit_code(outcomes: Iterable[Outcome], *, complete: bool = True) -> int:
    """`complete`: all that was asked for was run. Nothing run at all decides nothing."""
    seen = set(outcomes)
    if any(outcome.is_failure for outcome in seen):
        return EXIT_FOUND
    if not seen or not complete or Outcome.UNRESOLVED in seen:
        return EXIT_UNDECIDED
    return EXIT_CLEAN
