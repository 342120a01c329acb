"""The quick scan that decides which lines the readers see: one combined expression over big blocks of bytes.

The expressions are POSIX extended ones (data/triage_patterns.txt), so that `grep -E -f` can be run with the same file.
With google-re2 installed the scan runs as an automaton, else with Python's own expressions, about ten times slower.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Callable
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
