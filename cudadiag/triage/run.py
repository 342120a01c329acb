"""From files to a finished document: what the command does, without its printing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cudadiag.errors import CudadiagError, Undecided
from cudadiag.model import Sweep
from cudadiag.signature import Judgements
from cudadiag.triage.advice import frameworks, steps_for
from cudadiag.triage.clusters import Case, clusters, worst
from cudadiag.triage.document import TriageDocument, log_row, triage_document
from cudadiag.triage.files import read_incident
from cudadiag.triage.inputs import STDIN, Incident
from cudadiag.triage.nextshape import next_shape
from cudadiag.triage.own_runs import probe_stories
from cudadiag.triage.scan import LogReading
from cudadiag.triage.story import Story, tell
from cudadiag.triage.verdicts import TriageVerdict


@dataclass(frozen=True)
class Told:
    """One incident with its story. `texts`: parts of the logs that tell the framework."""

    incident: Incident
    story: Story
    texts: tuple[bytes, ...]
    size: int

    @property
    def case(self) -> Case:
        return Case(self.incident.name, self.story, self.size, _when(self.incident.paths))


def tell_incident(incident: Incident) -> Told:
    """Reads an incident's files and tells its story. Raises UsageError for a file that cannot be read."""
    readings = read_incident(incident)
    return Told(incident, tell(readings), tuple(_telling(readings)), sum(reading.size for reading in readings))


@dataclass
class Reading:
    """What `tell_all` is at, for who watches, and what it could not read below a folder, with the reason."""

    total: int = 0
    done: int = 0
    name: str = ""
    problems: list[str] = field(default_factory=list)


def tell_all(found: Sequence[Incident], reading: Reading | None = None) -> list[Told]:
    """The stories of all incidents; a run of cudadiag's own gives one for each failing probe.

    Below a folder, what cannot be read is left out and told in `reading`. Raises UsageError for what the user named,
    Undecided where nothing could be read.
    """
    reading = Reading() if reading is None else reading
    reading.total = len(found)
    told: list[Told] = []
    for incident in found:
        reading.name = incident.name
        try:
            told += _tell_run(incident) if incident.is_run else [tell_incident(incident)]
        except CudadiagError as problem:
            if not incident.in_folder:
                raise
            reading.problems.append(problem.message)
        reading.done += 1
    if not told:
        raise Undecided("nothing could be read: " + "; ".join(reading.problems[:3]))
    return told


def _tell_run(incident: Incident) -> list[Told]:
    ledger, stories = probe_stories(incident.paths[0])
    name = ledger.run.run_id
    if not stories:
        quiet = Story(TriageVerdict.NOTHING_WRONG, None, None, None, "no probe of this run failed", names=(name,))
        return [Told(Incident(name, incident.paths), quiet, (), 0)]
    return [Told(Incident(one.story.names[0], incident.paths), one.story, (), one.number) for one in stories]


def _telling(readings: Sequence[LogReading]) -> list[bytes]:
    parts = [part for reading in readings for part in (reading.head[:65536], reading.tail[-65536:])]
    return [*parts, *(sign.text.encode() for reading in readings for sign in reading.signs[:200])]


def document_of(
    told: Sequence[Told], *, sweep: Sweep | None = None, judgements: Judgements | None = None
) -> TriageDocument:
    """The document of one or many incidents."""
    cases = [one.case for one in told]
    face = told[cases.index(worst(cases))]
    following = next_shape(face.story.table.last, sweep) if sweep is not None and face.story.table is not None else None
    many = len(told) > 1
    return triage_document(
        face.story,
        steps_for(face.story, frameworks(face.texts)),
        following=following,
        logs=[log_row(one.incident.name, one.story) for one in told],
        clusters=clusters(cases, judgements) if many else (),
    )


def _when(paths: Sequence[Path]) -> str | None:
    """When the newest of the files was written."""
    times = [path.stat().st_mtime for path in paths if path != STDIN and path.exists()]
    return datetime.fromtimestamp(max(times), UTC).isoformat(timespec="seconds") if times else None
