"""Are two reports one bug? With the reasons, so that a person can disagree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from cudadiag.evidence.names import without_template
from cudadiag.signature.families import may_be_one
from cudadiag.signature.key import Signature


class Likeness(StrEnum):
    """How alike two signatures are."""

    SAME = "same"  # the fine keys agree
    ALIAS = "same-told-differently"  # one place, told by witnesses with different words
    MAYBE = "may-be-same"  # nothing contradicts, but one side knows too little
    DIFFERENT = "different"


@dataclass(frozen=True)
class Comparison:
    """The answer and what it rests on."""

    likeness: Likeness
    reasons: tuple[str, ...]


def explain_difference(a: Signature, b: Signature) -> Comparison:
    """Whether two signatures are of one bug, and why. Symmetric; what one side does not know contradicts nothing."""
    against = tuple(_contradictions(a, b))
    if against:
        return Comparison(Likeness.DIFFERENT, against)
    if a.fine == b.fine and _knows_place(a):
        return Comparison(Likeness.SAME, ("kind, access, kernel and line agree",))
    unknown = tuple(_unknowns(a, b))
    told = f"{a.kind or a.outcome} and {b.kind or b.outcome} are what different witnesses say of one fault"
    if a.kind is not b.kind and _knows_place(a) and _knows_place(b):
        return Comparison(Likeness.ALIAS, (told, f"both in {a.kernel}"))
    if a.fine == b.fine and not a.kernel and a.name is not None:
        return Comparison(Likeness.SAME, ("error and place on the host agree",))
    reasons = unknown or ("nothing contradicts",)
    return Comparison(Likeness.MAYBE, (told, *reasons) if a.kind is not b.kind else reasons)


def _knows_place(s: Signature) -> bool:
    return s.kernel is not None and s.line is not None


def _contradictions(a: Signature, b: Signature) -> Iterator[str]:
    if a.version != b.version:
        yield f"made by different versions of the signature (v{a.version}, v{b.version}): make them anew"
    if a.outcome is not b.outcome:
        yield f"outcome {a.outcome} against {b.outcome}"
    if a.kind is not None and b.kind is not None and not may_be_one(a.kind, b.kind):
        yield f"kind {a.kind} against {b.kind}"
    if a.name is not None and b.name is not None and a.name != b.name:
        yield f"{a.name} against {b.name}"
    if a.kernel and b.kernel and without_template(a.kernel) != without_template(b.kernel):
        yield f"kernel {a.kernel} against {b.kernel}"
    if a.file and b.file and a.file != b.file:
        yield f"file {a.file} against {b.file}"
    if a.line is not None and b.line is not None and a.line != b.line:
        yield f"line {a.line} against {b.line}"
    for what, one, other in (("access", a.access, b.access), ("space", a.space, b.space)):
        if one and other and one != other:
            yield f"{what} {one} against {other}"


def _unknowns(a: Signature, b: Signature) -> Iterator[str]:
    for what, one, other in (("kernel", a.kernel, b.kernel), ("line", a.line, b.line)):
        if (one is None) != (other is None):
            yield f"only one of them knows the {what}: run it under memcheck or with a core dump"
        elif one is None and a.name is None:
            yield f"neither knows the {what}: run it under memcheck or with a core dump"
