"""The quick scan that decides which lines the readers see: one combined expression over big blocks of bytes.

The expressions are POSIX extended ones (data/triage_patterns.txt), so that `grep -E -f` can be run with the same file.
With google-re2 installed the scan runs as an automaton; without it word by word, some thirty times slower.
"""

from __future__ import annotations

import bisect
import functools
import importlib.resources
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

PATTERN_FILE = "triage_patterns.txt"
LINE_BYTES = 4096


@functools.cache
def patterns() -> tuple[str, ...]:
    """The expressions, one a line of the file."""
    text = importlib.resources.files("cudadiag.data").joinpath(PATTERN_FILE).read_text(encoding="ascii")
    return tuple(line for line in text.splitlines() if line)


@functools.cache
def searcher() -> Callable[[bytes, int], int]:
    """A function (block, position) -> where the next hit begins, -1 for none."""
    combined = "|".join(f"(?:{pattern})" for pattern in patterns()).encode("ascii")
    compiled = _automaton(combined)
    if compiled is None:
        return _by_words()

    def next_hit(block: bytes, position: int) -> int:
        match = compiled.search(block, position)
        return match.start() if match else -1

    return next_hit


def _by_words() -> Callable[[bytes, int], int]:
    """The slow scan: the longest plain word of every expression is looked for in the whole block, and where one is
    found its expressions are tried on that line."""
    words: dict[bytes, list[re.Pattern[bytes]]] = {}
    for pattern in patterns():
        words.setdefault(longest_word(pattern).encode("ascii"), []).append(re.compile(pattern.encode("ascii")))
    known: list[Any] = [None, []]  # the block scanned last, and where its hits are

    def next_hit(block: bytes, position: int) -> int:
        if known[0] is not block:
            known[:] = [block, sorted(at for word, found in words.items() for at in _hits(block, word, found))]
        at = bisect.bisect_left(known[1], position)
        return known[1][at] if at < len(known[1]) else -1

    return next_hit


def _hits(block: bytes, word: bytes, expressions: Sequence[re.Pattern[bytes]]) -> Iterator[int]:
    """Where the word stands in a line that one of its expressions matches; once a line."""
    at = block.find(word)
    while at >= 0:
        begin = max(block.rfind(b"\n", max(0, at - LINE_BYTES), at) + 1, at - LINE_BYTES, 0)
        end = block.find(b"\n", at, at + LINE_BYTES)
        line_end = end if end >= 0 else min(len(block), at + LINE_BYTES)
        if any(expression.search(block, begin, line_end) for expression in expressions):
            yield at
        at = block.find(word, max(line_end, at + 1))


def longest_word(pattern: str) -> str:
    """The longest run of plain characters that every match of an expression must hold."""
    pieces = re.split(r"\((?:[^()]|\([^()]*\))*\)[*?+]?|\[[^\]]*\][*?+]?|\\b|.[*?]|[.^$+]", pattern)
    return max((re.sub(r"\\(.)", r"\1", piece) for piece in pieces), key=len)


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
