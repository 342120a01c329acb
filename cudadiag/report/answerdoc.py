"""The JSON document of an answer: `cudadiag bisect --json` and `cudadiag explain --json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from cudadiag.diagnose.documents import AgreementPart
from cudadiag.model import Fault
from cudadiag.report.documents import ProbeDocument, RunInfo
from cudadiag.search.answer import LONGEST_PREDICTION, Answer


@dataclass(frozen=True)
class Confirmation:
    """The failing shape repeated alone in fresh processes at the end: `failed` of `runs`, and which probes."""

    failed: int
    runs: int
    probes: Sequence[int]


@dataclass(frozen=True)
class BisectDocument:
    """`cudadiag bisect --json` and `explain --json`. `first_probe` is the number of the probe whose fault is shown;
    `observers` what other observers said of that shape, where they were asked."""

    document: str
    schema: int
    exit_code: int
    info: RunInfo
    answer: Answer
    fault: Fault | None
    first_probe: int | None
    confirmation: Confirmation | None
    probes: Sequence[ProbeDocument]
    observers: AgreementPart | None = None


def without_long_prediction(answer: Answer) -> Answer:
    """For a very long sweep the outcome predicted for each shape is left out: [] in its place."""
    return dataclasses.replace(answer, predicted=()) if len(answer.predicted) > LONGEST_PREDICTION else answer
