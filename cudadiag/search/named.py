"""Comparisons with the numbers that the case itself names: `length > SCRATCH_LEN` rather than `prefix > 1024`.

A number with a name is where a program's author drew a line, so it is likelier to be where the program breaks than any
other number between the same two values of the sweep. But a name can also just happen to lie there, the more easily
the smaller its number and the wider the gap. So every comparison has a weight of its own that does not depend on the
gap, while a plain cut through a finely swept gap is lighter than one through a wide gap: a coincidence wins least where
the sweep is coarse. What the sweep cannot tell apart is listed beside the rule named, as with every other rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from cudadiag.search.columns import Quantity
from cudadiag.search.expr import Const, Expr, Name, Op

SIGNS = ((">", 0.45), (">=", 0.30), ("<=", 0.15), ("<", 0.10))
"""What was sized for C items breaks beyond C, less often at C itself, least often below."""
SMALLEST, LARGE_ENOUGH = 8, 1024
"""Numbers up to the first coincide with anything; from the second on a name counts in full."""
DERIVED, AUTOMATIC = 1.25, 0.1
"""Weights beside 1 for a parameter: what `derive:` names was named for a purpose; sizes and launches come by
themselves."""
MOST_CONSTANTS = 64


def comparisons(quantities: Sequence[Quantity], constants: Mapping[str, int | float]) -> Iterator[tuple[Expr, float]]:
    """(condition, share of the family's mass) for each number that lies between two values of a quantity. The shares
    add up to 1 only where all numbers are large: what small ones lose nobody gets."""
    pairs = [
        (q, Const(value, name), _of(q))
        for name, value in _distinct(constants)
        for q in quantities
        if q.numeric and q.levels[0] <= value <= q.levels[-1]  # type: ignore[operator]
    ]
    total = sum(weight for _, _, weight in pairs)
    for quantity, constant, weight in pairs:
        for sign, share in SIGNS:
            yield Op(sign, (Name(quantity.name), constant)), share * weight / total * _size(constant.value)


def _distinct(constants: Mapping[str, int | float]) -> list[tuple[str, int | float]]:
    """One name for each number (the first declared), without the small ones."""
    found: dict[int | float, str] = {}
    for name, value in constants.items():
        if value > SMALLEST:
            found.setdefault(value, name)
    return [(name, value) for value, name in found.items()][:MOST_CONSTANTS]


def _of(quantity: Quantity) -> float:
    if not quantity.derived:
        return 1.0
    automatic = "." in quantity.name or quantity.name in ("grid", "block", "shared")
    return AUTOMATIC if automatic else DERIVED


def _size(value: object) -> float:
    """0 for a number that is no evidence, up to 1."""
    span = math.log2(LARGE_ENOUGH / SMALLEST)
    return min(1.0, math.log2(float(value) / SMALLEST) / span)  # type: ignore[arg-type]
