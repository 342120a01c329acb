"""The evidence about one probe as the rules look at it: facts, reading and expectations, with the questions they
share."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cudadiag.evidence.codes import codes_by_name, is_sticky
from cudadiag.evidence.driver_log import DriverLogEntry
from cudadiag.evidence.error_lines import recognise
from cudadiag.evidence.expectations import Expectations
from cudadiag.evidence.reading import Reading
from cudadiag.evidence.sanitizer import Health
from cudadiag.evidence.xid_lines import XidLine, same_device, xid_lines
from cudadiag.model import Noticed

if TYPE_CHECKING:
    from harness.records import ProbeFacts

BEFORE_LAUNCH = (None, "import", "context", "compile", "allocate")
BEFORE_CONTEXT = (None, "import", "context")


@dataclass(frozen=True)
class CudaFailure:
    """One failed CUDA call, whoever told it: the worker, the program's own output, the driver's log or a sanitizer."""

    number: int | None
    name: str | None
    noticed: Noticed
    source: str  # "worker", "output", "driver log", "sanitizer"
    step: str | None = None

    @property
    def is_sticky(self) -> bool:
        return is_sticky(self.number)

    @property
    def is_launch(self) -> bool:
        """True where the failing call is a launch, or asks for a launch's error right after it."""
        return bool(re.search(r"Launch|GetLastError|PeekAtLastError", self.noticed.call or ""))


@dataclass(frozen=True)
class Evidence:
    """Everything a rule may look at."""

    facts: ProbeFacts
    reading: Reading
    expected: Expectations

    @functools.cached_property
    def own_end(self) -> tuple[int | None, int | None]:
        """The program's own exit status and signal. Inside a tool its parent's word counts, not the tool's; where
        that is missing, the tool's line that the program failed, or its absence from a whole report."""
        inner = self.facts.inner_exit
        if inner is not None and ("exit_code" in inner or "signal" in inner):
            return _int(inner.get("exit_code")), _int(inner.get("signal"))
        report = self.reading.sanitizer
        if self.expected.tool and report and report.health is Health.OK and not report.program_failed:
            return 0, None
        return self.facts.exit_code, self.facts.signal

    @property
    def exit_code(self) -> int | None:
        return self.own_end[0]

    @property
    def signal(self) -> int | None:
        return self.own_end[1]

    @property
    def ended_well(self) -> bool:
        return self.exit_code == 0 and self.signal is None

    @property
    def error(self) -> Mapping[str, Any]:
        """What the worker says went wrong, {} for nothing."""
        value = self.facts.result.get("error")
        return value if isinstance(value, Mapping) else {}

    @property
    def step(self) -> str | None:
        """The step the child was in: where its error arose, else the last one it announced."""
        return self.error.get("step") or self.facts.last_step

    @property
    def finished(self) -> bool:
        """The worker reached its end mark; of a Python function among several, that it returned and the device was
        waited for."""
        result = self.facts.result
        returned = isinstance(result.get("synchronised"), list | tuple)
        return bool(result.get("finished")) or returned or self.facts.last_step == "finished"

    @property
    def position(self) -> int:
        """How many shapes this process had begun before the one it ended with."""
        steps = self.facts.result.get("steps")
        return max(0, len(steps) - 1) if isinstance(steps, list | tuple) else 0

    @functools.cached_property
    def worker_failure(self) -> CudaFailure | None:
        """The CUDA error the worker caught, by its attributes or by the words of its message."""
        error = self.error
        name, number = error.get("cuda_name"), _int(error.get("number"))
        text = str(error.get("text") or error.get("message") or "")
        told = recognise(text) if text else []
        if number is None and name in codes_by_name():
            number = codes_by_name()[name].number
        if number is None and told:
            number, name = told[0].number, told[0].name
        if number is None:
            return None
        call = error.get("call") or (told[0].call if told else None)
        noticed = Noticed(call, error.get("file"), _int(error.get("line")), None, text[:400] or None)
        return CudaFailure(number, name, noticed, "worker", error.get("step"))

    @functools.cached_property
    def printed_failure(self) -> CudaFailure | None:
        """The first CUDA error the program printed."""
        line = self.reading.error
        if line is None:
            return None
        host = self.reading.host_error
        file, number = line.file, line.line
        if file is None and number is None and host is not None and host.log_line == line.log_line:
            file, number = host.file, host.line
        noticed = Noticed(line.call, file, number, line.log_line, line.text)
        return CudaFailure(line.number, line.name, noticed, "output")

    @functools.cached_property
    def logged_failures(self) -> tuple[CudaFailure, ...]:
        """The failed calls the driver logged, in order; under a sanitizer those it saw."""
        logged = [
            CudaFailure(e.number, e.name, Noticed(e.call, None, None, e.log_line, e.text), "driver log")
            for e in self.reading.driver_log or ()
            if e.is_error
        ]
        report = self.reading.sanitizer
        seen = [
            CudaFailure(r.number, r.name, Noticed(r.api, None, None, r.log_line, r.message), "sanitizer")
            for r in (report.records if report else ())
            if r.is_api and r.number is not None
        ]
        return (*logged, *seen)

    @property
    def told_failure(self) -> CudaFailure | None:
        """The CUDA error the program itself noticed."""
        return self.worker_failure or self.printed_failure

    @functools.cached_property
    def logged_launch(self) -> CudaFailure | None:
        """The first launch the driver refused."""
        refused = (f for f in self.logged_failures if "Launch" in (f.noticed.call or "") and not f.is_sticky)
        return next(refused, None)

    def driver_words(self) -> str | None:
        """The driver's plain words before the first failed call, such as which limit a launch is over."""
        words: str | None = None
        for entry in self.reading.driver_log or ():
            if entry.is_error and words:
                return words
            words = _plain_words(entry) or words
        return words

    @functools.cached_property
    def own_xids(self) -> tuple[XidLine, ...]:
        """The Xids that are surely of this probe: of its process, or of its device."""
        pid = self.facts.launch.get("pid")
        pci = str(self.facts.device_facts.get("pci_bus_id") or "")
        lines = xid_lines(self.facts.xid.lines)
        return tuple(x for x in lines if (pid is not None and x.pid == pid) or (pci and same_device(x.pci, pci)))

    def xid_words(self) -> str | None:
        """The first of them that is no after-effect (45)."""
        line = next((x for x in self.own_xids if x.number != 45), None)
        return f"Xid {line.number}: {line.text}" if line is not None else None


def _plain_words(entry: DriverLogEntry) -> str | None:
    is_words = entry.number is None and entry.text and not entry.text.startswith("Sticky error")
    return entry.text if is_words and not entry.is_noise else None


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
