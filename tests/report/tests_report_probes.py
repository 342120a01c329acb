"""Probes made by hand for the report's tests."""

from __future__ import annotations

from typing import Any

from cudadiag.model import Outcome, Sweep, Verdict
from cudadiag.session.judged import Judged
from cudadiag.store.lines import ProbeLine
from harness.records import ProbeFacts


def judged(
    index: int, sweep: Sweep, outcome: Outcome = Outcome.PASS, us: float | None = None, reference_s: float | None = None
) -> Judged:
    """One probe of a shape; its number is one more than its index."""
    result: dict[str, Any] = {"us_per_call": us, "reference_s": reference_s}
    line = ProbeLine(
        number=index + 1,
        shape=sweep.shape(index),
        index=index,
        purpose="sweep",
        observer="blocking",
        device="none",
        memory_model="exact",
        repeat=0,
        started="2026-01-01T00:00:00+00:00",
        facts=ProbeFacts(exit_code=0, result={k: v for k, v in result.items() if v is not None}),
    )
    proof = "exit status 0" if outcome is Outcome.PASS else None
    return Judged(line, Verdict(outcome, "because", proof=proof))
