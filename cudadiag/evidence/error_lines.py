"""Lines in which a program says that a CUDA call failed, or in which a device assert fired.

Pure and total: any bytes. The recogniser (`recognise`) works on one line of text and is what wider readers build on;
`error_lines` runs it over a whole stream. A name of the CUDA API beats its text, the text beats a bare number.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cudadiag.evidence.codes import CudaCode, code_for_number, codes_by_name, codes_by_text
from cudadiag.evidence.names import base_name

RAW_CHARS = 400
MAX_LINES = 200
WINDOW = 8_000


@dataclass(frozen=True)
class ErrorLine:
    """One failing CUDA call, or one device assert, as a line of a log tells it.

    `number` is today's number (77 of old logs is 700); `name` is as written, else the runtime's. `call` is the function
    only. `log_line` counts from 1. `count`: how many lines said the same. For asserts `kernel`, `block`, `thread` and
    `condition` are set, and file and line are the assert's own, on the device.
    """

    log_line: int
    raw: str
    name: str | None = None
    number: int | None = None
    text: str | None = None
    call: str | None = None
    file: str | None = None
    line: int | None = None
    is_assert: bool = False
    kernel: str | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    condition: str | None = None
    count: int = 1


_SURE = (b"cudaerror", b"cuda_error_", b"assertion `", b"gpuassert")
_NUMBER_HINT = re.compile(
    rb"(?:errors?|code)(?:\s*(?:code|number|no\.?))?\s*[:=#(\[]*\s*\d|error \([^)]{1,200}\)\s*:\s*\d"
)
_NAME = re.compile(r"\b(cudaError[A-Z][A-Za-z]+|CUDA_ERROR_[A-Z][A-Z0-9_]*[A-Z0-9])(?![A-Za-z0-9_])")
_NAME_NUMBER = re.compile(r"\(?\s*(?:error|code)?[\s:=(\[]{0,3}(\d{1,5})\b")
_CONTEXT = re.compile(r"(?i)\bcuda|cuda\b|\bgpu ?assert|\bcu[A-Z]\w+\(")
_ERRORISH = re.compile(r"(?i)err|fail|assert|abort|exception|what\(\)|fault|cannot|could not")
_NUMBERS = (
    re.compile(
        r"(?i)\bcuda\b[^\n]{0,60}?\berrors?\b(?:\s*(?:code|number|no\.?))?\s*[:=#(\[]*\s*(\d{1,5})"
        r"(?!\d|\.\d|:\d|\s+[a-z]+s\b)"
    ),
    re.compile(r"(?i)\bcuda(?: driver| runtime)? error \([^)]{1,200}\)\s*:\s*(\d{1,5})(?!\d)"),
    re.compile(r"(?i)cudacheck\b[^\n]{0,200}?\berror=(\d{1,5})(?!\d)"),
    re.compile(r"(?i)\bcode\s*=\s*(\d{1,5})(?!\d)"),
)
_CALLS = (
    re.compile(r"\bcall=(?P<call>\w+)"),
    re.compile(r"(?i)\b(?:API call to|call to|from|returned by|calling|in call)\s+[`'\"]?(?P<call>cu\w*[A-Z]\w*)"),
    re.compile(r"[`'\"](?P<call>cu(?:da)?[A-Z]\w*)\("),
    re.compile(r"\b(?P<call>cu(?:da)?[A-Z]\w*)\("),
    re.compile(r"\b(?P<call>cuda[A-Z]\w*|cu[A-Z]\w+)\s+(?:failed|returned|error)"),
)
_SOURCE = r"[^\s:()'\"\[\],=`]+\.(?:cuh?|cc|cpp|cxx|c|hpp|hh|hxx|h|inl|pyx?|rs)"
_PLACES = (
    re.compile(rf"(?P<file>{_SOURCE}):(?P<line>\d{{1,9}})"),
    re.compile(rf"(?P<file>{_SOURCE})\((?P<line>\d{{1,9}})\)"),
    re.compile(rf"\bfile=(?P<file>{_SOURCE})[, ]+line=(?P<line>\d{{1,9}})"),
    re.compile(rf"(?i)\bfile[: =\"']+(?P<file>{_SOURCE})[\"']?,?\s+(?:at\s+)?line[ :=]+(?P<line>\d{{1,9}})"),
    re.compile(rf"(?i)\bline[ :=]+(?P<line>\d{{1,9}})\s+(?:in|of)\s+(?:file\s+)?[\"']?(?P<file>{_SOURCE})"),
    re.compile(rf"(?P<file>{_SOURCE})[\"']?,?\s+(?:line\s+)?(?P<line>\d{{1,9}})(?![\d.])"),
    re.compile(r"@\s?(?P<line>\d{1,6})\s*$"),
    re.compile(r"(?i)\bline[ :=]+(?P<line>\d{1,6})\b"),
)
_ASSERT = re.compile(
    r"(?P<file>[^\s:]+|[A-Za-z]:[^\s:]+):(?P<line>\d{1,9}):\s*(?P<kernel>[^`]{0,400}?):?\s*"
    r"block: \[(?P<block>\d{1,9},\s?\d{1,9},\s?\d{1,9})\],? thread: \[(?P<thread>\d{1,9},\s?\d{1,9},\s?\d{1,9})\]\s*"
    r"Assertion `(?P<condition>.{0,400}?)[`'] failed"
)
_VAGUE_TEXTS = frozenset(
    {
        "no error", "out of memory", "invalid argument", "unknown error", "operation not supported",
        "operation not permitted", "file not found", "initialization error", "device not ready", "array is mapped",
        "resource already mapped", "resource already acquired", "resource not mapped", "resource not mapped as array",
        "resource not mapped as pointer", "context is destroyed", "named symbol not found", "driver shutting down",
        "wait operation timed out", "api failure base", "context is already current", "integrity checks failed",
        "profiler already started", "profiler already stopped",
    }
)  # fmt: skip
"""Texts that other programs use as well: they count only beside CUDA's name."""


