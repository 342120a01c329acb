"""From the tool's words to fault kinds: one table for the kinds of its XML, one for the heads of its text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudadiag.model import FaultKind

KNOWN_KINDS = {
    "Precise": FaultKind.OUT_OF_BOUNDS,
    "Imprecise": FaultKind.OTHER_CUDA,
    "Api": FaultKind.OTHER_CUDA,
    "Leak": FaultKind.LEAK,
    "OptiX Leak": FaultKind.LEAK,
    "array": FaultKind.LEAK,
    "deviceheap": FaultKind.OTHER_CUDA,
    "Syscall": FaultKind.OTHER_CUDA,
    "Hazard": FaultKind.RACE,
    "Analysis": FaultKind.RACE,
    "Global hazard": FaultKind.RACE,
    "ClusterEntryExit": FaultKind.RACE,
    "Stream-ordered race": FaultKind.USE_AFTER_FREE,
    "Initcheck": FaultKind.UNINITIALISED_READ,
    "InitcheckApiError": FaultKind.UNINITIALISED_READ,
    "UnusedMemory": FaultKind.UNINITIALISED_READ,
    "Synccheck": FaultKind.BARRIER,
    "SyncLog": FaultKind.BARRIER,
    "StackOverflow": FaultKind.HARDWARE_STACK,
    "LaunchInfo": FaultKind.OTHER_CUDA,
    "FabricGuardrail": FaultKind.OTHER_CUDA,
    "Tcgen05Guardrail": FaultKind.OTHER_CUDA,
}
"""The kinds of records of versions 2023 to 2026 of the tool. Others are kept as they are, and counted."""

_BY_WORDS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"\bassert", FaultKind.DEVICE_ASSERT),
        (r"breakpoint|\btrap\b", FaultKind.LAUNCH_FAILURE),
        (r"misaligned", FaultKind.MISALIGNED_ADDRESS),
        (r"illegal instruction", FaultKind.ILLEGAL_INSTRUCTION),
        (r"stack overflow|out of stack|hardware stack", FaultKind.HARDWARE_STACK),
        (r"invalid (?:program counter|pc)\b|pc overflow", FaultKind.INVALID_PC),
        (r"address space", FaultKind.INVALID_ADDRESS_SPACE),
        (
            r"double free|after (?:it|memory) (?:is|was) free|use.after.free|before (?:it|memory) is allocated"
            r"|use.before.alloc",
            FaultKind.USE_AFTER_FREE,
        ),
        (r"out of bounds|out.of.range", FaultKind.OUT_OF_BOUNDS),
        (r"illegal address|permission denied", FaultKind.ILLEGAL_ADDRESS),
        (r"uninitiali[sz]ed", FaultKind.UNINITIALISED_READ),
        (r"\brace\b|hazard", FaultKind.RACE),
        (r"barrier|deadlock|divergent", FaultKind.BARRIER),
        (r"\bleaked\b", FaultKind.LEAK),
    )
)
_OWN_WORDS = frozenset({"Precise", "Imprecise", "Syscall", "deviceheap", "Stream-ordered race"})


def fault_kind(tool_kind: str, words: str) -> FaultKind:
    """The fault kind of a record: by its words where the tool's kind covers several, else by the tool's kind."""
    if tool_kind in KNOWN_KINDS and tool_kind not in _OWN_WORDS:
        return KNOWN_KINDS[tool_kind]
    by_words = next((kind for pattern, kind in _BY_WORDS if pattern.search(words)), None)
    return by_words or KNOWN_KINDS.get(tool_kind, FaultKind.OTHER_CUDA)


@dataclass(frozen=True)
class Head:
    """One form of a record's first line in the text report."""

    tool_kind: str
    pattern: re.Pattern[str]


HEADS = tuple(
    Head(kind, re.compile(pattern))
    for kind, pattern in (
        (
            "Precise",
            r"Invalid (?:__(?P<space>\w+?)__ )?(?P<access>read|write|atomic\w*) of size (?P<size>[\d,]+) bytes?",
        ),
        ("ClusterEntryExit", r"Potential invalid __(?P<space>\w+?)__ (?P<access>\w+) of size (?P<size>[\d,]+) bytes?"),
        ("Precise", r"Invalid (?P<access>read|write|atomic) operation \(permission denied\)"),
        ("Precise", r"Invalid (?:system-(?:scoped )?atomic|setSmemSize) operation|Invalid use-before-alloc access"),
        ("Precise", r"Invalid parameter passed to TMA"),
        ("Initcheck", r"Uninitialized __(?P<space>\w+?)__ memory (?P<access>\w+) of size (?P<size>[\d,]+) bytes?"),
        (
            "InitcheckApiError",
            r"Host API uninitialized memory access|Uninitialized access to 0x(?P<address>[0-9a-fA-F]+)",
        ),
        ("UnusedMemory", r"Unused (?:__(?P<space>\w+?)__ )?memory in allocation"),
        ("Synccheck", r"Barrier error detected\.?\s*(?P<detail>.*)"),
        ("Analysis", r"(?P<level>\w+): Race reported between (?P<access>\w+(?: \w+)?) access at (?P<where>.*)"),
        (
            "Hazard",
            r"(?:(?P<level>\w+): )?(?:\([^)]*\) )?Potential \w+ hazard detected at "
            r"__(?P<space>\w+?)__ 0x(?P<address>[0-9a-fA-F]+)",
        ),
        ("Synccheck", r"Deadlock detected in (?P<detail>.*)"),
        ("SyncLog", r"(?:Barrier|Syncwarp|\S+) called by threads? starting at"),
        ("Leak", r"Leaked (?P<size>[\d,]+) bytes at 0x(?P<address>[0-9a-fA-F]+)"),
        ("OptiX Leak", r"Leaked an? \S+ with"),
        (
            "Api",
            r"Program hit (?:(?P<name>cuda\w+|CUDA_\w+)|(?P<words>.*?)) \(error (?P<number>\d{1,9})\)"
            r"(?: due to (?P<message>.*?))? on CUDA API call to (?P<api>\w+)",
        ),
        ("Api", r"Program hit error (?P<number>\d{1,9})(?: due to (?P<message>.*?))? on CUDA API call to (?P<api>\w+)"),
        ("Syscall", r"\S+ [Ee]rror encountered\s?: .*"),
        ("StackOverflow", r"Stack overflow"),
        ("Tcgen05Guardrail", r"Tensor Memory column|tcgen05\.|Illegal for a CTA to perform tcgen05"),
        (
            "Stream-ordered race",
            r"Address 0x(?P<address>[0-9a-fA-F]+) is potentially |(?:\w+: )?[Ss]tream-ordered race",
        ),
        (
            "Imprecise",
            r"(?:Warp|Lane|Device|Cluster|Block) (?=[a-z]).*\b(?:address|assert|overflow|error|fault|exception|pc"
            r"|counter|instruction|canary|trap|space|register|present)\b.*|Illegal instruction|Misaligned .* address"
            r"|Trace/breakpoint trap|Illegal address|Out-of-range .*|Access with a partial warp|Unknown Error",
        ),
    )
)


def head_of(text: str) -> tuple[str, re.Match[str]] | None:
    """The tool's kind of a record whose text begins with this line, and the match; None for lines that begin none."""
    for head in HEADS:
        match = head.pattern.match(text)
        if match:
            return head.tool_kind, match
    return None
