"""What earlier runs of a case tell: which shapes failed, what its files were, how long a probe takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from cudadiag.case import Case
from cudadiag.case.sources import hashes
from cudadiag.errors import CudadiagError
from cudadiag.gate.seen import Seen, from_judged
from cudadiag.session.judging import judging_from_json
from cudadiag.store.folders import RunEntry
from cudadiag.store.ledger import Ledger, read_ledger

LOOK_BACK = 3  # newest runs of the case


@dataclass(frozen=True)
class Past:
    """`failed`: shapes, latest run first. `changed`: the files against the newest run's; None where there is none."""

    failed: tuple[tuple[tuple[str, object], ...], ...] = ()
    changed: bool | None = None
    probe_s: float | None = None

    def indices(self, case: Case) -> list[int]:
        """The failed shapes that the sweep still has."""
        if not self.failed:
            return []
        at = {tuple(case.sweep.shape(i).items()): i for i in range(len(case.sweep))}
        return list(dict.fromkeys(at[shape] for shape in self.failed if shape in at))  # type: ignore[index]


def look_back(case: Case, runs: list[RunEntry]) -> Past:
    """What the newest runs of this case tell. A ledger that cannot be read tells nothing."""
    newest = [run for run in reversed(runs) if run.case_name == case.name][:LOOK_BACK]
    ledgers = list(_readable(newest))
    if not ledgers:
        return Past()
    seen = [s for ledger in ledgers for s in seen_in(ledger)]
    failed = tuple(dict.fromkeys(tuple(s.shape.items()) for s in seen if s.failed))
    now = sorted(hashes(case).values())
    times = [s.wall_s for s in seen if s.wall_s > 0]
    return Past(failed, now != sorted(ledgers[0].run.sources.values()), statistics.median(times) if times else None)


def seen_in(ledger: Ledger) -> list[Seen]:
    """The probes of a ledger, judged anew."""
    judging = judging_from_json(ledger.run.settings.get("judging", {}))
    return [s for line in ledger.probes if (s := from_judged(judging.judged(line))) is not None]


def _readable(runs: list[RunEntry]) -> Iterator[Ledger]:
    for run in runs:
        try:
            ledger = read_ledger(run.ledger)
            judging_from_json(ledger.run.settings.get("judging", {}))
        except CudadiagError:
            continue
        yield ledger
