"""What a compute-sanitizer report holds, in one form for XML and text: records, counts, and whether the tool did its
work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from cudadiag.model import Allocation, FaultKind

Triple = tuple[int, int, int]


class Health(StrEnum):
    """Whether the tool checked what it was to check. Everything but `ok` means "not checked", never "clean"."""

    OK = "ok"
    NO_REPORT = "no-report"  # neither XML nor text
    NO_SUMMARY = "no-summary"  # the text ends before its summary line
    KILLED = "killed"  # ended from outside before it could write
    TRUNCATED = "truncated"  # the XML is cut off
    NEVER_REACHED_CUDA = "never-reached-cuda"
    NO_CONNECTION = "no-connection"  # the tool could not attach to the program
    INTERNAL_ERROR = "internal-error"  # it says itself that errors may go undetected
    FILTERED_OUT = "filtered-out"  # no kernel was checked
    CACHING_ALLOCATOR = "caching-allocator"  # one big allocation hides overruns inside it
    DEVICE_NOT_SUPPORTED = "device-not-supported"


@dataclass(frozen=True)
class Frame:
    """One frame of a host or device stack. `pc` is an offset in the module or function."""

    function: str | None = None
    file: str | None = None
    line: int | None = None
    pc: int | None = None
    module: str | None = None


@dataclass(frozen=True)
class SanitizerRecord:
    """One finding, per-thread repeats folded into `count`. Field names are those of model.Caused where they mean the
    same.

    `tool_kind` is the tool's own word (Precise, Imprecise, Api, Leak, Analysis, ...), `kind` the fault kind it stands
    for. `threads` counts the folded threads; `thread` and `block` are the first one's. `other` is the second access of
    a race.
    """

    kind: FaultKind
    tool_kind: str
    message: str
    level: str | None = None  # Error, Warning or Info where the tool says it
    kernel: str | None = None
    function: str | None = None  # innermost on the device; where it is not the kernel itself, it was called by it
    file: str | None = None
    line: int | None = None
    pc: int | None = None  # offset in `function`
    block: Triple | None = None
    thread: Triple | None = None
    access: str | None = None
    space: str | None = None
    size: int | None = None
    address: int | None = None
    allocation: Allocation | None = None
    frames: tuple[Frame, ...] = ()  # on the device, innermost first
    host_frames: tuple[Frame, ...] = ()  # innermost first
    other: Frame | None = None
    other_access: str | None = None
    api: str | None = None
    name: str | None = None  # CUDA's name of an API error
    number: int | None = None
    count: int = 1
    log_line: int | None = None
    detail: Mapping[str, str] = field(default_factory=dict)  # tags of the XML that were not understood

    @property
    def is_api(self) -> bool:
        return self.tool_kind == "Api"

    @property
    def is_leak(self) -> bool:
        return self.kind is FaultKind.LEAK

    @property
    def is_advice(self) -> bool:
        """Warnings, notes and unused memory: kept, but no finding."""
        return self.level in ("Warning", "Info", "warning", "info") or self.tool_kind in NOTES


NOTES = frozenset({"UnusedMemory", "LaunchInfo", "SyncLog"})


@dataclass(frozen=True)
class SanitizerReport:
    """All a run of the tool left. `errors` is the sum its summary states (None: no summary line was read)."""

    tool: str | None = None
    records: tuple[SanitizerRecord, ...] = ()
    health: Health = Health.NO_REPORT
    health_detail: tuple[str, ...] = ()
    errors: int | None = None
    not_printed: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)  # kinds this reader does not know -> how many
    disagreements: tuple[str, ...] = ()  # between XML and text
    program_failed: bool = False  # the tool says the program returned an error or did not end well

    def findings(self, *, leaks: bool) -> tuple[SanitizerRecord, ...]:
        """The records that are faults: no API error (the program's own affair), leaks only when asked for, no
        warnings."""
        return tuple(r for r in self.records if not r.is_api and not r.is_advice and (leaks or not r.is_leak))
