"""The lines a GPU core dump in the making prints on stderr. Pure and total."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudadiag.evidence.names import base_name

_STARTED = re.compile(rb"Starting GPU coredump generation")
_PREFIX = rb"coredump: "
_WRITING = re.compile(_PREFIX + rb"Writing ELF file to (?P<path>[^\r\n]+)")
_PERCENT = re.compile(_PREFIX + rb"(\d{1,3})%\.\.\.")
_DONE = re.compile(_PREFIX + rb"All done")
_EXCEPTION = re.compile(
    rb"(?P<name>CUDA_EXCEPTION_\d+[^\r\n]*|CUDBG_EXCEPTION_\w+|Warp [A-Z][^\r\n()]{3,60}|Exception: [^\r\n]{1,100})"
)
_EXCEPTION_LINE = re.compile(_PREFIX + rb"[^\r\n]*(?i:exception)[^\r\n]*")
_KERNEL = re.compile(_PREFIX + rb"[^\r\n]*(?i:kernel|function|symbol)[ :=]+(?P<kernel>[\w$:<>~][^\r\n(]{0,300})")
_PC = re.compile(_PREFIX + rb"[^\r\n]*\b(?i:error ?)?(?i:pc)[ :=]+(?P<pc>0x[0-9a-fA-F]+)")
_FAILED = re.compile(_PREFIX + rb"[^\r\n]*(?i:error|fail|cannot|could not|unable|unsupported|unknown flag)[^\r\n]*")


@dataclass(frozen=True)
class CoreProgress:
    """How far a GPU core dump came. `done` only where the progress lines were on (CUDA_COREDUMP_SHOW_PROGRESS) and
    ended."""

    started: bool
    done: bool = False
    percent: int | None = None
    path: str | None = None
    exception: str | None = None  # by name
    kernel: str | None = None
    pc: int | None = None
    problems: tuple[str, ...] = ()


def core_progress(data: bytes) -> CoreProgress | None:
    """The progress of a dump out of a stream; None where none was begun."""
    if not _STARTED.search(data):
        return None
    percents = _PERCENT.findall(data)
    pc = _PC.search(data)
    line = _EXCEPTION_LINE.search(data)
    exception = _EXCEPTION.search(line[0]) if line else None
    return CoreProgress(
        started=True,
        done=_DONE.search(data) is not None,
        percent=int(percents[-1]) if percents else None,
        path=_group(_WRITING.search(data), "path"),
        exception=_group(exception, "name"),
        kernel=base_name(_group(_KERNEL.search(data), "kernel")),
        pc=int(pc["pc"], 16) if pc else None,
        problems=tuple(m[0].decode("utf-8", "replace")[:300] for m in list(_FAILED.finditer(data))[:10]),
    )


def _group(match: re.Match[bytes] | None, name: str) -> str | None:
    return match[name].decode("utf-8", "replace").strip() if match else None
