"""One probe of the shape in question, as the cross-check and the explanations look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cudadiag.evidence import Reading, from_json
from cudadiag.evidence.expectations import TOOLS
from cudadiag.evidence.sanitizer import Health
from cudadiag.evidence.sanitizer.records import SanitizerRecord
from cudadiag.model import Caused, Fault, FaultKind, Outcome
from cudadiag.session.judged import Judged

OBSERVERS = ("plain", "blocking", "memcheck", "racecheck", "initcheck", "synccheck", "coredump")
"""In the order of the cross-check: from the one that changes least."""

HOST_KINDS = (FaultKind.HOST_SIGNAL, FaultKind.HOST_EXIT, FaultKind.HOST_EXCEPTION, FaultKind.DIED_AFTER_FINISH)
"""The program ended by itself; their numbers are signals and exit statuses, not CUDA errors."""


@dataclass(frozen=True)
class Witness:
    """A judged probe, with the questions that are asked of it."""

    judged: Judged

    @property
    def number(self) -> int:
        return self.judged.line.number

    @property
    def observer(self) -> str:
        return self.judged.line.observer

    @property
    def outcome(self) -> Outcome:
        return self.judged.outcome

    @property
    def fault(self) -> Fault | None:
        return self.judged.fault

    @property
    def kind(self) -> FaultKind | None:
        return self.fault.kind if self.fault else None

    @property
    def caused(self) -> Caused | None:
        return self.fault.caused if self.fault else None

    @property
    def emulated(self) -> bool:
        return self.judged.line.device == "emulator"

    @property
    def exact(self) -> bool:
        """The device checked every access itself: the emulated one with exact memory."""
        told = self.judged.line.facts.device_facts.get("device")  # only a kernel target runs on it
        return self.emulated and self.judged.line.memory_model == "exact" and told == "emulator"

    @property
    def result(self) -> Mapping[str, Any]:
        """What the worker reported; {} for a command."""
        return self.judged.line.facts.result

    @cached_property
    def reading(self) -> Reading:
        return from_json(self.judged.line.reading) if self.judged.line.reading else Reading()

    @property
    def tool(self) -> str | None:
        """The sanitizer's tool this probe ran under; None for others, and on the emulated device."""
        return self.observer if self.observer in TOOLS and not self.emulated else None

    @property
    def health(self) -> Health | None:
        """Of the tool; None where there was none."""
        if self.tool is None:
            return None
        report = self.reading.sanitizer
        return report.health if report else Health.NO_REPORT

    @property
    def checked(self) -> bool:
        """The tool did its work to the end."""
        return self.health is Health.OK

    @property
    def starved(self) -> bool:
        """Out of memory under a tool, which takes memory of its own."""
        return self.tool is not None and self.kind is FaultKind.OUT_OF_MEMORY

    @property
    def findings(self) -> tuple[SanitizerRecord, ...]:
        """What the tool itself recorded (no API errors, leaks or warnings)."""
        report = self.reading.sanitizer
        return report.findings(leaks=False) if report else ()

    @property
    def recorded_kinds(self) -> frozenset[FaultKind]:
        """Kinds of fault that a checker recorded: a sanitizer, the emulated device, or the exception of a core file."""
        kinds = {record.kind for record in self.findings}
        kinds |= {kind for r in self.judged.line.facts.device_records if (kind := _kind(r.get("kind"))) is not None}
        if self.reading.core:
            kinds |= {found.kind for found in self.reading.core.exceptions}
        return frozenset(kinds)

    @property
    def instruction(self) -> str | None:
        """The machine instruction at the fault, where a core file (read with nvdisasm) or the emulated device tells."""
        core = self.reading.core
        told = next((found.instruction for found in (*core.exceptions, *core.running)), None) if core else None
        return told or (self.caused.instruction if self.caused else None)

    @property
    def compared(self) -> bool:
        """Whether results were compared with a reference: a program that runs may have computed anything."""
        comparison = self.result.get("comparison")
        return isinstance(comparison, Mapping) and bool(comparison.get("outputs"))

    @property
    def error_number(self) -> int | None:
        return self.fault.number if self.fault else None


def _kind(value: object) -> FaultKind | None:
    return FaultKind(value) if value in {kind.value for kind in FaultKind} else None


def numbers(witnesses: Any) -> tuple[int, ...]:
    """The probe numbers of witnesses, in order."""
    return tuple(witness.number for witness in witnesses)
