"""How far two arrays of raw bits lie apart, read as the numbers they stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FORMATS = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52)}


@dataclass(frozen=True)
class Difference:
    """Of the elements whose bits differ: how many, and the worst distances. `unlike`: a NaN against a number."""

    count: int
    total: int
    ulp: int
    absolute: float
    unlike: int


def lanes(bits: np.ndarray, kind: str) -> tuple[np.ndarray, str]:
    """A packed kind as an array of its halves."""
    if kind.endswith("x2") and kind[:-2] in FORMATS:
        return np.ascontiguousarray(bits).view(np.uint16), kind[:-2]
    return bits, kind


def numbers(bits: np.ndarray, kind: str) -> np.ndarray:
    """The values as f64."""
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view({"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]).astype(np.float64)


def order(bits: np.ndarray, width: int) -> np.ndarray:
    """Integers in the order of the numbers, neighbours one apart; infinity follows the largest number."""
    top = 1 << (width - 1)
    magnitude = (bits & bits.dtype.type(top - 1)).astype(np.int64)
    return np.asarray(np.where(bits & bits.dtype.type(top), -magnitude, magnitude))


def difference(got: np.ndarray, want: np.ndarray, kind: str) -> Difference:
    """The distance of two outputs. Integers that differ count as unlike."""
    got, _ = lanes(got, kind)
    want, kind = lanes(want, kind)
    differ = got != want
    count = int(differ.sum())
    if not count or kind not in FORMATS:
        return Difference(count, len(got), 0, 0.0, count)
    with np.errstate(all="ignore"):
        mine, theirs = numbers(got, kind), numbers(want, kind)
        nan = np.isnan(mine) | np.isnan(theirs)
        apart = np.abs(order(got, FORMATS[kind][0]) - order(want, FORMATS[kind][0]))
        finite = np.isfinite(mine) & np.isfinite(theirs)
        gap = np.abs(mine - theirs)[finite]
    known = apart[~nan]
    return Difference(
        count, len(got), int(known.max()) if len(known) else 0, float(gap.max()) if len(gap) else 0.0,
        int((nan & differ).sum()),
    )  # fmt: skip


def within(got: np.ndarray, want: np.ndarray, kind: str, ulp: int, absolute: float) -> np.ndarray:
    """Which elements are equal, or numbers no further apart than `ulp` places or `absolute`."""
    got, _ = lanes(got, kind)
    want, kind = lanes(want, kind)
    if kind not in FORMATS:
        return np.asarray(got == want)
    with np.errstate(all="ignore"):
        mine, theirs = numbers(got, kind), numbers(want, kind)
        near = np.abs(order(got, FORMATS[kind][0]) - order(want, FORMATS[kind][0])) <= ulp
        near |= np.abs(mine - theirs) <= absolute
    return np.asarray((got == want) | (near & ~np.isnan(mine) & ~np.isnan(theirs)))
