"""What is not the first fault, sorted: echoes of it, what follows from it, and what has nothing to do with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cudadiag.evidence.codes import is_sticky
from cudadiag.model import FaultKind
from cudadiag.signature import may_be_one
from cudadiag.triage.sign import Role, Sign


class Folded(StrEnum):
    """How a sign relates to the first fault."""

    ECHO = "echo"  # the same fault told again
    CASCADE = "cascade"  # follows from it
    ALSO = "also"  # another problem, or one the program coped with


@dataclass(frozen=True)
class Fold:
    """Signs of one sort. `count` counts lines, `first_line` is the first one's number, `text` its words."""

    relation: Folded
    what: str
    count: int
    first_line: int
    source: int
    text: str
    cause: str | None = None


def fold(primary: Sign | None, signs: Sequence[Sign]) -> list[Fold]:
    """Everything but the first fault, grouped; in the order of the log."""
    groups: dict[tuple[Folded, str], list[Sign]] = {}
    seen = {(primary.source, primary.log_line)} if primary is not None else set()
    best: dict[tuple[int, int], Sign] = {}
    for sign in signs:
        if sign is primary or sign.role is Role.CONTEXT:
            continue
        relation, what = relate(primary, sign)
        place = (sign.source, sign.log_line)
        if place in seen and sign.role is not Role.CUDA:
            continue
        if best.get(place) is not None and sign.role in (Role.HOST, Role.CASCADE):
            continue
        best[place] = sign
        groups.setdefault((relation, what), []).append(sign)
    if primary is not None and primary.count > 1:
        groups.setdefault((Folded.ECHO, "the same line again"), [])
    folds = [_fold(relation, what, members, primary) for (relation, what), members in groups.items()]
    return sorted(folds, key=lambda f: (list(Folded).index(f.relation), f.source, f.first_line))


def _fold(relation: Folded, what: str, members: Sequence[Sign], primary: Sign | None) -> Fold:
    if not members:
        assert primary is not None
        return Fold(relation, what, primary.count - 1, primary.log_line, primary.source, primary.text)
    first = min(members, key=lambda s: (s.source, s.order))
    return Fold(relation, what, sum(s.count for s in members), first.log_line, first.source, first.text, first.cause)


def relate(primary: Sign | None, sign: Sign) -> tuple[Folded, str]:
    """How a sign relates to the first fault, with the words for its group."""
    if primary is None or primary.role is Role.CASCADE:
        return Folded.CASCADE, _cascade_words(sign)
    if sign.role is Role.CUDA:
        return _relate_cuda(primary, sign)
    if sign.role is Role.DEVICE:
        return (
            Folded.ECHO,
            "the same fault in other threads or places"
            if sign.kind is primary.kind
            else "later findings on the device",
        )
    if sign.role is Role.LIBRARY:
        return Folded.ECHO, "statuses of libraries that ran into it"
    if sign.role in (Role.ECHO, Role.KERNEL_LOG):
        return Folded.ECHO, "the kernel log's lines about it"
    if sign.role is Role.HARDWARE:
        same = primary.role is Role.HARDWARE
        return (Folded.ECHO, "more of the same damage") if same else (Folded.ALSO, "damage reported by the driver")
    if sign.role in (Role.CASCADE, Role.HANG, Role.HOST):
        return Folded.CASCADE, _cascade_words(sign)
    if sign.role is Role.RESOURCE and (is_sticky(primary.number) or sign.kind is primary.kind or sign.weak):
        return Folded.ECHO, "a wrapper's reading of it"
    return Folded.ALSO, sign.words or sign.cause or "another problem"


def _relate_cuda(primary: Sign, sign: Sign) -> tuple[Folded, str]:
    if sign.cleanup:
        return Folded.ECHO, "clean-up in the dead context"
    if sign.settled and sign.number != primary.number:
        return Folded.ALSO, "errors the program says it coped with"
    if sign.number == primary.number and sign.number is not None:
        return Folded.ECHO, "the same code at other places"
    if is_sticky(primary.number) and primary.kind and sign.kind and may_be_one(primary.kind, sign.kind):
        return Folded.ECHO, "the same fault under another code"
    if _is_before(sign, primary) and primary.role is Role.CUDA:
        return Folded.ALSO, "errors before it that did not stop the program"
    if sign.kind is FaultKind.OUT_OF_MEMORY and not is_sticky(primary.number) and primary.role is Role.CUDA:
        return Folded.ALSO, "another problem"
    return Folded.ECHO, "codes of later calls in the dead context"


def _is_before(sign: Sign, primary: Sign) -> bool:
    """By the clock where both have one, else by the order of one log."""
    one, other = sign.moment, primary.moment
    if one is not None and other is not None and one.clock == other.clock:
        return one.seconds < other.seconds
    return sign.source == primary.source and sign.order < primary.order


def _cascade_words(sign: Sign) -> str:
    if sign.role is Role.HOST and sign.kind is FaultKind.HOST_EXCEPTION:
        return "exceptions on the way out"
    return sign.words or sign.cause or "what follows"
