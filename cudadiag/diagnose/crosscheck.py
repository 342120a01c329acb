"""The cross-check: what several observers say of one shape, and how far they agree.

Observers change what happens. So a pass under a tool never overrides a failure without it, and what a tool did not
check to its end is not a pass. Pure; every list names observers in the order of OBSERVERS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cudadiag.diagnose.witness import HOST_KINDS, OBSERVERS, Witness
from cudadiag.model import FaultKind, Outcome

WITHOUT_TOOL = ("plain", "blocking")
ENOUGH = 3
"""Runs of each that must agree before a difference between them counts."""
BEST_CAUSES = ("memcheck", "initcheck", "racecheck", "synccheck", "coredump", "blocking", "plain")
"""Whose word on the cause is taken first: memcheck knows address and allocation, a core file only where it stood."""


@dataclass(frozen=True)
class Told:
    """One observer's word: the probe shown for it, and how many of its probes failed."""

    observer: str
    witness: Witness
    failed: int
    runs: int

    @property
    def outcome(self) -> Outcome:
        return self.witness.outcome

    @property
    def fails(self) -> bool:
        return self.failed > 0

    @property
    def passes(self) -> bool:
        return self.runs > 0 and self.failed == 0


@dataclass(frozen=True)
class Agreement:
    """`outcome` is the shape's, over all observers. `masked_by`: saw nothing of a failure that is there without a
    tool. `only_under`: the one observer that found it although others looked. `unresolved`: could not say."""

    outcome: Outcome
    told: tuple[Told, ...]
    found_by: tuple[str, ...] = ()
    masked_by: tuple[str, ...] = ()
    only_under: str | None = None
    only_with_blocking_off: bool = False
    only_with_blocking_on: bool = False
    blocking_differs: bool = False  # plain and blocking do, in too few runs to say more
    vanishes_under_tools: bool = False
    varies: tuple[str, ...] = ()  # observers whose own probes differ
    unresolved: tuple[str, ...] = ()
    cause: Witness | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The agreement in sentences, most telling first."""
        return tuple(_sentences(self))


def cross_check(witnesses: Iterable[Witness]) -> Agreement:
    """What the probes of one shape say together. No probe at all is `unresolved`."""
    told = _told(tuple(witnesses))
    by = {word.observer: word for word in told}
    fails = tuple(word.observer for word in told if word.fails)
    passes = tuple(word.observer for word in told if word.passes)
    # The tools do not block launches: their like without a tool is plain, where it was asked.
    without = _like_a_tool(told)
    tools_asked = [name for name in by if name not in WITHOUT_TOOL]
    tools_pass = [name for name in passes if name not in WITHOUT_TOOL]
    return Agreement(
        outcome=_outcome(told, fails, passes),
        told=told,
        found_by=fails,
        masked_by=_masked(told) if without and without.fails else (),
        only_under=fails[0] if len(fails) == 1 and passes else None,
        only_with_blocking_off=_only("plain", "blocking", by),
        only_with_blocking_on=_only("blocking", "plain", by),
        blocking_differs=_differs(by),
        vanishes_under_tools=bool(without and without.fails and tools_pass) and not set(tools_asked) & set(fails),
        varies=tuple(word.observer for word in told if 0 < word.failed < word.runs),
        unresolved=tuple(word.observer for word in told if not word.fails and not word.passes),
        cause=best_cause(word.witness for word in told),
    )


def _differs(by: Mapping[str, Told]) -> bool:
    """Whether plain and blocking end otherwise in fewer than ENOUGH runs of one of them: that may be chance."""
    pair = [by[name] for name in WITHOUT_TOOL if name in by and by[name].runs]
    return len(pair) == 2 and pair[0].fails != pair[1].fails and min(word.runs for word in pair) < ENOUGH


def _only(failing: str, passing: str, by: Mapping[str, Told]) -> bool:
    """Whether the shape fails each time under the one and never under the other, in enough runs of both."""
    if failing not in by or passing not in by:
        return False
    yes, no = by[failing], by[passing]
    return min(yes.runs, no.runs) >= ENOUGH and yes.failed == yes.runs and no.passes


def _like_a_tool(told: Sequence[Told]) -> Told | None:
    return next((word for word in told if word.observer in WITHOUT_TOOL and word.runs), None)


def _masked(told: Sequence[Told]) -> tuple[str, ...]:
    """Tools that show nothing of the failure: they pass, or end by a fault of the host's where the device's is
    known."""
    bare = [word.witness.kind for word in told if word.fails and word.observer in WITHOUT_TOOL]
    on_device = any(kind not in HOST_KINDS for kind in bare)
    return tuple(
        word.observer
        for word in told
        if word.observer not in WITHOUT_TOOL and (word.passes or (on_device and word.witness.kind in HOST_KINDS))
    )


def _told(witnesses: Sequence[Witness]) -> tuple[Told, ...]:
    words = []
    hangs_bare = any(w.outcome is Outcome.HANG and w.observer in WITHOUT_TOOL for w in witnesses)
    memory_short = any(w.kind is FaultKind.OUT_OF_MEMORY and w.tool is None for w in witnesses)
    for observer in OBSERVERS:
        own = [witness for witness in witnesses if witness.observer == observer]
        # A tool needs memory of its own: where only it runs out, it saw nothing of the shape.
        evidence = [w for w in own if w.outcome.is_evidence and (memory_short or not w.starved)]
        # Writing the core file can hang by itself: without one that says where, it saw nothing either.
        evidence = [w for w in evidence if hangs_bare or not _unwritten(w)]
        if own:
            failing = [witness for witness in evidence if witness.outcome.is_failure]
            face = best_cause(failing) or next(iter(failing or evidence or own))
            words.append(Told(observer, face, len(failing), len(evidence)))
    return tuple(words)


def _unwritten(witness: Witness) -> bool:
    return witness.observer == "coredump" and witness.outcome is Outcome.HANG and witness.caused is None


def _outcome(told: Sequence[Told], fails: Sequence[str], passes: Sequence[str]) -> Outcome:
    if fails:
        # A fault says more than a wrong result, which is often only its consequence.
        outcomes = [word.outcome for word in told if word.fails]
        return Outcome.FAULT if Outcome.FAULT in outcomes else outcomes[0]
    return Outcome.PASS if passes and len(passes) == len(told) else Outcome.UNRESOLVED


def best_cause(witnesses: Iterable[Witness]) -> Witness | None:
    """The probe that says best where the fault was caused; None where no one knows."""
    known = [witness for witness in witnesses if witness.caused is not None]
    return min(known, key=_cause_rank, default=None)


def _cause_rank(witness: Witness) -> tuple[bool, bool, int]:
    caused = witness.caused
    specific = witness.kind not in (FaultKind.OTHER_CUDA, FaultKind.LAUNCH_TIMEOUT)
    order = BEST_CAUSES.index(witness.observer) if witness.observer in BEST_CAUSES else len(BEST_CAUSES)
    return not specific, caused is None or caused.line is None, order


def _sentences(found: Agreement) -> list[str]:
    words = []
    if found.found_by:
        words.append(f"found by {_list(found.found_by)}")
    if found.only_under:
        clean = [word.observer for word in found.told if word.passes]
        words.append(f"only under {found.only_under}; {_list(clean)} {_see(clean)} nothing of it")
    if found.masked_by:
        words.append(f"masked by {_list(found.masked_by)}: what passes there is not clean")
    if found.only_with_blocking_off:
        words.append("only with CUDA_LAUNCH_BLOCKING off: the order of launches matters")
    if found.only_with_blocking_on:
        words.append("only with CUDA_LAUNCH_BLOCKING=1: without it the program ends before anyone looks")
    if found.blocking_differs:
        words.append("plain and blocking launches end otherwise, in too few runs to tell it from chance")
    if found.vanishes_under_tools:
        words.append("vanishes under every tool that was asked: timing, the last act of the kernel, or chance")
    if found.varies:
        words.append(f"differs from run to run under {_list(found.varies)}")
    if found.unresolved:
        words.append(f"could not say: {_list(found.unresolved)}")
    return words or ["no observer found anything" if found.told else "no observer was asked"]


def _see(names: Sequence[str]) -> str:
    return "sees" if len(names) == 1 else "see"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
