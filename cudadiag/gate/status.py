"""What the gate says of a crash or a shape: a closed list, with what each means for the exit code."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Told apart, each with a line of its own."""

    NEW = "new"  # a crash that the baseline does not have
    CHANGED = "changed"  # another signature at a shape whose crash is known
    UNDECIDED = "undecided"  # planned, and no evidence: no device, a tool missing, stopped
    EXPIRED = "expired"  # a known crash whose date has passed
    VANISHED = "vanished"  # an entry of the baseline that no case or shape fits any more
    FIXED = "fixed"  # as many fresh passes as the recorded rate demands, and no failure
    FLAKY = "flaky"  # a known crash that fails in some runs only
    KNOWN = "known"  # fails as the baseline says
    LEFT_OUT = "left-out"  # not run, as asked: by the budget, by the case, by what the case requires

    @property
    def is_red(self) -> bool:
        return self in (Status.NEW, Status.CHANGED)

    @property
    def is_stale(self) -> bool:
        """The baseline says what is no longer so: `--strict` fails."""
        return self in (Status.EXPIRED, Status.VANISHED, Status.FIXED)
