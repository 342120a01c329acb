"""cuda-gdb's lines, a GPU core file it opened, and PyTorch's device-side assertion reports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudadiag.evidence.core.exceptions import exception_named
from cudadiag.evidence.error_lines import triple
from cudadiag.evidence.names import base_name
from cudadiag.model import Caused, FaultKind
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot

_SIGNAL = re.compile(r"received signal CUDA_EXCEPTION_\d+, (?P<name>[A-Z][\w/ -]+?)\.?\s*$")
_EXCEPTION = re.compile(r"CUDA Exception: (?P<name>[A-Z][\w/ -]+?)\.?\s*$")
_PLACE = re.compile(r"triggered at PC (?P<pc>0x[0-9a-fA-F]+).*?(?:\((?P<file>[^()\s:]+):(?P<line>\d{1,9})\))?\s*$")
_FOCUS = re.compile(
    r"\[(?:Switching focus|Current focus set) to CUDA kernel \d+,.*?block "
    r"\((?P<block>\d{1,9},\d{1,9},\d{1,9})\), thread \((?P<thread>\d{1,9},\d{1,9},\d{1,9})\)"
)
_FRAME = re.compile(
    r"^(?:#0\s+)?(?:0x[0-9a-fA-F]+ in "
    r")?(?P<kernel>[A-Za-z_][^<>\n]*?(?:<[^\n]*?>)?(?:\([^()]*\))?)\s*<<<.*?>>>\s*\(.*?\)"
    r"(?:\s+at (?P<file>\S+?):(?P<line>\d{1,9}))?"
)
_DSA = re.compile(r"GPU assertion failure message = (?P<message>.*)")
_DSA_FILE = re.compile(r"File containing assertion = (?P<file>.+?):(?P<line>\d{1,9})")
_DSA_KERNEL = re.compile(r"Device function containing assertion = (?P<kernel>.+)")


class Debugger:
    """The reader."""

    name = "debugger"

    def read(self, spot: Spot) -> Iterator[Sign]:
        match = _SIGNAL.search(spot.text) or _EXCEPTION.search(spot.text)
        if match:
            yield _exception(spot, match["name"].strip())
        dsa = _DSA.search(spot.text)
        if dsa:
            yield _device_assert(spot, dsa["message"].strip())


def _exception(spot: Spot, name: str) -> Sign:
    found = exception_named(name)
    lines = [spot.text, *(line.text for line in spot.after(8))]
    pc = next((m for line in lines if (m := _PLACE.search(line))), None)
    focus = next((m for line in lines if (m := _FOCUS.search(line))), None)
    frame = next((m for line in lines if (m := _FRAME.match(line.strip()))), None)
    file, line = _place(pc, frame)
    caused = Caused(
        kernel=base_name(frame["kernel"]) if frame else _named_at_pc(lines),
        file=file,
        line=line,
        pc=int(pc["pc"], 16) if pc else None,
        block=triple(focus["block"]) if focus else None,
        thread=triple(focus["thread"]) if focus else None,
        log_line=spot.log_line,
    )
    kind = found.kind if found else FaultKind.OTHER_CUDA
    return Sign(
        Role.DEVICE, spot.log_line, spot.quote, kind=kind, caused=caused,
        words=f"the debugger says: {name}",
    )  # fmt: skip


def _place(pc: re.Match[str] | None, frame: re.Match[str] | None) -> tuple[str | None, int | None]:
    """The line of the exact program counter where it is known; the frame's is where the threads stood."""
    for match in (pc, frame):
        if match and match["file"]:
            return match["file"], int(match["line"])
    return None, None


def _named_at_pc(lines: list[str]) -> str | None:
    for text in lines:
        match = re.search(r"triggered at PC 0x[0-9a-fA-F]+\s+(?P<kernel>[A-Za-z_][\w:<>, ]*)\(", text)
        if match:
            return base_name(match["kernel"])
        plain = re.match(r"^#0\s+0x[0-9a-fA-F]+ in (?P<kernel>[\w:]+)\b", text)
        if plain:
            return base_name(plain["kernel"])
    return None


def _device_assert(spot: Spot, message: str) -> Sign:
    lines = [line.text for line in spot.after(8)]
    file = next((m for line in lines if (m := _DSA_FILE.search(line))), None)
    kernel = next((m for line in lines if (m := _DSA_KERNEL.search(line))), None)
    caused = Caused(
        kernel=base_name(kernel["kernel"].strip()) if kernel else None,
        file=file["file"] if file else None,
        line=int(file["line"]) if file else None,
        log_line=spot.log_line,
    )
    return Sign(
        Role.DEVICE, spot.log_line, spot.quote, kind=FaultKind.DEVICE_ASSERT, name="cudaErrorAssert",
        number=710, caused=caused, words=f"Assertion `{message}` failed",
    )  # fmt: skip
