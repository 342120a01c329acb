"""How a program on the host said that it failed: Python tracebacks, faulthandler, C++ terminate, host assertions.

Pure and total: any bytes. Tells where in the host program, never what the device did.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TRACEBACK = b"Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,9}), in (?P<function>.{1,300})')
_RAISED = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?::\s?(?P<message>.*))?$")
_FATAL = re.compile(rb"(?m)Fatal Python error: (?P<what>[^\r\n]*)")
_FATAL_FRAME = re.compile(rb'File "(?P<file>[^"\r\n]{1,1000})", line (?P<line>\d{1,9}) in (?P<function>[^\r\n]{1,300})')
_TERMINATE = re.compile(
    rb"terminate called (?:after throwing an instance of '(?P<type>[^'\r\n]{0,400})'|(?P<other>[^\r\n]{0,80}))"
    rb"(?:\r?\n\s*what\(\):\s*(?P<message>[^\r\n]*))?"
)
_ASSERTION = re.compile(
    rb"(?m)(?P<program>[^\s:]+): (?P<file>[^\s:]+):(?P<line>\d{1,9}): (?P<function>[^\r\n]{0,300}?): "
    rb"Assertion [`'](?P<message>[^\r\n]{0,300}?)[`'] failed"
)
_NATIVE = re.compile(
    rb"\*\*\* stack smashing detected \*\*\*|free\(\): invalid (?:pointer|size|next size)[^\r\n]{0,40}"
    rb"|double free or corruption[^\r\n]{0,40}|malloc\(\): [^\r\n]{0,60}|corrupted size vs\. prev_size[^\r\n]{0,40}"
    rb"|munmap_chunk\(\): invalid pointer|(?:Segmentation fault|Bus error|Floating point exception|Illegal instruction"
    rb"|Aborted)(?: \(core dumped\))?"
)
_NATIVE_WORDS = (
    b"*** stack smashing", b"free(): invalid", b"double free or", b"malloc(): ", b"corrupted size", b"munmap_chunk()",
    b"Segmentation fault", b"Bus error", b"Floating point exception", b"Illegal instruction", b"Aborted",
)  # fmt: skip
"""How the forms of _NATIVE begin: plain searches are much faster than one pattern over a long stream."""


@dataclass(frozen=True)
class HostError:
    """What the host program said about its end. `form`: python, faulthandler, terminate, assertion or native."""

    form: str
    type: str
    log_line: int
    message: str | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None


def host_error(data: bytes) -> HostError | None:
    """The most telling of the forms found in a stream: an exception beats what died of it."""
    return _python(data) or _terminate(data) or _assertion(data) or _faulthandler(data) or _native(data)


def _line_of(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _python(data: bytes) -> HostError | None:
    """The last traceback that is not one Python only noted ("Exception ignored in")."""
    position = len(data)
    while (position := data.rfind(_TRACEBACK, 0, position)) >= 0:
        before = data[max(0, position - 600) : position].rstrip().rsplit(b"\n", 1)[-1]
        if not before.lstrip().startswith(b"Exception ignored in"):
            found = _traceback(data, position)
            if found is not None:
                return found
    return None


def _traceback(data: bytes, position: int) -> HostError | None:
    body = data[position : position + 200_000].decode("utf-8", "replace").splitlines()[1:]
    frame: re.Match[str] | None = None
    for number, text in enumerate(body, start=1):
        if text.startswith((" ", "\t")) or not text.strip():
            frame = _FRAME.match(text) or frame
            continue
        raised = _RAISED.match(text)
        if raised is None:
            return None
        return HostError(
            form="python",
            type=raised["type"],
            log_line=_line_of(data, position) + number,
            message=(raised["message"] or "")[:400] or None,
            file=frame["file"] if frame else None,
            line=int(frame["line"]) if frame else None,
            function=frame["function"].strip() if frame else None,
        )
    return None


def _terminate(data: bytes) -> HostError | None:
    match = _TERMINATE.search(data) if b"terminate called" in data else None
    if match is None:
        return None
    kind = re.sub(r"std::(?:__\w+::)?basic_string<char,.*>", "std::string", _text(match["type"]) or "C++ exception")
    return HostError("terminate", kind, _line_of(data, match.start()), _text(match["message"]))


def _assertion(data: bytes) -> HostError | None:
    at = data.find(b": Assertion ")
    if at < 0:
        return None
    match = _ASSERTION.search(data, max(data.rfind(b"\n", 0, at) + 1, at - 2000))
    if match is None:
        return None
    where = (_text(match["file"]), int(match["line"]), _text(match["function"]))
    return HostError("assertion", "assertion", _line_of(data, match.start()), _text(match["message"]), *where)


def _faulthandler(data: bytes) -> HostError | None:
    """Python's faulthandler: the newest frame is the first one after the thread that says it is the current one."""
    match = _FATAL.search(data)
    if match is None:
        return None
    start = data.find(b"Current thread", match.end())
    frame = _FATAL_FRAME.search(data, start if start >= 0 else match.end())
    where = (_text(frame["file"]), int(frame["line"]), _text(frame["function"])) if frame else (None, None, None)
    return HostError("faulthandler", _text(match["what"]) or "fatal error", _line_of(data, match.start()), None, *where)


def _native(data: bytes) -> HostError | None:
    found = [match for words in _NATIVE_WORDS if (at := data.find(words)) >= 0 and (match := _NATIVE.match(data, at))]
    first = min(found, key=lambda match: match.start(), default=None)
    return HostError("native", _text(first[0]) or "", _line_of(data, first.start())) if first else None


def _text(value: bytes | None) -> str | None:
    return value.decode("utf-8", "replace").strip()[:400] if value else None
