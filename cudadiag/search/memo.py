"""Remembering what follows from a sweep alone for as long as the sweep lives. A memo: results depend on nothing
else."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from cudadiag.model import Sweep

Value = TypeVar("Value")


class SweepMemo(Generic[Value]):
    """`make(sweep)`, once for each living sweep object (a Sweep holds mappings, so it has no hash of its own)."""

    def __init__(self, make: Callable[[Sweep], Value]) -> None:
        self._make = make
        self._known: dict[int, tuple[weakref.ref[Sweep], Value]] = {}

    def __call__(self, sweep: Sweep) -> Value:
        key = id(sweep)
        known = self._known.get(key)
        if known is not None and known[0]() is sweep:
            return known[1]
        value = self._make(sweep)
        self._known[key] = (weakref.ref(sweep, lambda _: self._known.pop(key, None)), value)
        return value
