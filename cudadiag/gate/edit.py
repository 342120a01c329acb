"""`gate --update`: the baseline edited as a person would, its comments, order and quotes kept."""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from cudadiag.errors import UsageError
from cudadiag.gate.baseline import VERSION, load_document, parse_baseline, round_trip
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.covering import Neighbours
from cudadiag.gate.finding import Finding
from cudadiag.gate.status import Status
from cudadiag.model import Scalar
from cudadiag.store.atomic import OutputFile

HEAD = (
    "# Crashes that are known and tolerated for a while; see docs/how-to/gate.md. `cudadiag gate --update` edits it.\n"
)
LIFE_DAYS = 90
WIDE = 16  # shapes listed in a new entry; a wider crash wants a rule, which `bisect` finds


@dataclass(frozen=True)
class Why:
    """What a person says of new entries."""

    reason: str
    owner: str
    issue: str
    expires: datetime.date


@dataclass(frozen=True)
class Edit:
    """The new text and what was done, a line each. `recorded`: the findings that are in the baseline now."""

    text: str
    done: tuple[str, ...]
    recorded: frozenset[int]


def edited(text: str, path: Path, runs: Sequence[CaseRun], findings: Sequence[Finding], why: Why | None) -> Edit:
    """The baseline with new crashes entered (where it is said why), changed signatures added, counted rates written
    down, fixed and vanished entries taken out. Expired ones stay: to extend them is a person's decision."""
    document = load_document(text, path)
    if document is None:
        document = CommentedMap({"version": VERSION, "known": CommentedSeq()})
    known = document.setdefault("known", CommentedSeq())
    done: list[str] = []
    recorded: set[int] = set()
    gone: set[int] = set()
    for number, finding in enumerate(findings):
        if finding.status in (Status.FIXED, Status.VANISHED) and finding.entry is not None:
            gone.add(finding.entry.place)
            done.append(f"taken out ({finding.status.value}): {finding.case}, {finding.entry.where}")
        elif finding.status is Status.NEW and why is not None:
            run = next(run for run in runs if run.name == finding.case)
            known.append(_new_entry(finding, run, why))
            recorded.add(number)
            wide = "" if any(known[-1]["shapes"]) else f"; how far it goes is not known: `cudadiag bisect {run.path}`"
            done.append(f"entered: {finding.case}, {finding.group}{wide}")
        elif finding.status is Status.CHANGED and finding.entry is not None:
            _add_signature(known[finding.entry.place], finding)
            recorded.add(number)
            done.append(f"signature added: {finding.case}, {finding.group}")
        elif _has_counted(finding) and finding.entry is not None:
            known[finding.entry.place]["rate"] = f"{finding.fails}/{finding.runs}"
            done.append(f"rate written down: {finding.case}, {finding.fails}/{finding.runs}")
    for place in sorted(gone, reverse=True):
        _take_out(known, place)
    out = io.StringIO()
    round_trip().dump(document, out)
    new = out.getvalue() if text.strip() else HEAD + out.getvalue()
    parse_baseline(new, path)  # what is written can be read
    return Edit(new if done else text, tuple(done), frozenset(recorded))


def _has_counted(finding: Finding) -> bool:
    """Whether a known crash was seen to fail and to pass, and the baseline does not say yet how often."""
    return finding.status is Status.FLAKY and finding.fails > 0 and finding.entry is not None and not finding.entry.rate


def _new_entry(finding: Finding, run: CaseRun, why: Why) -> CommentedMap:
    entry = CommentedMap()
    entry["case"] = finding.case
    entry["shapes"] = _shapes(extent(finding, run))
    entry["signature"] = finding.group if finding.group and finding.group.startswith("v") else finding.fine
    entry["reason"] = why.reason
    entry["owner"] = why.owner
    entry["issue"] = why.issue
    entry["expires"] = why.expires
    entry["rate"] = f"{finding.fails}/{finding.runs}"
    entry["device"] = run.device.partition(":")[0]
    return entry


def extent(finding: Finding, run: CaseRun) -> list[Mapping[str, Scalar]]:
    """The shapes of a new crash where all their neighbours were run. Otherwise it goes further than was seen: then any
    shape, or the next run would find it "new" one shape further on."""
    ran = {seen.index for seen in run.seen}
    neighbours = Neighbours(run.sweep)
    closed = all(other in ran for index in finding.indices for other in neighbours.of(index))
    if not closed or len(finding.indices) > WIDE:
        return [{}]
    return [run.sweep.shape(index) for index in finding.indices]


def _shapes(shapes: Sequence[Mapping[str, Scalar]]) -> CommentedSeq:
    found = CommentedSeq()
    for shape in shapes:
        row = CommentedMap(shape)
        row.fa.set_flow_style()
        found.append(row)
    return found


def _add_signature(entry: Any, finding: Finding) -> None:
    before = entry["signature"]
    if isinstance(before, str):
        entry["signature"] = CommentedSeq([before, finding.group])
    else:
        before.append(finding.group)


def _take_out(known: Any, place: int) -> None:
    """An entry without the comments above it going with it: ruamel keeps those at the end of the entry before."""
    del known[place]


def write(edit: Edit, path: Path) -> None:
    """Put the new text in place. Raises UsageError."""
    with OutputFile(path) as file:
        file.write(edit.text.encode("utf-8"))


def why_of(
    reason: str | None, owner: str | None, issue: str | None, expires: str | None, today: datetime.date
) -> Why | None:
    """What the options say; None where none is given. Raises UsageError where only some are."""
    given = {"--reason": reason, "--owner": owner, "--issue": issue}
    if not any(given.values()):
        return None
    if missing := [name for name, value in given.items() if not value]:
        raise UsageError(f"a new entry needs {' and '.join(missing)} too")
    try:
        last = datetime.date.fromisoformat(expires) if expires else today + datetime.timedelta(days=LIFE_DAYS)
    except ValueError:
        raise UsageError(f"--expires {expires}: write a date such as {today:%Y-%m-%d}") from None
    assert reason is not None
    assert owner is not None
    assert issue is not None
    return Why(reason, owner, issue, last)
