"""The progress lines of a GPU core dump in the making: evidence's reader over the lines that carry their mark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadiag.evidence.progress import core_progress
from cudadiag.model import Caused, FaultKind
from cudadiag.triage.sign import Role, Sign

_MARK = re.compile(r"^\s*coredump:\s|Starting GPU coredump generation")


class CoreDumpLines:
    """The reader."""

    name = "core-dump"

    def takes(self, text: str) -> bool:
        return _MARK.search(text) is not None

    def read(self, lines: Sequence[tuple[int, str]], process: str | None) -> Iterator[Sign]:
        data = "\n".join(text.lstrip() for _, text in lines).encode("utf-8", "replace")
        found = core_progress(b"Starting GPU coredump generation\n" + data)
        if found is None:
            return
        first = lines[0][0]
        if found.exception is None:
            yield Sign(
                Role.KERNEL_LOG, first, lines[0][1].strip()[:200], kind=FaultKind.OTHER_CUDA, cause="core-dump",
                words="a GPU core dump was begun: the driver saw an exception on the device", weak=True,
            )  # fmt: skip
            return
        at = next((number for number, text in lines if "Detected an exception" in text), first)
        yield Sign(
            Role.DEVICE,
            at,
            found.exception,
            kind=found.kind or FaultKind.OTHER_CUDA,
            caused=Caused(kernel=found.kernel, pc=found.pc, log_line=at) if found.kernel else None,
            words=f"the GPU core dump says: {found.exception}",
        )
