"""Delta debugging: the shortest part of a list that still does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def ddmin(items: Sequence[int], triggers: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """A part of `items`, in order, that triggers and of which no single item can be left out (1-minimal).

    Assumes that all of `items` trigger. Claim: 1-minimal, not shortest of all. Costs at most n^2 + 3n tests, 2 log2 n
    where one item does it. Source: Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002."""
    current, parts = tuple(items), 2
    while len(current) >= 2:
        size = -(-len(current) // parts)
        chunks = [current[i : i + size] for i in range(0, len(current), size)]
        rest = [tuple(x for c in chunks[:i] + chunks[i + 1 :] for x in c) for i in range(len(chunks))]
        smaller = next((c for c in chunks if len(c) < len(current) and triggers(c)), None)
        if smaller is not None:
            current, parts = smaller, 2
            continue
        complement = next((r for r in rest if parts > 2 and r and triggers(r)), None)
        if complement is not None:
            current, parts = complement, max(parts - 1, 2)
        elif size == 1:
            break
        else:
            parts = min(len(current), 2 * parts)
    return current
