"""The lines a GPU core dump in the making prints on stderr (CUDA_COREDUMP_SHOW_PROGRESS). Pure and total."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudadiag.evidence.core.exceptions import exception_kind, exception_named
from cudadiag.evidence.names import base_name
from cudadiag.model import FaultKind

_STARTED = re.compile(rb"Starting GPU coredump generation")
_PREFIX = rb"coredump:[ \t]+"
_WRITING = re.compile(_PREFIX + rb"Writing ELF file to (?P<path>[^\r\n]+)")
_PERCENT = re.compile(_PREFIX + rb"(\d{1,3})%\.\.\.")
_DONE = re.compile(_PREFIX + rb"All done")
_EXCEPTION = re.compile(_PREFIX + rb"Detected an exception of type (?P<name>\w+)(?: \((?P<number>\d{1,9})\))?")
_PC = re.compile(_PREFIX + rb"- PC:? (?P<pc>0x[0-9a-fA-F]{1,16})")
_WARP_GONE = re.compile(_PREFIX + rb"- Warp: exception was detected after the warp has exited")
_FRAME = re.compile(_PREFIX + rb"#\d+\t(?P<pc>0x[0-9a-fA-F]{1,16})\t(?P<kernel>[^\s]+)")
_FAILED = re.compile(_PREFIX + rb"[^\r\n]*(?i:fail|cannot|could not|unable|unsupported|unknown flag)[^\r\n]*")


@dataclass(frozen=True)
class CoreProgress:
    """How far a GPU core dump came. All but `started` is known only where the progress lines were switched on.

    `exception` is the first one's name, as in CoreException. `warp_gone`: the kernel had ended before the exception was
    seen.
    """

    started: bool
    done: bool = False
    percent: int | None = None
    path: str | None = None
    exception: str | None = None
    kind: FaultKind | None = None
    kernel: str | None = None
    pc: int | None = None
    warp_gone: bool = False
    problems: tuple[str, ...] = ()


def core_progress(data: bytes) -> CoreProgress | None:
    """The progress of a dump out of a stream; None where none was begun."""
    if not _STARTED.search(data):
        return None
    percents = _PERCENT.findall(data)
    pc = _PC.search(data)
    exception = _EXCEPTION.search(data)
    found = None
    if exception:
        name = exception["name"].decode("utf-8", "replace")
        found = exception_named(name) or exception_kind(int(exception["number"] or 0), name)
    return CoreProgress(
        started=True,
        done=_DONE.search(data) is not None,
        percent=int(percents[-1]) if percents else None,
        path=_group(_WRITING.search(data), "path"),
        exception=found.name if found else None,
        kind=found.kind if found else None,
        kernel=base_name(_group(_FRAME.search(data), "kernel")),
        pc=int(pc["pc"], 16) if pc else None,
        warp_gone=_WARP_GONE.search(data) is not None,
        problems=tuple(m[0].decode("utf-8", "replace")[:300] for m in list(_FAILED.finditer(data))[:10]),
    )


def _group(match: re.Match[bytes] | None, name: str) -> str | None:
    return match[name].decode("utf-8", "replace").strip() if match else None
