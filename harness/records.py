"""The records that cross the border between the two halves: what to run (ProbeRequest) and what was seen (ProbeFacts).

Plain frozen dataclasses, JSON-able with `to_json` and back with `facts_from_json`. Nothing here says what a fact means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """Bounds of one probe. Times in seconds, sizes in bytes."""

    timeout_s: float = 30.0
    grace_s: float = 2.0  # between SIGTERM and SIGKILL
    stream_bytes: int = 16 << 20  # kept of each stream: half head, half tail
    memory_bytes: int | None = None  # host address-space limit of the child, None = none


@dataclass(frozen=True)
class ProbeRequest:
    """One run of one shape (or of a sequence of shapes) in a process of its own, under one observer.

    `target` is the fully evaluated target: {"kind": "command", "argv": [...]}, {"kind": "python", ...} or
    {"kind": "kernel", ...}; no expression is left in it. `folder` is the probe's own folder (exists, empty).
    """

    target: Json
    folder: str
    observer: str = "blocking"
    device: str = "none"  # "none", "emulator", "cuda:UUID"
    memory_model: str = "exact"  # of the emulated device: "exact" or "hardware"
    leak_check: bool = False  # memcheck and the emulated device also record memory that was never freed
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    interpreter: str | None = None  # the user's Python for python/kernel targets; None = this one
    limits: Limits = Limits()


@dataclass(frozen=True)
class Breadcrumb:
    """A step the child announced just *before* taking it. `at_s` is seconds after the child's start."""

    step: str  # import, context, compile, allocate, launch, synchronise, check, finished
    at_s: float
    detail: Json = field(default_factory=dict)


@dataclass(frozen=True)
class StreamFacts:
    """One captured stream. `path` holds at most the cap (head and tail, with a line saying how much was dropped
    between); `times_path` has one line per read that began a line: seconds after start, byte offset in `path` of what
    was read. Read both with `harness.streams.merged_timeline` or `stream_lines`."""

    path: str
    times_path: str
    total_bytes: int
    dropped_bytes: int = 0
    error: str | None = None  # the disk took not all of it (full, over quota)


@dataclass(frozen=True)
class XidFacts:
    """Kernel-log lines of NVIDIA's driver during the probe; `readable` False means nobody could look."""

    readable: bool
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProbeFacts:
    """What one probe showed. Exactly one of exit_code and signal is set, unless it could not be started (`start_error`)
    or outlived SIGKILL (its pid is then in `survivors`)."""

    exit_code: int | None = None
    signal: int | None = None
    start_error: str | None = None
    timed_out: bool = False
    killed_by_us: str | None = None  # why we killed it, None if we did not
    survivors: tuple[int, ...] = ()  # pids that outlived SIGKILL
    stragglers: tuple[Json, ...] = ()  # processes left by the program that we had to end: {"pid", "name", "escaped"}
    wall_s: float = 0.0
    peak_host_bytes: int | None = None
    peak_device_bytes: int | None = None
    breadcrumbs: tuple[Breadcrumb, ...] = ()
    stdout: StreamFacts | None = None
    stderr: StreamFacts | None = None
    driver_log: str | None = None  # path of what CUDA_LOG_FILE received; None = not asked for
    sanitizer_xml: str | None = None
    sanitizer_log: str | None = None
    inner_exit: Json | None = None  # the program's own end, told by its own parent inside a tool
    core: str | None = None  # path of a GPU core file
    result: Json = field(default_factory=dict)  # what the worker reported: error, comparison, us_per_call, buffers, ...
    device_records: tuple[Json, ...] = ()  # memory-checker records of the emulated device
    device_facts: Json = field(default_factory=dict)  # name, uuid, driver, memory model, free memory before
    xid: XidFacts = XidFacts(readable=False)
    folder: str = ""
    launch: Json = field(default_factory=dict)  # {"argv", "env" (what was set), "unset", "cwd", "pid", "notes"}

    @property
    def last_step(self) -> str | None:
        """The last step the child announced, None if it said nothing."""
        return self.breadcrumbs[-1].step if self.breadcrumbs else None


def to_json(record: Any) -> dict[str, Any]:
    """A record as plain JSON values."""
    return dataclasses.asdict(record)


def _known(kind: type[Any], data: Json) -> dict[str, Any]:
    names = {f.name for f in dataclasses.fields(kind)}
    return {key: value for key, value in data.items() if key in names}


def facts_from_json(data: Json) -> ProbeFacts:
    """ProbeFacts from its JSON form. Unknown keys are ignored: an older reader must read a newer ledger's facts."""
    values = _known(ProbeFacts, data)
    for name in ("stdout", "stderr"):
        if values.get(name) is not None:
            values[name] = StreamFacts(**_known(StreamFacts, values[name]))
    values["breadcrumbs"] = tuple(Breadcrumb(**_known(Breadcrumb, b)) for b in values.get("breadcrumbs", ()))
    values["survivors"] = tuple(values.get("survivors", ()))
    values["device_records"] = tuple(values.get("device_records", ()))
    values["stragglers"] = tuple(values.get("stragglers", ()))
    xid = values.get("xid") or {"readable": False}
    values["xid"] = XidFacts(readable=xid["readable"], lines=tuple(xid.get("lines", ())))
    return ProbeFacts(**values)
