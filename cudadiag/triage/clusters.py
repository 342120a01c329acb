"""Many logs to groups: by signature, by what people decided, with a severity and the shortest log as the face."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cudadiag.signature import Judgements, Likeness, explain_difference
from cudadiag.triage.document import ClusterRow
from cudadiag.triage.story import Story
from cudadiag.triage.verdicts import TriageVerdict

MAX_COMPARED = 3
SEVERITIES = {
    TriageVerdict.HARDWARE: "damage in the hardware hits whatever runs next",
    TriageVerdict.FAULT: "a device fault kills the process and everything that waits for it",
    TriageVerdict.WRONG: "wrong results go on unnoticed where nobody compares",
    TriageVerdict.HANG: "a hang holds the device until somebody ends it",
    TriageVerdict.HOST: "the host program failed; the device did nothing wrong that is known",
    TriageVerdict.RESOURCE: "a smaller shape or another setting gets by",
    TriageVerdict.ENVIRONMENT: "nothing ran; the machine has to be set up",
    TriageVerdict.CAUSE_NOT_IN_LOG: "nothing can be said before the right log is there",
    TriageVerdict.NOT_A_CRASH: "a refusal, no failure",
    TriageVerdict.NOTHING_WRONG: "no complaint found",
}
"""The most severe first, each with its reason."""


@dataclass(frozen=True)
class Case:
    """A log with its story. `size` in bytes, `when` in ISO 8601 or None."""

    name: str
    story: Story
    size: int
    when: str | None = None


def clusters(cases: Sequence[Case], judgements: Judgements | None = None) -> list[ClusterRow]:
    """The groups, the most severe first, in each severity the biggest."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(group_of(case.story, judgements), []).append(case)
    order = list(SEVERITIES)
    ranked = sorted(
        groups.items(), key=lambda item: (order.index(_face(item[1]).story.verdict), -len(item[1]), item[0])
    )
    rows: list[ClusterRow] = []
    for at, (group, members) in enumerate(ranked):
        rows.append(_row(group, members, list(_likeness(members, ranked[:at]))))
    return rows


def _face(members: Sequence[Case]) -> Case:
    """The shortest log of a group."""
    return min(members, key=lambda case: (case.size, case.name))


def _likeness(members: Sequence[Case], earlier: Sequence[tuple[str, Sequence[Case]]]) -> Iterator[str]:
    """Why a group is, or may not be, another bug than the groups before it."""
    mine = _face(members).story.signature
    for group, others in earlier:
        theirs = _face(others).story.signature
        if mine is None or theirs is None:
            continue
        found = explain_difference(mine, theirs)
        word = "not" if found.likeness is Likeness.DIFFERENT else "may be the same as"
        yield f"{word} {group}: {'; '.join(found.reasons)}"


def group_of(story: Story, judgements: Judgements | None = None) -> str:
    """The group a story belongs to: what people decided, else its coarse signature, else verdict and cause."""
    found = story.signature
    if found is None:
        return story.key or f"v1/{story.verdict.value}"
    return (judgements or Judgements()).group(found)


def worst(cases: Sequence[Case]) -> Case:
    """The most severe case, of those the first."""
    order = list(SEVERITIES)
    return min(cases, key=lambda case: order.index(case.story.verdict))


def _row(group: str, members: Sequence[Case], likeness: Sequence[str]) -> ClusterRow:
    face = _face(members)
    times = sorted(case.when for case in members if case.when)
    story = face.story
    return ClusterRow(
        group=group,
        count=len(members),
        severity=story.verdict.value,
        severity_reason=SEVERITIES[story.verdict],
        verdict=story.verdict,
        kind=story.fault.kind.value if story.fault else None,
        summary=story.summary,
        face=face.name,
        oldest=times[0] if times else None,
        newest=times[-1] if times else None,
        logs=[case.name for case in members],
        notes=[*_notes(members), *likeness[:MAX_COMPARED]],
    )


def _notes(members: Sequence[Case]) -> list[str]:
    signatures = [s for case in members if (s := case.story.signature) is not None]
    if len(members) > 1 and signatures and all(s.kernel is None and s.name is None for s in signatures):
        return ["no log knows the kernel: these may be several bugs (memcheck or a core dump tells)"]
    fine = {s.fine for s in signatures}
    return [f"{len(fine)} fine signatures: " + ", ".join(sorted(fine)[:4])] if len(fine) > 1 else []
