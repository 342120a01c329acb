"""What an explanation is: what it predicts, which experiments could tell it apart, how their results weigh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.witness import Witness, numbers
from cudadiag.model import FaultKind

Expects = Mapping[Experiment, str]


class Status(StrEnum):
    SUPPORTED = "supported"
    REFUTED = "refuted"
    UNTESTED = "untested"


class Strength(StrEnum):
    """Of support. `shown`: a checker, the device or the driver recorded it. `suggested`: it fits, nobody recorded
    it."""

    SHOWN = "shown"
    SUGGESTED = "suggested"


@dataclass(frozen=True)
class Finding:
    """How an explanation stands: `why` in words, the `probes` it rests on (their numbers)."""

    status: Status
    why: str
    probes: tuple[int, ...] = ()
    strength: Strength = Strength.SHOWN

    @property
    def settled(self) -> bool:
        return self.status is not Status.UNTESTED


def supported(why: str, witnesses: Iterable[Witness] = (), *, suggested: bool = False) -> Finding:
    strength = Strength.SUGGESTED if suggested else Strength.SHOWN
    return Finding(Status.SUPPORTED, why, numbers(witnesses), strength)


def refuted(why: str, witnesses: Iterable[Witness] = ()) -> Finding:
    return Finding(Status.REFUTED, why, numbers(witnesses))


def untested(why: str, witnesses: Iterable[Witness] = ()) -> Finding:
    return Finding(Status.UNTESTED, why, numbers(witnesses))


class Explanation(ABC):
    """One usual explanation. Stateless.

    `expects` has, for the experiments whose result it foretells, that result in a word of its own; experiments left
    out would show what was seen before. Two explanations with different words for an experiment are told apart by it.
    `competes`: it names a cause, of which one is enough; the others tell about the report, the order, the chance.
    `needs_cuda`: it can only be true of a program that uses a CUDA device.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    predicts: ClassVar[str]
    competes: ClassVar[bool] = True
    needs_cuda: ClassVar[bool] = True
    expects: ClassVar[Expects] = {}
    advice: ClassVar[str]

    @abstractmethod
    def weigh(self, evidence: Evidence) -> Finding:
        """How it stands on this evidence."""

    def next_step(self, evidence: Evidence) -> str:
        """What to do where it is supported."""
        return self.advice

    @property
    def docs(self) -> str:
        return f"docs/explanation/explanations/{self.name}.md"


BEFORE_A_KERNEL = (FaultKind.OUT_OF_MEMORY, FaultKind.LAUNCH_LIMIT, FaultKind.NO_KERNEL_IMAGE)
"""Kinds of a call that was refused: no kernel of this shape did anything wrong."""
NO_CUDA = "the program uses no CUDA device"


def not_asked(evidence: Evidence, *tools: Experiment) -> str:
    """The tools among these that could still be asked, as words; "" where none could."""
    left = [tool for tool in tools if not evidence.did(tool) and evidence.setting.problem(tool) is None]
    return f"not run under {', '.join(left)}" if left else ""


def clean_tool(evidence: Evidence, tool: Experiment, finds: str) -> Finding:
    """How an explanation stands of which a tool would have recorded something, where none recorded it.

    Refuted only by a tool that did its work while the failure was there, or where nothing fails without it.
    """
    problem = evidence.setting.problem(tool)
    bare = [w for w in evidence.failing if w.tool is None]
    if bare and all(w.kind in BEFORE_A_KERNEL for w in bare):
        kind = bare[0].kind
        return refuted(f"it fails before the kernel runs ({kind.value if kind else 'no kind'})", bare)
    asked = evidence.under(tool.value)
    if not asked:
        return untested(f"{tool.value}: {problem}" if problem else f"not run under {tool.value}")
    # A tool that ran out of its own memory did not see the run to its end.
    sound = [w for w in asked if (w.checked and not w.starved) or w.exact]
    if not sound:
        return untested(asked[-1].judged.verdict.reason, asked)
    still = [w for w in sound if w.outcome.is_failure]
    if still or not evidence.fails_without_tool:
        where = "the emulated device" if sound[0].exact else tool.value
        return refuted(f"{where} checked the run to its end and recorded no {finds}", still or sound)
    return untested(f"the failure vanishes under {tool.value}, so its silence proves nothing", sound)