def error_lines(data: bytes, *, limit: int = MAX_LINES) -> tuple[ErrorLine, ...]:
    """Every CUDA error and device assert told in a stream, in order, repeats folded, at most `limit` of them.

    Lines end at a line feed or a carriage return (progress bars). Lines of compute-sanitizer are not the program's and
    are left out: they have a reader of their own.
    """
    found: dict[tuple[object, ...], ErrorLine] = {}
    for number, text in _candidate_lines(data):
        if text.lstrip().startswith("====="):
            continue
        for line in recognise(text, number):
            key = (line.is_assert, line.number, line.name, line.call, line.file, line.line, line.condition)
            known = found.get(key)
            if known is not None:
                found[key] = dataclasses.replace(known, count=known.count + 1)
            elif len(found) < limit:
                found[key] = line
    return tuple(found.values())


def recognise(text: str, log_line: int = 1) -> list[ErrorLine]:
    """The CUDA errors one line tells: usually none or one, two where two processes wrote into one line."""
    asserted = _ASSERT.search(text)
    if asserted:
        return [_assert_line(asserted, text, log_line)]
    hits = _merge(sorted((*_named(text), *_told(text)), key=lambda hit: hit.at))
    if not hits:
        hits = list(_numbered(text))
    return [_error_line(hit, text, log_line) for hit in hits]


def first_error(lines: Iterable[ErrorLine], *, within: int = 3) -> ErrorLine | None:
    """The earliest CUDA error (not assert), completed by what the next lines about the same code add (call, file,
    line)."""
    first: ErrorLine | None = None
    for line in lines:
        if line.is_assert or line.number == 600:
            continue
        if first is None:
            first = line
        elif line.number == first.number and line.log_line - first.log_line <= within:
            first = _completed(first, line)
    return first


def _completed(first: ErrorLine, other: ErrorLine) -> ErrorLine:
    return dataclasses.replace(
        first,
        name=other.name if other.name and other.name in other.raw else first.name,
        text=first.text or other.text,
        call=first.call or other.call,
        file=first.file or other.file,
        line=first.line if first.line is not None else other.line,
    )


@dataclass(frozen=True)
class _Hit:
    at: int
    end: int
    number: int | None
    name: str | None
    text: str | None


def _candidate_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Line number (from 1) and text of every line that may hold an error.

    Found by plain searches for fragments in the lower-cased stream: a pattern with so many alternatives is a hundred
    times slower. Very long lines are looked at around the fragment only.
    """
    low = data.lower()
    number, counted = 1, 0
    for start, end in _windows(low):
        number += data.count(b"\n", counted, start)
        counted = start
        yield number, data[start:end].decode("utf-8", "replace")


def _windows(low: bytes) -> list[tuple[int, int]]:
    """Places (start, end) of the lines that hold a fragment, in order, none twice."""
    found: set[tuple[int, int]] = set()
    sure, common = _fragments()
    for fragment in (*sure, *common, b"cuda"):
        at = low.find(fragment)
        while at >= 0:
            start, end = _line_around(low, at)
            if fragment in sure or _speaks_of_cuda(low, start, end, fragment):
                found.add((start, end))
            at = low.find(fragment, end)
    return sorted(found)


@functools.cache
def _fragments() -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """What is worth a look wherever it stands, and the texts that are so only beside CUDA's name; in lower case."""
    texts = [text for text in codes_by_text() if text not in _VAGUE_TEXTS]
    return (*_SURE, *(text.encode() for text in texts)), tuple(sorted(text.encode() for text in _VAGUE_TEXTS))


