"""What a gate knows of one case: what was planned, what was seen. The decision rests on this alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cudadiag.gate.baseline import Baseline, Entry
from cudadiag.gate.covering import Covered, covered
from cudadiag.gate.seen import Seen
from cudadiag.model import Scalar, Sweep


@dataclass(frozen=True)
class Chosen:
    """A shape the gate wants to run: why, and how telling it is (more is earlier)."""

    index: int
    why: tuple[str, ...]
    weight: int
    cost_s: float = 0.0


@dataclass(frozen=True)
class CaseRun:
    """`name`: the case's, group/name where two have one name. `fixed`: values that hold for every shape, by name.
    `problem`: why it could not be run at all; `left_out`: why it was not meant to be. `cut`: shapes that the budget
    left out. `repeat`: fresh processes of each shape. `sources`: its files, to find a kernel's line in. `covers`: the
    shapes of each entry of the baseline by its place, where they were worked out before."""

    name: str
    path: str | None = None
    title: str = ""
    sweep: Sweep = field(default_factory=lambda: Sweep((), ()))
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    device: str = "none"
    chosen: tuple[Chosen, ...] = ()
    cut: frozenset[int] = frozenset()
    seen: tuple[Seen, ...] = ()
    repeat: int = 1
    problem: str | None = None
    left_out: str | None = None
    sources: tuple[str, ...] = ()
    run_folders: tuple[str, ...] = ()
    covers: Mapping[int, Covered] = field(default_factory=dict, repr=False)
    changed: bool | None = None  # its files against those of its last run; None where there was none

    @property
    def planned(self) -> tuple[int, ...]:
        """The shapes that were to be run here and now, most telling first."""
        return tuple(choice.index for choice in self.chosen if choice.index not in self.cut)

    @cached_property
    def _by_index(self) -> Mapping[int, list[Seen]]:
        found: dict[int, list[Seen]] = {}
        for seen in self.seen:
            found.setdefault(seen.index, []).append(seen)
        return found

    def at(self, index: int) -> list[Seen]:
        """The probes of one shape, in the order in which they ended."""
        return self._by_index.get(index, [])

    def entries(self, baseline: Baseline) -> list[Entry]:
        """The known crashes of this case on this kind of device."""
        kind = self.device.partition(":")[0]
        return [entry for entry in baseline.of(self.name) if entry.device in (None, kind)]

    def covered(self, entry: Entry) -> Covered:
        """The shapes of a known crash."""
        known = self.covers.get(entry.place)
        return known if known is not None else covered(entry, self.sweep, self.fixed)
