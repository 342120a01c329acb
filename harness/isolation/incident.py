"""What happened to a child, as facts; and what somebody else decides to call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.isolation.child.wire import Message
from harness.records import ProbeFacts


class How(StrEnum):
    """How a test ended its process's usefulness, or how a check of it ended."""

    POISONED = "poisoned"
    DIED = "died"
    HUNG = "hung"
    CHECKED = "checked"  # it ran under a sanitizer, which may have found something or nothing


@dataclass(frozen=True)
class Incident:
    """`files` holds what the test printed, by the keys of the evidence readers (stdout, stderr, driver_log, ...)."""

    how: How
    facts: ProbeFacts
    files: Mapping[str, bytes] = field(default_factory=dict)
    observer: str = "plain"
    health: str | None = None  # what the health check said, where it was no CUDA code


@dataclass(frozen=True)
class Named:
    """The fault's kind and signature, and its story in lines. `failed` False: nothing wrong was found.

    `undecided`: nothing can be said (a sanitizer that checked nothing): an error, never a pass.
    """

    failed: bool
    kind: str
    signature: str | None
    lines: tuple[str, ...]
    undecided: bool = False


Name = Callable[[Incident], Named]


def poisoned(data: Message, fact: Message, wall_s: float) -> Incident:
    """The incident of a phase after which the health check failed: its report's texts are the evidence."""
    texts = {"stdout": b"", "stderr": _crash_text(data).encode()}
    for name, content in data.get("sections") or ():
        stream = "stdout" if "stdout" in name else "stderr"
        texts[stream] += content.encode() + b"\n"
    if fact.get("number") is None:
        return Incident(How.POISONED, ProbeFacts(wall_s=wall_s), texts, health=f"{fact['source']}: {fact['text']}")
    error = {"cuda_name": fact["name"], "number": fact["number"], "text": fact["text"], **_noticed(data, fact)}
    return Incident(How.POISONED, ProbeFacts(exit_code=1, wall_s=wall_s, result={"error": error}), texts)


def _noticed(data: Message, fact: Message) -> dict[str, Any]:
    """The test's own exception noticed the fault where it speaks of it; else our synchronise did."""
    longrepr = data.get("longrepr")
    crash = longrepr.get("reprcrash") if isinstance(longrepr, dict) else None
    if crash and fact["text"] and fact["text"] in str(crash.get("message")):
        return {"file": crash.get("path"), "line": crash.get("lineno")}
    return {"call": fact["call"]}


def _crash_text(data: Message) -> str:
    """The exception's own words, out of a report's JSON."""
    longrepr = data.get("longrepr")
    if isinstance(longrepr, dict):
        crash = longrepr.get("reprcrash") or {}
        return str(crash.get("message") or "") + "\n"
    return f"{longrepr}\n" if isinstance(longrepr, str) else ""