def _speaks_of_cuda(low: bytes, start: int, end: int, fragment: bytes) -> bool:
    """A common text is worth a look only beside CUDA's name, and that name alone only beside a number."""
    if fragment == b"cuda":
        return _NUMBER_HINT.search(low, start, end) is not None
    near = low[start:end]
    return b"cu" in near or b"gpu" in near


def _line_around(data: bytes, at: int) -> tuple[int, int]:
    """Start and end of the line around a place, cut to a window where it is very long."""
    low, high = max(0, at - WINDOW), min(len(data), at + WINDOW)
    start = max(low, data.rfind(b"\n", low, at) + 1, data.rfind(b"\r", low, at) + 1)
    ends = [place for place in (data.find(b"\n", at, high), data.find(b"\r", at, high)) if place >= 0]
    return start, min(ends) if ends else high


def _named(text: str) -> Iterator[_Hit]:
    for match in _NAME.finditer(text):
        code = codes_by_name().get(match[1])
        if code is not None and code.number != 0:
            yield _Hit(match.start(), match.end(), code.number, match[1], None)
        elif code is None and (number := _number_beside(text, match)) is not None:
            yield _Hit(match.start(), match.end(), number, match[1], None)


def _number_beside(text: str, name: re.Match[str]) -> int | None:
    """The number next to a name the table does not know: without one it may be a macro's name."""
    after = _NAME_NUMBER.match(text, name.end())
    before = re.search(r"(\d{1,5})\s*[(:]?\s*$", text[max(0, name.start() - 12) : name.start()])
    match = after or before
    return int(match[1]) if match else None


def _told(text: str) -> Iterator[_Hit]:
    low = text.lower()
    taken = 0
    for at, words in sorted(_texts_in(low), key=lambda hit: (hit[0], -len(hit[1]))):
        code = codes_by_text()[words]
        if at < taken or code.number == 0 or (words in _VAGUE_TEXTS and not _has_context(text, at)):
            continue
        taken = at + len(words)
        yield _Hit(at, taken, code.number, None, code.text)


def _texts_in(low: str) -> Iterator[tuple[int, str]]:
    for words in codes_by_text():
        at = low.find(words)
        while at >= 0:
            yield at, words
            at = low.find(words, at + 1)


def _has_context(text: str, at: int) -> bool:
    """Words as common as "out of memory" count only beside CUDA's name, in a line that speaks of an error."""
    before = text[max(0, at - 12) : at]
    if re.search(r"(?i)\bcuda[\s:]+$", before):
        return True
    return bool(_CONTEXT.search(text) and _ERRORISH.search(text))


def _numbered(text: str) -> Iterator[_Hit]:
    for pattern in _NUMBERS:
        match = pattern.search(text)
        code = code_for_number(int(match[1])) if match else None
        if match and code:
            yield _Hit(match.start(), match.end(), code.number, None, None)
            return


def _merge(hits: list[_Hit]) -> list[_Hit]:
    """Neighbours of one code become one hit (name, text); a second code in the line stays a hit of its own."""
    merged: list[_Hit] = []
    for hit in hits:
        same = merged and merged[-1].number == hit.number and not (merged[-1].name and hit.name and merged[-1].text)
        if same:
            last = merged[-1]
            merged[-1] = _Hit(last.at, hit.end, last.number, last.name or hit.name, last.text or hit.text)
        else:
            merged.append(hit)
    return merged


def _error_line(hit: _Hit, text: str, log_line: int) -> ErrorLine:
    code = code_for_number(hit.number) if hit.number is not None else None
    call = next((m["call"] for p in _CALLS if (m := p.search(text))), None)
    file, line = _place(text)
    return ErrorLine(
        log_line=log_line,
        raw=text.strip()[:RAW_CHARS],
        name=hit.name or _name(code),
        number=hit.number,
        text=hit.text or (code.text if code else None),
        call=None if call == hit.name else call,
        file=file,
        line=line,
    )


def _name(code: CudaCode | None) -> str | None:
    return code.name if code else None


def _place(text: str) -> tuple[str | None, int | None]:
    for pattern in _PLACES:
        match = pattern.search(text)
        if match:
            return match.groupdict().get("file"), int(match["line"])
    return None, None


def _assert_line(match: re.Match[str], text: str, log_line: int) -> ErrorLine:
    return ErrorLine(
        log_line=log_line,
        raw=text.strip()[:RAW_CHARS],
        name="cudaErrorAssert",
        number=710,
        text=f"Assertion `{match['condition']}` failed",
        file=match["file"],
        line=int(match["line"]),
        is_assert=True,
        kernel=base_name(match["kernel"]),
        block=triple(match["block"]),
        thread=triple(match["thread"]),
        condition=match["condition"],
    )


def triple(text: str) -> tuple[int, int, int]:
    """`1,0,0` as the three numbers of a block or a thread."""
    x, y, z = (int(part) for part in text.split(","))
    return x, y, z
