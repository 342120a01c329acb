"""The quick scan that decides which lines the readers see: one combined expression over big blocks of bytes.

The expressions are POSIX extended ones (data/triage_patterns.txt), so that `grep -E -f` can be run with the same file.
With google-re2 installed the scan runs as an automaton, else with Python's own expressions, about ten times slower.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

PATTERN_FILE = "triage_patterns.txt"


@functools.cache
def patterns() -> tuple[str, ...]:
    """The expressions, one a line of the file."""
    text = importlib.resources.files("cudadiag.data").joinpath(PATTERN_FILE).read_text(encoding="ascii")
    return tuple(line for line in text.splitlines() if line)


@functools.cache
def searcher() -> Callable[[bytes, int], int]:
    """A function (block, position) -> where the next hit begins, -1 for none."""
    combined = "|".join(f"(?:{pattern})" for pattern in patterns()).encode("ascii")
    compiled = _automaton(combined) or re.compile(combined)

    def next_hit(block: bytes, position: int) -> int:
        match = compiled.search(block, position)
        return match.start() if match else -1

    return next_hit


def fitting(expressions: Iterable[str]) -> Callable[[str], Sequence[int]]:
    """A function from a text to the numbers, in order, of the expressions that may match it: those that do and those
    that only Python understands (looking ahead or behind); without google-re2 all of them."""
    listed = list(expressions)
    try:
        import re2
    except ImportError:
        return lambda _: range(len(listed))
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    together, numbers, others = re2.Set.SearchSet(options), [], []
    for number, expression in enumerate(listed):
        try:
            together.Add(expression)
            numbers.append(number)
        except re2.error:
            others.append(number)
    if not numbers:
        return lambda _: others
    together.Compile()

    def candidates(text: str) -> Sequence[int]:
        return sorted([*(numbers[at] for at in together.Match(text) or ()), *others])

    return candidates


def _automaton(combined: bytes) -> Any:
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.max_mem = 64 << 20
    options.log_errors = False
    return re2.compile(combined, options)


def has_automaton() -> bool:
    """Whether the quick scan runs at an automaton's speed."""
    return _automaton(b"a") is not None
