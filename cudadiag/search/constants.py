"""The numbers at which CUDA programs break, and how to name the place between two values of a sweep."""

from __future__ import annotations

from cudadiag.search.expr import Const, Expr, Op

LIMITS = (
    65535,  # grid y and z
    1024,  # threads of a block
    49152,  # shared memory of a block without opting in
    65536,
    101376,  # shared memory opted in, 8.6 and 8.9
    166912,  # 8.0
    232448,  # 9.0
    2**31 - 1,  # int32, and grid x
    2**31,
    2**32 - 1,
    2**32,
)
MODULI = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
RESIDUE_MODULI = (3, 4, 5, 6, 7, 8)
WINDOW_MODULI = (4, 8, 16, 32, 64, 128, 256)
TILES = (16, 32, 64, 128, 256)
PRODUCT_MODULI = (2, 4, 8, 16, 32, 64, 128)


def cut(below: float, above: float, integer: bool) -> tuple[str, int | float, bool]:
    """The nicest way to separate values up to `below` from values from `above` on, as (">", c) or (">=", c).

    The last member says whether a constant that matters (a limit, a power of two) lies there: such a cut is
    likelier."""
    if not integer:
        return ">=", above, False
    low, high = int(below), int(above)
    for limit in LIMITS:
        if low <= limit < high:
            return ">", limit, True
    power = 1 << max(high, 1).bit_length() - 1  # the largest power of two that is not above `high`
    if low < power <= high and power >= 2:
        return (">=", power, True) if power == high else (">", power, True)
    if low >= 2 and low & (low - 1) == 0:
        return ">", low, True
    return (">", low, False) if _zeros(low) > _zeros(high) else (">=", high, False)


def _zeros(value: int) -> int:
    """How round a number is: trailing zeros, the better of binary and decimal (a decimal zero counts for three)."""
    if value == 0:
        return 0
    decimal = len(str(value)) - len(str(value).rstrip("0"))
    return max((value & -value).bit_length() - 1, 3 * decimal)


def threshold(term: Expr, below: float, above: float, integer: bool, upper: bool) -> tuple[Expr, bool]:
    """`term` is above the cut (`upper`) or below it, and whether the constant matters."""
    sign, constant, matters = cut(below, above, integer)
    if not upper:
        sign = "<=" if sign == ">" else "<"
    return Op(sign, (term, Const(constant))), matters
