"""The search: which shapes to run next, and what follows from those that ran.

Pure functions of (sweep, observations, settings): no process, no clock, randomness only from `settings.seed`. A run can
be resumed, and re-analysed, from the observations of its ledger alone.
"""

from __future__ import annotations

from cudadiag.search.answer import (
    Answer,
    Counts,
    Effort,
    OrderDependence,
    Rate,
    Rival,
    RuleReport,
    Smallest,
)
from cudadiag.search.engine import answer, next_probes, shape_states
from cudadiag.search.observation import TO_THE_ANSWER, Batch, Observation, Probe, Purpose
from cudadiag.search.settings import Settings, Strategy

__all__ = [
    "TO_THE_ANSWER",
    "Answer",
    "Batch",
    "Counts",
    "Effort",
    "Observation",
    "OrderDependence",
    "Probe",
    "Purpose",
    "Rate",
    "Rival",
    "RuleReport",
    "Settings",
    "Smallest",
    "Strategy",
    "answer",
    "next_probes",
    "shape_states",
]
