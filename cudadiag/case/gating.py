"""Which shapes of a case `cudadiag gate` runs, as the key `gate` says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cudadiag.case.targets import Formula
from cudadiag.model import Scalar

Selector = Formula | Mapping[str, Scalar]
"""A condition over a shape's quantities, or values of some of its parameters: the shapes for which it holds."""


@dataclass(frozen=True)
class GateSelection:
    """`smoke`: shapes always run. `boundaries`: conditions; shapes on both sides of where they change are run.
    `known_bad`: the first shapes that match, and their neighbours that do not. `repeat`: fresh processes of each shape.
    `leave_out`: why the gate does not run this case."""

    smoke: tuple[Selector, ...] = ()
    boundaries: tuple[Selector, ...] = ()
    known_bad: tuple[Selector, ...] = ()
    every: bool = False
    repeat: int | None = None
    leave_out: str | None = None

    @property
    def chooses(self) -> bool:
        """Whether it says which shapes; otherwise the gate takes the ends of the sweep."""
        return bool(self.every or self.smoke or self.boundaries or self.known_bad)
