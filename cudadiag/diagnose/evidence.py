"""What is known about the shape in question: its probes sorted by experiment, and what the case says about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cudadiag.diagnose.experiments import PURPOSE, REBUILT, REPEATS, Experiment, Setting
from cudadiag.diagnose.subject import Subject
from cudadiag.diagnose.witness import HOST_KINDS, Witness
from cudadiag.evidence.allocations import Buffer, buffers_of
from cudadiag.model import FaultKind, Outcome, Scalar
from cudadiag.session.judged import Judged


@dataclass(frozen=True)
class Evidence:
    """Everything an explanation may look at. `derived` has the case's named quantities at this shape."""

    subject: Subject
    setting: Setting
    history: Sequence[Judged]
    derived: Mapping[str, Scalar]

    @cached_property
    def own(self) -> tuple[Witness, ...]:
        """Probes of this shape as it is compiled by default, in the form in which it fails."""
        return tuple(w for w in self._of_shape if w.judged.line.sequence == self.subject.sequence and not _changed(w))

    @cached_property
    def alone(self) -> tuple[Witness, ...]:
        """Probes of this shape alone in a fresh process."""
        return tuple(w for w in self._of_shape if not w.judged.line.sequence and not _changed(w))

    def rebuilt(self, experiment: Experiment) -> tuple[Witness, ...]:
        """Probes of this shape whose machine code was made as this experiment makes it."""
        return tuple(w for w in self._of_shape if w.judged.line.tag == experiment)

    @cached_property
    def _of_shape(self) -> tuple[Witness, ...]:
        shape = dict(self.subject.shape)
        return tuple(Witness(judged) for judged in self.history if dict(judged.line.shape) == shape)

    def under(self, *observers: str) -> tuple[Witness, ...]:
        """Probes in the failing form under these observers. With exact memory the emulated device is memcheck."""
        return tuple(w for w in self.own if w.observer in observers or ("memcheck" in observers and w.exact))

    @cached_property
    def failing(self) -> tuple[Witness, ...]:
        return tuple(w for w in self.own if w.outcome.is_failure)

    @cached_property
    def without_tool(self) -> tuple[Witness, ...]:
        """Evidence of probes that no tool changed."""
        return tuple(w for w in self.own if w.observer in ("plain", "blocking") and w.outcome.is_evidence)

    @property
    def fails_without_tool(self) -> bool:
        return any(w.outcome.is_failure for w in self.without_tool)

    @cached_property
    def unjudged(self) -> str | None:
        """Why nothing is known of the shape: no probe of it is evidence. None where one is."""
        if any(w.outcome.is_evidence for w in self.own):
            return None
        reasons = [w.judged.verdict.reason for w in self.own]
        return reasons[-1] if reasons else "no probe of it ran to its end"

    @cached_property
    def uses_cuda(self) -> bool:
        """A device is in use, or the program talks of one although none was chosen (`--device none` on a GPU)."""
        told = (w for w in self.failing if w.outcome is Outcome.FAULT and w.kind not in HOST_KINDS)
        return self.setting.device != "none" or any(told)

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """The case's buffers, by a probe that allocated them."""
        return next((found for w in self.own if (found := buffers_of(w.result))), ())

    def with_kind(self, *kinds: FaultKind) -> tuple[Witness, ...]:
        """Failing probes whose fault, or one of whose records, is of these kinds."""
        return tuple(w for w in self.failing if w.kind in kinds or w.recorded_kinds & set(kinds))

    def recorded(self, *kinds: FaultKind) -> tuple[Witness, ...]:
        """Probes in which a checker recorded a fault of these kinds."""
        return tuple(w for w in self.own if w.recorded_kinds & set(kinds))

    def with_number(self, *errors: int) -> tuple[Witness, ...]:
        return tuple(w for w in self.failing if w.error_number in errors)

    @cached_property
    def outcomes(self) -> frozenset[Outcome]:
        return frozenset(w.outcome for w in self.own)

    @cached_property
    def hangs(self) -> tuple[Witness, ...]:
        return tuple(w for w in self.failing if w.outcome is Outcome.HANG)

    def did(self, experiment: Experiment) -> bool:
        """Whether an experiment was made, on purpose or by the search (also where it gave nothing)."""
        if any(j.line.purpose == PURPOSE and j.line.tag == experiment for j in self.history):
            return True
        if experiment is Experiment.ALONE:
            return bool(self.alone)
        if experiment is Experiment.REPEAT:
            return len(self.same_again) > REPEATS
        if experiment is Experiment.AS_JUDGED:
            return bool(self.under(self.setting.observer))
        if experiment is Experiment.OTHER_GPU:
            return len(self.by_device) > 1
        if experiment in REBUILT:
            return False
        return bool(self.under(experiment.value))

    @cached_property
    def same_again(self) -> tuple[Witness, ...]:
        """The largest group of probes that differ in nothing but chance, and in which GPU they ran on."""
        groups: dict[tuple[str, str, str], list[Witness]] = {}
        for witness in self.own:
            line = witness.judged.line
            if witness.outcome.is_evidence:
                kind = line.device.partition(":")[0]
                groups.setdefault((line.observer, kind, line.memory_model), []).append(witness)
        return tuple(sorted(groups.values(), key=len)[-1]) if groups else ()

    @cached_property
    def by_device(self) -> Mapping[str, tuple[Witness, ...]]:
        """The same, sorted by the device they ran on."""
        labels = dict.fromkeys(w.judged.line.device for w in self.same_again)
        return {label: tuple(w for w in self.same_again if w.judged.line.device == label) for label in labels}

    @cached_property
    def crumbs(self) -> tuple[Mapping[str, Any], ...]:
        """The launches of one probe as they were announced: grid, block, shared."""
        for witness in self.own:
            facts = witness.judged.line.facts
            found = tuple(c.detail for c in facts.breadcrumbs if c.step == "launch" and "grid" in c.detail)
            if found:
                return found
        return ()

    @cached_property
    def limits(self) -> Mapping[str, Any]:
        """The device's limits as the worker asked for them; {} where nobody asked."""
        facts = (w.judged.line.facts.device_facts for w in self.own)
        return next((f["limits"] for f in facts if isinstance(f.get("limits"), Mapping)), {})


def _changed(witness: Witness) -> bool:
    return witness.judged.line.tag in REBUILT


def outcomes_words(witnesses: Iterable[Witness]) -> str:
    """`3 of 3 failed`."""
    all_of = [w for w in witnesses if w.outcome.is_evidence]
    return f"{sum(w.outcome.is_failure for w in all_of)} of {len(all_of)} failed"
