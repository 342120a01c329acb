"""One thing the gate has to say, on a line of its own."""

from __future__ import annotations

from dataclasses import dataclass

from cudadiag.gate.baseline import Entry
from cudadiag.gate.seen import Seen
from cudadiag.gate.status import Status


@dataclass(frozen=True)
class Finding:
    """`indices`: the shapes it is about, in the case's sweep order. `group`: the signature in the grain in which bugs
    are told apart; `fine` the one of the probe `seen`, which shows it best. `fails` of `runs` at those shapes."""

    status: Status
    case: str
    reason: str
    indices: tuple[int, ...] = ()
    group: str | None = None
    fine: str | None = None
    entry: Entry | None = None
    fails: int = 0
    runs: int = 0
    seen: Seen | None = None
