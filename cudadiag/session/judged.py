"""A probe and what it means: the unit that plans read and reports print."""

from __future__ import annotations

from dataclasses import dataclass

from cudadiag.model import Fault, Outcome, Verdict
from cudadiag.store.lines import ProbeLine


@dataclass(frozen=True)
class Judged:
    """One line of the ledger with its verdict (derived anew from the facts, never stored as truth).

    `steps`: for a process that ran several shapes, the verdict of each shape it reached; `verdict` is the last.
    """

    line: ProbeLine
    verdict: Verdict
    signature: str | None = None
    steps: tuple[Verdict, ...] = ()
    step_signatures: tuple[str | None, ...] = ()

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    @property
    def fault(self) -> Fault | None:
        return self.verdict.fault

    @property
    def us_per_call(self) -> float | None:
        """Time of one call in microseconds, measured by the worker on the device; None for targets that report none."""
        return _number(self.line.facts.result.get("us_per_call"))

    @property
    def reference_us(self) -> float | None:
        """Time of the reference on the host in microseconds."""
        seconds = _number(self.line.facts.result.get("reference_s"))
        return None if seconds is None else seconds * 1e6


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
