"""The functions of the case language, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    least: int
    most: int
    usage: str


_MANY = 1000
FUNCTIONS = {
    "min": Function(1, _MANY, "min(a, b, ...)"),
    "max": Function(1, _MANY, "max(a, b, ...)"),
    "abs": Function(1, 1, "abs(a)"),
    "ceil_div": Function(2, 2, "ceil_div(a, b)"),
    "next_pow2": Function(1, 1, "next_pow2(a)"),
    "log2": Function(1, 1, "log2(a)"),
}
RESERVED = frozenset({*FUNCTIONS, "and", "or", "not", "in", "True", "False", "true", "false"})
"""Words that no parameter may have as its name."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """`: did you mean 'x'?` where a known word is near, else nothing."""
    candidates = list(known)
    near = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    if not near:
        near = [name for name in candidates if name.lower() == word.lower()]
    return f": did you mean {near[0]!r}?" if near else ""
