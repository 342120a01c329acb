"""Whether a signature seen is the one an entry of the baseline names."""

from __future__ import annotations

from enum import StrEnum

from cudadiag.evidence.names import without_template
from cudadiag.gate.baseline import Entry
from cudadiag.model import FaultKind
from cudadiag.signature import Judgements, Signature, family

UNKNOWN = "-"
_DEVICE_PARTS = 7  # version/outcome/kind/access/space/kernel/place


class Match(StrEnum):
    """How sure it is the same crash."""

    SAME = "same"
    MAYBE = "may be the same"  # nothing contradicts; one side does not know the kernel or the place
    NO = "another"


def match(entry: Entry, seen: Signature, judgements: Judgements) -> Match:
    """The best match of an entry's signatures."""
    found = [_match(name, seen, judgements) for name in entry.signatures]
    return next((m for m in (Match.SAME, Match.MAYBE) if m in found), Match.NO)


def _match(name: str, seen: Signature, judgements: Judgements) -> Match:
    if name == seen.fine:
        return Match.SAME
    for merge in judgements.merges:
        if name in merge.signatures and merge.signatures & {seen.fine, seen.coarse}:
            return Match.SAME
    if judgements.splits and seen.coarse in judgements.splits:
        return Match.NO  # the coarse signature stands for several bugs: only the fine one tells
    if name == seen.coarse:
        return Match.SAME
    parts, fine, coarse = name.split("/"), seen.fine.split("/"), seen.coarse.split("/")
    if _agree(parts, fine) or _agree(parts, coarse) or (UNKNOWN in parts and _agree(_coarse(parts), coarse)):
        return Match.MAYBE
    return Match.NO


def _agree(a: list[str], b: list[str]) -> bool:
    """Whether two keys agree where both know something; version, outcome and kind must be known and equal."""
    if len(a) != len(b) or a[:3] != b[:3] or UNKNOWN in a[:3]:
        return False
    return all(x == y or UNKNOWN in (x, y) for x, y in zip(a[3:], b[3:], strict=True))


def _coarse(parts: list[str]) -> list[str]:
    """The coarse key of a fine one of a device fault; what is no such key stays."""
    if len(parts) != _DEVICE_PARTS or parts[2] not in {kind.value for kind in FaultKind}:
        return parts
    return [*parts[:2], family(FaultKind(parts[2])), without_template(parts[5])]
