"""What the worker reports while it runs: JSON lines over the result descriptor, or in a file where a tool closed it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.records import Breadcrumb, Json

_CAP_BYTES = 64 << 20


@dataclass
class Reports:
    """Everything the worker said. `broken_lines` counts lines that are no JSON object (cut short by a crash)."""

    breadcrumbs: list[Breadcrumb] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    records: list[Json] = field(default_factory=list)
    broken_lines: int = 0


class Channel:
    """Collects the worker's lines. `feed` is the sink of the descriptor's pipe; `file` is the worker's other way."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._data = bytearray()

    def feed(self, data: bytes, _at_s: float) -> None:
        if len(self._data) < _CAP_BYTES:
            self._data += data

    def reports(self) -> Reports:
        found = Reports()
        for line in self._lines():
            try:
                message = json.loads(line)
                _take(message, found)
            except (ValueError, KeyError, TypeError, AttributeError):
                found.broken_lines += 1
        return found

    def _lines(self) -> Iterator[bytes]:
        yield from bytes(self._data).splitlines()
        if os.path.exists(self.file):
            yield from self.file.read_bytes()[:_CAP_BYTES].splitlines()


def _take(message: dict[str, Any], found: Reports) -> None:
    if "step" in message:
        detail = dict(message.get("detail", {}))
        found.breadcrumbs.append(Breadcrumb(str(message["step"]), float(message["at_s"]), detail))
    found.result.update(message.get("result", {}))
    found.device.update(message.get("device", {}))
    found.records.extend(message.get("records", ()))
