"""A call returned a CUDA error, in anybody's words. The recogniser is evidence's; here its surroundings are read.

What the lines around add: the call and its place (ggml writes them on the next two lines, Python above), whether it was
clean-up after a dead context, whether the program says that it goes on.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping

from cudadiag.evidence import ErrorLine, recognise
from cudadiag.evidence.caused import caused_by_assert
from cudadiag.evidence.codes import (
    CudaCode,
    code_for_number,
    codes_by_name,
    codes_by_old_number,
    codes_by_text,
    cuda_codes,
    kind_of,
)
from cudadiag.model import FaultKind, Noticed
from cudadiag.triage.readers.cuda_places import noticed_at
from cudadiag.triage.readers.python_frames import is_source_line
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import MAX_QUOTE, Spot

_BOILERPLATE = re.compile(
    r"For debugging consider passing CUDA_LAUNCH_BLOCKING|CUDA kernel errors might be asynchronously"
    r"|Compile with `?TORCH_USE_CUDA_DSA|Search for `?cudaError|Device-side assertion tracking was not enabled"
    r"|Device-side assertions were explicitly omitted|stacktrace below might be incorrect"
    r"|the error probably arose while initializing the DSA"
)
_NOT_SAID = re.compile(
    r"^\s*(?:#|//|\*|--\w)|^\s*(?:if|raise|except|assert|return|def|case|throw|CHECK|checkCuda\w*|CUDA_CHECK)\b[^:]*\("
    r"|^\s*\d+\s*[│|]|^\s*[-+]{1,3} "
)
_CLEANUP = re.compile(
    r"(?i)exception ignored|destructor|__del__|__dealloc__|~\w+\(\)|failed to (?:free|unload|destroy|deallocate"
    r"|release)"
    r"|; leaking|could not free|clean-?up|atexit|finali[sz]|shutting down|error (?:destroying|freeing|unloading)"
    r"|cuda warning:|failed to (?:unregister|close)|deallocating|while (?:freeing|closing|destroying)|teardown"
    r"|stream in bad state"
)
_SETTLED = re.compile(
    r"(?i)\b(?:continuing|retry(?:ing)?|ignor(?:ed|ing)|skipp(?:ed|ing)|falling back|fall back|recovered|will try)\b"
    r"|(?<!NCCL )\bwarn(?:ing)?\b(?!: Cuda API)"
)
_LAUNCH_WORDS = re.compile(r"(?i)\blaunch(?:ing|ed)?\b|kernel failed|FuncSetAttribute|LaunchKernel|<<<")
_LAUNCH_CALLS = re.compile(r"Launch|(?:Get|PeekAt)LastError$|FuncSetAttribute$|KernelSetAttribute$")
"""Calls that tell of a launch: after one, cudaGetLastError; before one, the attribute for more shared memory."""
_OLD_ERA = re.compile(r"THCudaCheck|TH[CP]\w+\.c|caffe/|/caffe|cuda-?[5-9]\.\d|CUDA [5-9]\.\d")
_SHORT = (
    r"ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|ILLEGAL_INSTRUCTION|INVALID_ADDRESS_SPACE|INVALID_PC|LAUNCH_FAILED"
    r"|LAUNCH_TIMEOUT"
    r"|HARDWARE_STACK_ERROR|ECC_UNCORRECTABLE|NO_BINARY_FOR_GPU|LAUNCH_OUT_OF_RESOURCES"
)
_LOOSE = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[(?P<number>\d{1,4})\] Call to (?P<call>cu\w+) results in (?P<name>\w+)",
        r"(?i:cuda api error detected): (?P<call>cu\w+) returned \((?P<hex>0x[0-9a-fA-F]{1,4})\)",
        rf"(?<![A-Z_])(?P<short>{_SHORT})(?![A-Z_])(?: in (?P<call>cu\w+)\()?",
        r"(?P<short>[Ii]llegal address|[Mm]isaligned address|[Ii]llegal instruction"
        r"|[Ll]aunch failed) in (?P<call>cu\w+)\(",
        r"(?i:cuda).{0,80}\bError(?P<short>[A-Z][a-z]+[A-Z][A-Za-z]+)\b",
        r"^\s*(?P<call>cu(?:da)?[A-Z]\w+)\(\):? (?P<number>\d{1,3})\s*$",
        r"(?i)(?:fail(?:ed|ure)?|error|status|returned|result)\b.{0,60}?[:=( ](?P<number>700|702|71[04-9])\)?[.!]?\s*$",
    )
)
_VAGUE_AT = re.compile(
    r"(?i)\berror:? (?P<words>named symbol not found|out of memory|invalid argument|unknown error"
    r"|operation not supported)"
    r" at line (?P<line>\d{1,9}) in file (?P<file>\S+\.cuh?)\b"
)
_XID = re.compile(r"\bNVRM\b|\bXid\b")
_BENIGN = frozenset({0, 600, 704})


class CudaErrors:
    """The reader."""

    name = "cuda-error"

    def read(self, spot: Spot) -> Iterator[Sign]:
        text = spot.text
        if _BOILERPLATE.search(text) or _XID.search(text) or is_source_line(spot) or _is_code(text):
            return
        for line in _one_voice(recognise(text, spot.log_line)) or _more(text, spot.log_line):
            if line.is_assert:
                yield _assert_sign(line)
                continue
            line = _of_era(line, spot)
            if line.number is None or line.number in _BENIGN:
                continue
            yield _cuda_sign(line, spot)


def _more(text: str, log_line: int) -> list[ErrorLine]:
    """Wordings too loose for programs in general, and safe in crash logs: names without their prefix, Numba's form with
    a name the table does not know, a call with its bare number, a sticky code at a line's end."""
    raw = text.strip()[:MAX_QUOTE]
    vague = _VAGUE_AT.search(text)
    if vague and (told := codes_by_text().get(vague["words"].lower())):
        return [ErrorLine(log_line, raw, told.name, told.number, told.text, None, vague["file"], int(vague["line"]))]
    for pattern in _LOOSE:
        match = pattern.search(text)
        if match is None:
            continue
        groups = match.groupdict()
        number = _number_of(groups)
        code = code_for_number(number) if number is not None else None
        if code is None and groups.get("call") is None:
            continue
        if code is not None and code.number in _BENIGN:
            continue
        name = groups.get("name") or (code.name if code else None)
        return [
            ErrorLine(
                log_line, raw, name, code.number if code else number, code.text if code else None, groups.get("call")
            )
        ]
    return []


