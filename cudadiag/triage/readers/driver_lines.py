"""The driver's own log (CUDA_LOG_FILE) where it is mixed into a log or given as a file: evidence's reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadiag.evidence.codes import kind_of
from cudadiag.evidence.driver_log import driver_log
from cudadiag.model import FaultKind, Noticed
from cudadiag.triage.sign import Role, Sign

_MARK = re.compile(r"^\[\d\d:\d\d:\d\d\.\d+\]\[\d+\]\[CUDA\]\[[A-Z]\]|\bReturning \d+ \(CUDA_\w+\) from cu\w+")
BENIGN = frozenset({0, 600, 704})


class DriverLines:
    """The reader."""

    name = "driver-log"

    def takes(self, text: str) -> bool:
        return _MARK.search(text) is not None

    def read(self, lines: Sequence[tuple[int, str]], process: str | None) -> Iterator[Sign]:
        entries = driver_log("\n".join(text for _, text in lines).encode("utf-8", "replace"))
        said: str | None = None
        for entry in entries:
            line = lines[min(entry.log_line, len(lines)) - 1][0]
            if entry.number is None or entry.number in BENIGN:
                said = None if entry.text.startswith("Sticky error") else entry.text
                continue
            launch = entry.number == 1 and (entry.is_launch or entry.call == "cuFuncSetAttribute")
            yield Sign(
                Role.CUDA,
                line,
                (said or entry.text)[:400],
                kind=FaultKind.LAUNCH_LIMIT if launch else kind_of(entry.number),
                name=entry.name,
                number=entry.number,
                noticed=Noticed(entry.call, None, None, line, said or entry.text),
                words=said or "returned by the driver, as its own log says",
            )
