"""Where a fault was caused, out of what a checker or a core file recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadiag.evidence.core.reading import CoreException
from cudadiag.evidence.error_lines import ErrorLine
from cudadiag.evidence.sanitizer.records import SanitizerRecord
from cudadiag.model import Allocation, Caused


def caused_by_record(record: SanitizerRecord) -> Caused:
    """Of a record of compute-sanitizer, as it stands there."""
    return Caused(
        kernel=record.kernel,
        file=record.file,
        line=record.line,
        pc=record.pc,
        block=record.block,
        thread=record.thread,
        access=record.access,
        space=record.space,
        size=record.size,
        address=record.address,
        allocation=record.allocation,
        log_line=record.log_line,
    )


def caused_by_checker(record: Mapping[str, Any]) -> Caused:
    """A memory-checker record of the emulated device; its field names are Caused's."""
    allocation = record.get("allocation")
    return Caused(
        **{key: record.get(key) for key in ("kernel", "file", "line", "pc", "access", "space", "size", "address")},
        block=_triple(record.get("block")),
        thread=_triple(record.get("thread")),
        instruction=record.get("instruction"),
        allocation=_allocation(allocation) if isinstance(allocation, Mapping) else None,
    )


def caused_by_assert(line: ErrorLine) -> Caused:
    return Caused(line.kernel, line.file, line.line, block=line.block, thread=line.thread, log_line=line.log_line)


def caused_by_core(found: CoreException) -> Caused:
    return Caused(
        kernel=found.kernel,
        file=found.file,
        line=found.line,
        pc=found.offset if found.offset is not None else found.pc,
        block=found.block,
        thread=found.thread,
        instruction=found.instruction,
    )


def _allocation(data: Mapping[str, Any]) -> Allocation:
    return Allocation(
        address=int(data.get("address", 0)),
        size=int(data.get("size", 0)),
        distance=int(data.get("distance", 0)),
        side=str(data.get("side", "inside")),
        name=data.get("name"),
        state=str(data.get("state", "live")),
    )


def _triple(value: Any) -> tuple[int, int, int] | None:
    if not isinstance(value, list | tuple) or len(value) != 3:
        return None
    x, y, z = (int(part) for part in value)
    return x, y, z