def _number_of(groups: Mapping[str, str | None]) -> int | None:
    short = groups.get("short")
    if short:
        wanted = short.upper().replace(" ", "_").replace("ERROR", "").strip("_")
        found = codes_by_name().get(f"CUDA_ERROR_{wanted}") or _by_plain(wanted)
        return found.number if found else None
    digits = groups.get("hex") or groups.get("number")
    return int(digits, 16 if groups.get("hex") else 10) if digits else None


def _by_plain(wanted: str) -> CudaCode | None:
    """`ILLEGALADDRESS` (of ErrorIllegalAddress) to its code."""
    return next((c for n, c in codes_by_name().items() if n.startswith("cudaError") and n[9:].upper() == wanted), None)


def _is_code(text: str) -> bool:
    return bool(_NOT_SAID.match(text)) and "rror:" not in text and "rror :" not in text


def _one_voice(lines: list[ErrorLine]) -> list[ErrorLine]:
    """Of a name and common words ("out of memory") in one line only the name is evidence; the words are a wrapper's."""
    named = [line for line in lines if line.name and line.name in line.raw]
    return named if named and len(named) < len(lines) and _differ(lines) else lines


def _differ(lines: list[ErrorLine]) -> bool:
    return len({line.number for line in lines}) > 1


def _of_era(line: ErrorLine, spot: Spot) -> ErrorLine:
    """The bare numbers 4, 6, 8, 11, ... mean other errors in a log from before CUDA 10.1."""
    is_bare = line.name is None or line.name not in line.raw
    said = line.text is not None and line.text.lower() in line.raw.lower()
    if not is_bare or said or not (spot.old_era or _OLD_ERA.search(spot.text)):
        return line
    code = codes_by_old_number().get(line.number or -1)
    if code is None or not re.search(rf"(?<!\d){line.number}(?!\d)", line.raw):
        return line
    return dataclasses.replace(line, number=code.number, name=code.name, text=code.text)


def _assert_sign(line: ErrorLine) -> Sign:
    return Sign(
        Role.DEVICE,
        line.log_line,
        line.raw,
        kind=FaultKind.DEVICE_ASSERT,
        name="cudaErrorAssert",
        number=710,
        caused=caused_by_assert(line),
        words=line.text,
    )


def _cuda_sign(line: ErrorLine, spot: Spot) -> Sign:
    noticed, ignored = noticed_at(line, spot)
    cleanup = ignored or bool(_CLEANUP.search(spot.text))
    return Sign(
        role=Role.CUDA,
        log_line=spot.log_line,
        text=spot.quote,
        kind=_kind(line, noticed, spot),
        name=_runtime_name(line),
        number=line.number,
        noticed=noticed,
        words=line.text,
        settled=bool(_SETTLED.search(spot.text)) or _goes_on(spot),
        cleanup=cleanup,
    )


def _goes_on(spot: Spot) -> bool:
    return any(re.search(r"(?i)step failed, continuing|continuing with next|retrying", n.text) for n in spot.after(1))


def _runtime_name(line: ErrorLine) -> str | None:
    """The name as written; where only a text or number was, the runtime's."""
    code = cuda_codes().get(line.number or -1)
    if line.name is not None and line.name in line.raw:
        return line.name
    return code.name if code else line.name


def _kind(line: ErrorLine, noticed: Noticed, spot: Spot) -> FaultKind:
    kind = kind_of(line.number)
    if line.number == 1 and (tells_of_launch(noticed.call) or _LAUNCH_WORDS.search(spot.text)):
        return FaultKind.LAUNCH_LIMIT
    return kind


def tells_of_launch(call: str | None) -> bool:
    """Whether an "invalid value" of this call means a launch over a limit."""
    return call is not None and _LAUNCH_CALLS.search(call) is not None
