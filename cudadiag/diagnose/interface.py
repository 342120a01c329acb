"""What an explanation is: what it predicts, which experiments could tell it apart, how their results weigh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence, outcomes_words
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.witness import Witness, numbers
from cudadiag.model import FaultKind, Outcome

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
        """What to do where it is supported; of a failure that does not always come also how to measure how often."""
        return f"{self.advise(evidence)}{self.rate(evidence)}"

    def advise(self, evidence: Evidence) -> str:
        """What to do about the cause itself."""
        return self.advice

    def rate(self, evidence: Evidence) -> str:
        """How to measure the rate of a failure that comes and goes; "" where it always comes."""
        same = evidence.same_again
        if len({w.outcome.is_failure for w in same}) < 2:
            return ""
        return f"; {outcomes_words(same)} in runs alike: measure the rate first (cudadiag run --repeat 100)"

    @property
    def docs(self) -> str:
        return f"docs/explanation/explanations/{self.name}.md"


REFUSED = (FaultKind.OUT_OF_MEMORY, FaultKind.LAUNCH_LIMIT, FaultKind.NO_KERNEL_IMAGE)
"""Kinds of a call that was refused: it is no kernel's fault, but a kernel may have run before it."""
NO_CUDA = "no CUDA device is in use here"


def not_asked(evidence: Evidence, *tools: Experiment) -> str:
    """The tools among these that could still be asked, as words; "" where none could."""
    left = [tool for tool in tools if not evidence.did(tool) and evidence.setting.problem(tool) is None]
    return f"not run under {', '.join(left)}" if left else ""


def before_the_kernel(evidence: Evidence) -> Finding | None:
    """Refuted where every failure without a tool is a call that was refused, and the worker's own steps show that it
    had launched nothing before; None elsewhere."""
    bare = _refused(evidence)
    if not bare or evidence.setting.target != "kernel" or any(map(_launched_before, bare)):
        return None
    kind = bare[0].kind
    return refuted(f"it fails before the kernel runs ({kind.value if kind else 'no kind'})", bare)


def refused_words(evidence: Evidence) -> str:
    """Why a call that was refused leaves it open what kernels did before; "" where it failed otherwise, or before any
    kernel."""
    bare = _refused(evidence)
    if not bare or before_the_kernel(evidence):
        return ""
    what = "an allocation" if bare[0].kind is FaultKind.OUT_OF_MEMORY else "a launch"
    known = evidence.setting.target == "kernel"
    return f"{what} was refused; {'kernels ran before it' if known else 'what ran before is not known'}"


def _refused(evidence: Evidence) -> list[Witness]:
    """The failures without a tool, where every one is a call that was refused."""
    bare = [w for w in evidence.failing if w.tool is None]
    return bare if all(w.kind in REFUSED for w in bare) else []


def _launched_before(witness: Witness) -> bool:
    """Whether a worker announced launches before its last step, or no steps at all."""
    steps = [crumb.step for crumb in witness.judged.line.facts.breadcrumbs]
    return not steps or "launch" in steps[:-1]


def clean_tool(evidence: Evidence, tool: Experiment, finds: str) -> Finding:
    """How an explanation stands of which a tool would have recorded something, where none recorded it.

    Refuted only by a tool that did its work while the failure was there, or where nothing fails without it.
    """
    problem = evidence.setting.problem(tool)
    early = before_the_kernel(evidence)
    if early:
        return early
    asked = evidence.under(tool.value)
    if not asked:
        left = f"{tool.value}: {problem}" if problem else f"not run under {tool.value}"
        return untested("; ".join(filter(None, (refused_words(evidence), left))))
    did = sound(evidence, tool)
    if not did:
        return untested(asked[-1].judged.verdict.reason, asked)
    still = [w for w in did if w.outcome.is_failure]
    if still or not evidence.fails_without_tool:
        return refuted(f"{_how_far(still or did, tool)} and recorded no {finds}", still or did)
    return untested(f"the failure vanishes under {tool.value}, so its silence proves nothing", did)


def sound(evidence: Evidence, tool: Experiment) -> list[Witness]:
    """Probes in which a tool did its work; one that ran out of its own memory did not see the run to its end."""
    return [w for w in evidence.under(tool.value) if (w.checked and not w.starved) or w.exact]


def _how_far(did: Sequence[Witness], tool: Experiment) -> str:
    """A run that ends at its first fault was checked up to it only."""
    who = "the emulated device" if did[0].exact else tool.value
    stops = {Outcome.FAULT: "up to its fault", Outcome.HANG: "until it hung"}
    return f"{who} checked the run {stops.get(did[0].outcome, 'to its end')}"
