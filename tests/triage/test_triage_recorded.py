"""The recorded runs of planted faults, read as logs: kind, number, noticed call and kernel as in evidence's tables.

Triage is given only the files; what `judge` knows besides (the observer, that a killed tool proves nothing) is said
here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

from cudadiag.model import Fault
from cudadiag.triage import TriageVerdict, incidents, tell_incident
from cudadiag.triage.story import Story

EVIDENCE = Path(__file__).parents[1] / "evidence"
sys.path.append(str(EVIDENCE))
import recordings  # noqa: E402

NAMES = ("stdout", "stderr", "rc", "report.xml", "report.txt", "core.gpu", "driver.log")
RECORDINGS = ((recordings.ARCHIVE, "expected.yaml"), (recordings.AGAIN, "expected-faults2.yaml"))
KNOWN = {
    # The sanitizer's API record names the error that the program ignored: more than judge reports.
    ("late_unchecked", "memcheck"), ("late_unchecked", "memtext"),
    # The dump was still being written when the time limit came.
    ("int32_overflow", "lwcore"),
}  # fmt: skip
LEAKS_TOLD = {("host_exit3", "memcheck"), ("leak", "memcheck")}
"""Of the first recording: the report lists leaks, and only who asked for them counts them."""


def expected() -> list[tuple[Path, str, str, str]]:
    rows = []
    for archive, table in RECORDINGS:
        for fault, answers in yaml.safe_load((EVIDENCE / table).read_text()).items():
            for observers, answer in answers.items():
                if observers != "truth" and isinstance(answer, str):
                    rows += [(archive, fault, observer, answer) for observer in observers.split()]
    return rows


def told(archive: Path, fault: str, observer: str, folder: Path) -> Story:
    prefix = f"runs/{fault}/{observer}/"
    for path, data in recordings.files(archive).items():
        if path.startswith(prefix) and path.removeprefix(prefix) in NAMES:
            (folder / path.removeprefix(prefix)).write_bytes(data)
    (incident,) = incidents([folder])
    return tell_incident(incident).story


def rendered(fault: Fault | None) -> str:
    if fault is None:
        return ""
    words = [fault.kind.value]
    if fault.number is not None:
        words.append(f"{fault.name}={fault.number}")
    if fault.noticed and (fault.noticed.call or fault.noticed.line):
        words.append(f"noticed {fault.noticed.call or '-'}@{fault.noticed.line or '-'}")
    if fault.caused:
        words.append(f"caused {fault.caused.kernel or '-'}:{fault.caused.line or '-'}")
    return " ".join(words)


@pytest.mark.parametrize(
    ("archive", "fault", "observer", "answer"),
    expected(),
    ids=[f"{row[1]}-{row[2]}-{row[0].stem[-12:]}" for row in expected()],
)
def test_a_recorded_run_read_as_a_log_gives_the_same_fault(
    archive: Path, fault: str, observer: str, answer: str, tmp_path: Path
) -> None:
    story = told(archive, fault, observer, tmp_path)
    outcome, _, rest = re.sub(r" health \S+", "", answer).partition(" ")
    place = re.match(r"(.*caused .+?:(?:\d+|-))(?=[+ ]|$)", rest)
    if (fault, observer) in KNOWN or (archive == recordings.ARCHIVE and (fault, observer) in LEAKS_TOLD):
        assert story.verdict is not TriageVerdict.NOTHING_WRONG
        return
    if outcome == "unresolved":  # a killed tool proves nothing about the shape; the log still says that it was killed
        assert story.verdict is TriageVerdict.HANG or story.fault is None or story.verdict is TriageVerdict.NOT_A_CRASH
        return
    shown = "pass" if story.verdict is TriageVerdict.NOTHING_WRONG else story.outcome.value
    assert (shown, rendered(story.fault)) == (outcome, place[1] if place else rest)


def test_both_recordings_are_covered() -> None:
    assert len(expected()) == 376 + 486
