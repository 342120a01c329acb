"""`gate --update`: the baseline edited as a person would, its comments, order and quotes kept."""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from cudadiag.errors import UsageError
from cudadiag.gate.baseline import VERSION, load_document, parse_baseline, round_trip
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.covering import Neighbours
from cudadiag.gate.finding import Finding
from cudadiag.gate.status import Status
from cudadiag.gate.yamledit import SequenceEdit
from cudadiag.model import Scalar
from cudadiag.signature import VERSION as SIGNATURE_VERSION
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
    editing = _editing(text, path)
    done: list[str] = []
    recorded: set[int] = set()
    gone: set[int] = set()
    for number, finding in enumerate(findings):
        entry = finding.entry
        if finding.status is Status.NEW and why is not None:
            run = next(run for run in runs if run.name == finding.case)
            shapes = extent(finding, run)
            editing.append(_new_entry(finding, run, why, shapes))
            recorded.add(number)
            wide = "" if any(shapes) else f"; how far it goes is not known: `cudadiag bisect {run.path}`"
            done.append(f"entered: {finding.case}, {finding.group}{wide}")
        elif entry is None or entry.place in gone:
            continue
        elif finding.status in (Status.FIXED, Status.VANISHED):
            gone.add(entry.place)
            editing.remove(entry.place)
            done.append(f"taken out ({finding.status.value}): {finding.case}, {entry.where}")
        elif finding.status is Status.CHANGED:
            others = [_signature(f) for f in findings if f.status is Status.CHANGED and f.entry is entry]
            if others[0] == _signature(finding):
                editing.set(entry.place, "signature", CommentedSeq([*entry.signatures, *others]))
            recorded.add(number)
            done.append(f"signature added: {finding.case}, {finding.group}")
        elif _has_counted(finding):
            editing.set(entry.place, "rate", f"{finding.fails}/{finding.runs}")
            done.append(f"rate written down: {finding.case}, {finding.fails}/{finding.runs}")
    new = editing.text()
    parse_baseline(new, path)  # what is written can be read
    return Edit(new if done else text, tuple(done), frozenset(recorded))


def _editing(text: str, path: Path) -> SequenceEdit:
    """The text to edit: a new file gets its head, `known: []` becomes a block that entries can be put into."""
    document = load_document(text, path)
    if document is None:
        text = f"{text or HEAD}version: {VERSION}\nknown:\n"
    elif "known" not in document:
        text = text.rstrip("\n") + "\nknown:\n"
    elif document["known"] is not None and (not document["known"] or document["known"].fa.flow_style()):
        block = CommentedSeq(document["known"])
        document["known"] = block or None
        out = io.StringIO()
        round_trip().dump(document, out)
        text = out.getvalue()
    return SequenceEdit(text, load_document(text, path), "known", round_trip())


def _signature(finding: Finding) -> str | None:
    """The group, or the fine signature where people gave the group a name of their own."""
    coarse = finding.group is not None and finding.group.startswith(f"v{SIGNATURE_VERSION}/")
    return finding.group if coarse else finding.fine


def _has_counted(finding: Finding) -> bool:
    """Whether a known crash was seen to fail and to pass, and the baseline does not say yet how often."""
    return finding.status is Status.FLAKY and finding.fails > 0 and finding.entry is not None and not finding.entry.rate


def _new_entry(finding: Finding, run: CaseRun, why: Why, shapes: Sequence[Mapping[str, Scalar]]) -> CommentedMap:
    entry = CommentedMap()
    entry["case"] = finding.case
    entry["shapes"] = _shapes(shapes)
    entry["signature"] = _signature(finding)
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
