"""The `command` target: any program, given as a list of words.

`ProbeRequest.target`: {"kind": "command", "argv": ["./bench", "--q", "9"], "line_buffered": true}. The words are not
read by a shell. `line_buffered` (default true) makes a C program's stdout line-buffered through the libstdbuf of GNU
coreutils where that is installed, so that nothing is lost at an abort.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping

from harness.records import ProbeRequest
from harness.targets.interface import TargetLaunch

_STDBUF_PLACES = (
    "/usr/libexec/coreutils/libstdbuf.so",
    "/usr/lib/coreutils/libstdbuf.so",
    "/usr/lib/*/coreutils/libstdbuf.so",
    "/usr/lib64/coreutils/libstdbuf.so",
)
PYTHON_ENVIRONMENT: Mapping[str, str] = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
"""For any Python program: its output not held back, its stack printed at a fatal signal."""


def launch(request: ProbeRequest) -> TargetLaunch:
    """The command line as it was given."""
    argv = tuple(str(word) for word in request.target["argv"])
    environment, note = _line_buffering(request)
    return TargetLaunch(argv, {**PYTHON_ENVIRONMENT, **environment}, notes=(note,) if note else ())


def _line_buffering(request: ProbeRequest) -> tuple[dict[str, str], str | None]:
    if not request.target.get("line_buffered", True):
        return {}, None
    if "LD_PRELOAD" in os.environ or "LD_PRELOAD" in request.env:
        return {}, "stdout is buffered as the program does it: LD_PRELOAD is already in use"
    library = _stdbuf_library()
    if library is None:
        return {}, "stdout is buffered as the program does it: no libstdbuf.so of GNU coreutils here"
    # A program built with AddressSanitizer refuses to start behind any preloaded library unless told that it may.
    sanitizer = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0")))
    return {"LD_PRELOAD": library, "_STDBUF_O": "L", "ASAN_OPTIONS": sanitizer}, None


def _stdbuf_library() -> str | None:
    for place in _STDBUF_PLACES:
        for path in glob.glob(place) if "*" in place else [place]:
            if os.path.isfile(path):
                return path
    return None
