"""Where a CUDA error was noticed: the call, the file and the line, out of the error's own line and those around it.

Each program has a form of its own: in brackets, on the next two lines (ggml), on the line before (libav, NAMD), in
Python's traceback, in the C++ frames under an exception (PyTorch), or only as words about what failed (XLA).
"""

from __future__ import annotations

import re

from cudadiag.evidence import ErrorLine
from cudadiag.model import Noticed
from cudadiag.triage.readers.python_frames import python_place
from cudadiag.triage.spot import Spot

_CLEANUP_CALLS = re.compile(r"(?i)moduleUnload|__d(?:el|ealloc)__|\bfree$|memFree|\w(?:Destroy|Unload)$|destroy\w*$")
"""Calls of Python frames in which a destructor runs."""
_GGML = re.compile(r"current device: -?\d+, in function (?P<function>\S+) at (?P<file>.+?):(?P<line>\d{1,9})\s*$")
_BARE_CALL = re.compile(r"^\s*(?P<call>[A-Za-z_]\w*)(?:\(|\s*$)")
_NAMED_CALL = re.compile(
    r"\b(?P<call>cuda(?!Error|Success|Memcpy\w+To)[A-Z]\w*(?<!_t)"
    r"|cu(?:Ctx|Mem|Stream|Event|Launch|Module|Device|Func|Graph|Link|Library|Kernel)\w+)\b"
)
_BEGUN = re.compile(
    r"(?i)cuda error\b(?:.*?\b(?P<call>cu\w+)\()?.*\bin file (?P<file>[^\s,]+),? .*\bline (?P<line>\d{1,9})\s*$"
)
_EXPLICIT = re.compile(
    r"(?P<file3>\S+\.(?:cpp|cu|cc|cuh|h)): (?P<line3>\d{1,9})\s*$|"
    r"\bfile=(?P<file>\S+) ?; line=(?P<line>\d{1,9})|\bin (?P<file2>\S+\.\w{1,4}) on line (?P<line2>\d{1,9})"
)
_CALL_FAILED = re.compile(r"(?P<call>cu(?:da)?[A-Z]\w*)\(.*\) failed")
_BRACKETED = re.compile(r"\((?P<call>cu(?:da)?[A-Z][a-z]\w+)\)")
_RAISED = re.compile(r"Exception raised from (?P<call>\S+) at (?P<file>\S+?):(?P<line>\d{1,9})")
_FRAME = re.compile(r"frame #(?P<n>\d{1,9}): (?P<name>.+?) \+ 0x")
_PLUMBING = re.compile(
    r"c10::Error|torchCheckFail|c10_cuda_check|c10::detail|<unknown function>|torchInternalAssertFail|c10::cuda::"
)
_XLA_CALLS = (
    (re.compile(r"(?i)could not synchronize cuda stream|failed to synchronize"), "cuStreamSynchronize"),
    (re.compile(r"(?i)failed to query event|polling for event"), "cuEventQuery"),
    (re.compile(r"(?i)failed to launch (?:cuda|gpu) kernel|failed to launch kernel"), "cuLaunchKernel"),
    (re.compile(r"(?i)failed to enqueue async memcpy from device to host|memcpy.{0,20}device to host"), "cuMemcpyDtoH"),
    (re.compile(r"(?i)failed to enqueue async memcpy from host to device|memcpy.{0,20}host to device"), "cuMemcpyHtoD"),
    (re.compile(r"(?i)failed to (?:allocate|alloc) .{0,40}(?:device|from)"), "cuMemAlloc"),
    (re.compile(r"(?i)failed to load in-memory cubin|failed to load .{0,20}module"), "cuModuleLoadData"),
    (re.compile(r"(?i)failed to unload module"), "cuModuleUnload"),
    (re.compile(r"(?i)failed to free device memory"), "cuMemFree"),
    (re.compile(r"(?i)error destroying cuda event"), "cuEventDestroy"),
)


def noticed_at(line: ErrorLine, spot: Spot) -> tuple[Noticed, bool]:
    """Where the error was noticed, from the line and its surroundings; and whether Python only noted it."""
    call, file, number = line.call, line.file, line.line
    call = call or next((name for pattern, name in _XLA_CALLS if pattern.search(spot.text)), None) or _call_told(spot)
    explicit = _EXPLICIT.search(spot.text)
    if explicit is not None:
        file, number = _first(explicit, "file"), int(_first(explicit, "line") or 0)
    begun = next((m for line in spot.before(1) if (m := _BEGUN.search(line.text))), None) if file is None else None
    if begun is not None:
        call, file, number = call or begun["call"], begun["file"], int(begun["line"])
    if file is None:
        told_call, file, told_number = _told_below(spot)
        call, number = call or told_call, number if number is not None else told_number
    place = python_place(spot) if file is None or file.endswith((".pyx", ".cc")) else None
    if place is not None:
        file, number, call = place.file, place.line, call or place.call
    if file is None or call is None:
        raised_call, raised_file, raised_number = _raised_from(spot)
        call = call or raised_call
        file, number = (file, number) if file is not None else (raised_file, number or raised_number)
    return Noticed(call, file, number, spot.log_line, line.text), bool(
        place and (place.ignored or _CLEANUP_CALLS.search(place.call or ""))
    )


def _first(match: re.Match[str], name: str) -> str | None:
    """The group of that name, or of its numbered likes, that took part."""
    return next((value for key, value in match.groupdict().items() if key.startswith(name) and value), None)


def _call_told(spot: Spot) -> str | None:
    """The call in brackets, or on the line before where this one is only the arrow to its result, as libav writes."""
    told = _BRACKETED.search(spot.text) or _NAMED_CALL.search(spot.text)
    if told:
        return told["call"]
    if not spot.text.lstrip(" :").startswith("->") and ": -> CUDA_ERROR" not in spot.text:
        return None
    match = next((m for line in spot.before(2) if (m := _CALL_FAILED.search(line.text))), None)
    return match["call"] if match else None


def _told_below(spot: Spot) -> tuple[str | None, str | None, int | None]:
    """ggml: the place on the next line, the call on the one after."""
    lines = spot.after(3)
    for at, line in enumerate(lines[:2]):
        match = _GGML.search(line.text)
        if match:
            call = _BARE_CALL.match(lines[at + 1].text) if at + 1 < len(lines) else None
            return (call["call"] if call else None), match["file"], int(match["line"])
    return None, None, None


def _raised_from(spot: Spot) -> tuple[str | None, str | None, int | None]:
    """The C++ frames PyTorch prints under an exception: the first that is not its own plumbing."""
    raised: re.Match[str] | None = None
    for line in spot.after(16):
        raised = raised or _RAISED.search(line.text)
        frame = _FRAME.search(line.text)
        if frame and not _PLUMBING.search(frame["name"]):
            name = frame["name"].split("(", 1)[0].strip()
            return name, raised["file"] if raised else None, int(raised["line"]) if raised else None
    return None, raised["file"] if raised else None, int(raised["line"]) if raised else None
