"""The joint to the evidence: the files of a probe read, its verdict derived. Needs the ledger only, not the case."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cudadiag.errors import UsageError
from cudadiag.evidence import Expectations, Reading, from_json, judge, read
from cudadiag.evidence.reading import FILES
from cudadiag.evidence.sanitizer import Health
from cudadiag.model import Verdict
from cudadiag.session.judged import Judged
from cudadiag.session.steps import step_facts
from cudadiag.signature import signature
from cudadiag.store.lines import ProbeLine
from harness.records import ProbeFacts, StreamFacts

MAX_FILE_BYTES = 256 << 20  # of one file read whole; streams are capped far below by the harness


@dataclass(frozen=True)
class Judging:
    """How probes of a run are judged. `base` is what holds for all of them; the probe adds observer and device."""

    base: Expectations
    asked_bytes: Mapping[int, int] = dataclasses.field(default_factory=dict)  # index -> bytes of its buffers

    def to_json(self) -> dict[str, Any]:
        """For the ledger's first line: a run can be judged again without its case."""
        return {"base": dataclasses.asdict(self.base), "asked_bytes": list(self.asked_bytes.values())}

    def reading(self, facts: ProbeFacts) -> Reading:
        """Every reader over the files this probe left."""
        files = {name: data for name in FILES if (data := _bytes(facts, name)) is not None}
        return read(files, success=self.base.success)

    def judged(self, line: ProbeLine) -> Judged:
        """The verdict of a line, from its files where they all still are, else from the reading kept in the ledger."""
        reading = self.reading(line.facts) if _has_files(line.facts) else from_json(line.reading)
        expected = self.expectations(line)
        if not line.sequence:
            verdict = _found_by(judge(line.facts, reading, expected), line)
            return Judged(line, verdict, signature_of(verdict))
        parts = step_facts(line.facts)
        before = _of_earlier_steps(reading, line)
        steps = tuple(_found_by(judge(f, reading if last else before, expected), line) for f, last in parts)
        verdict = steps[-1] if steps else judge(line.facts, reading, expected)
        return Judged(line, verdict, signature_of(verdict), steps, tuple(signature_of(step) for step in steps))

    def expectations(self, line: ProbeLine) -> Expectations:
        asked = self.asked_bytes.get(line.index) if line.index is not None else None
        # The emulated device checks every access by itself: memcheck is no tool there, and leaves no report.
        observer = "blocking" if line.observer == "memcheck" and line.device == "emulator" else line.observer
        return dataclasses.replace(self.base, observer=observer, asked_bytes=asked, on_device=line.device != "none")


def _of_earlier_steps(reading: Reading, line: ProbeLine) -> Reading:
    """What a process's reading says of the shapes before the last one: a tool that checked all of it and found nothing
    found nothing there. Which shape a finding belongs to, its report does not say; but memcheck ends the context at
    its first one, so that what the last shape died of is the last shape's."""
    report = reading.sanitizer
    if report is None or report.health is not Health.OK:
        return Reading()
    clean = not report.errors and not report.records
    ended_it = line.observer == "memcheck" and bool(line.facts.result.get("error"))
    return Reading(sanitizer=replace(report, records=(), errors=0)) if clean or ended_it else Reading()


def _found_by(verdict: Verdict, line: ProbeLine) -> Verdict:
    """The observer that the user asked for, also where the emulated device did its work."""
    if verdict.fault is None:
        return verdict
    return dataclasses.replace(verdict, fault=dataclasses.replace(verdict.fault, found_by=line.observer))


def judging_from_json(data: Mapping[str, Any]) -> Judging:
    """The inverse of `Judging.to_json`. Raises UsageError for another document."""
    try:
        names = {field.name for field in dataclasses.fields(Expectations)}
        base = Expectations(**{name: value for name, value in data["base"].items() if name in names})
        return Judging(base, dict(enumerate(data["asked_bytes"])))
    except (KeyError, TypeError, AttributeError) as problem:
        raise UsageError(f"the ledger does not say how to judge its probes: {problem}") from None


def signature_of(verdict: Verdict) -> str | None:
    """What tells one failure from another within a run: the coarse signature, which does not change with the shape's
    line or access. None for what is no failure."""
    found = signature(verdict)
    return found.coarse if found else None


def _has_files(facts: ProbeFacts) -> bool:
    """Whether all that the probe left is still there: a reading of half of it would find less than the ledger has."""
    paths = [_path(facts, name) for name in FILES]
    return bool(facts.stdout) and all(Path(path).exists() for path in paths if path)


def _path(facts: ProbeFacts, name: str) -> str | None:
    place = getattr(facts, name)
    return place.path if isinstance(place, StreamFacts) else place


def _bytes(facts: ProbeFacts, name: str) -> bytes | None:
    """The content of one file of a probe; None where there is none. A file too large keeps its end."""
    path = _path(facts, name)
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MAX_FILE_BYTES))
            return file.read()
    except OSError:
        return None
