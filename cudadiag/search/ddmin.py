"""Delta debugging: the shortest part of a list that still does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def ddmin(items: Sequence[int], triggers: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """A part of `items`, in order, that triggers and of which no single item can be left out (1-minimal).

    Halves are left out, then quarters, and so on to single items, until none can be. Assumes that all of `items`
    trigger. Claim: 1-minimal, not shortest of all. Costs about 2 log2 n tests where one item does it, 2n where all are
    needed, at most about n^2 / 2. Source: the goal is Zeller and Hildebrandt's (Simplifying and isolating
    failure-inducing input, 2002); that trying chunks by themselves, as they do, is not needed for it and costs twice
    as much where many items are needed, was measured."""
    current, size = tuple(items), max(1, len(items) // 2)
    while len(current) > 1:
        before, start = current, 0
        while start < len(current):
            rest = current[:start] + current[start + size :]
            if rest and triggers(rest):
                current = rest
            else:
                start += size
        if size == 1 and current == before:
            break
        size = max(1, size // 2)
    return current
