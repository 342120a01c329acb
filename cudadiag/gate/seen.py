"""One probe as the gate needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cudadiag.model import FaultKind, Outcome, Scalar, Verdict
from cudadiag.session.judged import Judged
from cudadiag.signature import Signature, signature

BROKEN_DEVICE = frozenset({FaultKind.ECC, FaultKind.NVLINK, FaultKind.DEVICE_LOST})
"""Faults of the machine, not of the program: no evidence for or against a case."""


@dataclass(frozen=True)
class Seen:
    """A probe's verdict with its signature (None for what is no failure). Of a broken device: `unresolved`."""

    index: int
    shape: Mapping[str, Scalar]
    verdict: Verdict
    signature: Signature | None
    probe: int = 0
    wall_s: float = 0.0
    folder: str = ""
    device: str = "none"

    @property
    def outcome(self) -> Outcome:
        return Outcome.UNRESOLVED if self.broken_device else self.verdict.outcome

    @property
    def broken_device(self) -> bool:
        return self.verdict.fault is not None and self.verdict.fault.kind in BROKEN_DEVICE

    @property
    def failed(self) -> bool:
        return self.outcome.is_failure

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASS

    @property
    def words(self) -> str:
        """Why, on one line."""
        return f"the GPU is broken: {self.verdict.reason}" if self.broken_device else self.verdict.reason


def from_judged(judged: Judged) -> Seen | None:
    """None for a probe of no shape of the sweep, or of several shapes in one process."""
    line = judged.line
    if line.index is None or line.sequence:
        return None
    return Seen(
        index=line.index,
        shape=dict(line.shape),
        verdict=judged.verdict,
        signature=signature(judged.verdict),
        probe=line.number,
        wall_s=line.facts.wall_s,
        folder=str(Path(line.facts.folder)) if line.facts.folder else "",
        device=line.device,
    )
