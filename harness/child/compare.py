"""Compare outputs with a reference: how many elements differ, by how much, where first. Never whether that is a
failure.

Loaded by path in the child; numpy is given by the caller.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from typing import Any

DEFAULT_TOLERANCE = {
    "float16": {"rel": 1e-2, "abs": 1e-3},
    "bfloat16": {"rel": 2e-2, "abs": 1e-2},
    "float32": {"rel": 1e-4, "abs": 1e-5},
    "float64": {"rel": 1e-9, "abs": 1e-12},
}
EXACT = {"rel": 0.0, "abs": 0.0}


def tolerance_for(name: str, dtype: str, given: dict[str, Any] | None) -> dict[str, float]:
    """The tolerance of one output: its own by name; one for all counts for floating-point types only; integers are
    exact."""
    own = (given or {}).get(name)
    if isinstance(own, dict):
        chosen = own
    elif dtype not in DEFAULT_TOLERANCE:
        chosen = EXACT
    elif given and ("rel" in given or "abs" in given):
        chosen = given
    else:
        chosen = DEFAULT_TOLERANCE[dtype]
    return {"rel": float(chosen.get("rel", 0.0)), "abs": float(chosen.get("abs", 0.0))}


def compare(numpy: Any, got: Any, expected: Any, poison: Any, tolerance: dict[str, float]) -> dict[str, Any]:
    """Facts about one output against its reference, arrays of one shape.

    `|got - expected| <= abs + rel * |expected|` counts as equal, and so do a NaN where a NaN is expected and equal
    infinities. `poison` is True where the bits written before the run are still there, None if none were written.
    """
    exact = tolerance["rel"] == 0.0 == tolerance["abs"]
    with numpy.errstate(all="ignore"):
        same = (got == expected) | ((got != got) & (expected != expected))
        apart = _distance(numpy, got, expected)
        scale = numpy.abs(expected.astype("float64"))
        differs = ~same if exact else ~(same | (apart <= tolerance["abs"] + tolerance["rel"] * scale))
        finite = numpy.isfinite(apart)
        relative = numpy.where(finite & (scale > 0), apart / numpy.where(scale > 0, scale, 1), 0.0)
    count = int(numpy.count_nonzero(differs))
    facts: dict[str, Any] = {
        "elements": int(got.size),
        "differing": count,
        "max_abs": number(apart[finite].max()) if finite.any() else None,
        "max_rel": number(relative.max()) if relative.size else None,
        "nonfinite": int(numpy.count_nonzero(~numpy.isfinite(got.astype("float64")))),
        "first": None,
        **tolerance,
    }
    if poison is not None:
        facts["poison_left"] = int(numpy.count_nonzero(poison & differs))
    if count:
        index = numpy.unravel_index(int(differs.argmax()), got.shape)
        facts["first"] = {
            "index": [int(i) for i in index],
            "got": number(got[index]),
            "expected": number(expected[index]),
        }
    return facts


def _distance(numpy: Any, got: Any, expected: Any) -> Any:
    """|got - expected| in float64; for integers the subtraction itself is exact (64-bit values do not fit a
    float64)."""
    if got.dtype.kind in "iu":
        larger, smaller = numpy.maximum(got, expected), numpy.minimum(got, expected)
        return (larger.astype("uint64") - smaller.astype("uint64")).astype("float64")
    return numpy.abs(got.astype("float64") - expected.astype("float64"))


def number(value: Any) -> Any:
    """A JSON number, or the text "nan", "inf", "-inf": JSON has none of these."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return str(plain)
    return plain
