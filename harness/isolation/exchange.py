"""One test in a child: the order, the messages until it is done, and the incident where it did not get done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.isolation import reports
from harness.isolation.child.wire import Message
from harness.isolation.incident import How, Incident
from harness.isolation.items import RemoteItem
from harness.isolation.process import Child, Died, Hung
from harness.isolation.worker import Worker, raise_for
from harness.records import ProbeFacts

Deliver = Callable[[Any], None]


@dataclass
class Exchange:
    """`incident` is None for a test that came to its end; `poisoned` says that its process is of no more use."""

    when: str = "setup"
    poisoned: bool = False
    incident: Incident | None = None
    sections: list[tuple[str, str]] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)
    wall_s: float = 0.0


def run_test(
    worker: Worker, item: RemoteItem, following: RemoteItem | None, *, failed: int, limit_s: float | None,
    deliver: Deliver, listen: Callable[[Message], None],
) -> Exchange:  # fmt: skip
    """Run `item`; `deliver` gets each report as the child's data. Never raises for what the test does to its process.

    `failed` is the session's count so far, for --maxfail; `limit_s` bounds the whole test.
    """
    child = worker.child
    following_index = worker.index.get(following.key) if following is not None else None
    worker.promised = following.key if following is not None and following_index is not None else None
    child.mark()
    child.send("run", index=worker.index[item.key], following=following_index, failed=failed)
    exchange, begun_s = Exchange(), time.monotonic()
    try:
        _listen(child, exchange, begun_s, limit_s, deliver, listen)
    except (Died, Hung) as end:
        exchange.wall_s = time.monotonic() - begun_s
        exchange.incident = _incident(child, exchange, end)
    return exchange


def _listen(
    child: Child, exchange: Exchange, begun_s: float, limit_s: float | None, deliver: Deliver,
    listen: Callable[[Message], None],
) -> None:  # fmt: skip
    while True:
        left_s = max(0.001, begun_s + limit_s - time.monotonic()) if limit_s else None
        message = child.receive(left_s)
        kind = message["is"]
        if kind == "phase":
            exchange.when = message["when"]
        elif kind == "report":
            data = message["data"]
            exchange.sections = [tuple(section) for section in data.get("sections") or ()]
            exchange.reported.add(data.get("when"))
            deliver(data)
        elif kind == "warning":
            listen(message)
        elif kind == "done":
            exchange.poisoned = message["poisoned"]
            return
        else:
            raise_for(message)


def _incident(child: Child, exchange: Exchange, end: Died | Hung) -> Incident:
    """What a test left that ended its process; a child that hangs is asked where, before it is killed."""
    launch = {"pid": child.pid}
    if isinstance(end, Died):
        facts = ProbeFacts(exit_code=end.exit_code, signal=end.signal, wall_s=exchange.wall_s, launch=launch)
        return Incident(How.DIED, facts, child.texts())
    stacks = child.stacks()
    texts = child.texts()
    facts = ProbeFacts(
        signal=9, timed_out=True, killed_by_us="its time was over", wall_s=exchange.wall_s, launch=launch,
        result={"stacks": stacks} if stacks else {},
    )  # fmt: skip
    return Incident(How.HUNG, facts, texts)


def poisoned(data: Message, fact: Message, wall_s: float) -> Incident:
    """The incident of a phase after which the health check failed: its report's texts are the evidence."""
    texts = {"stdout": b"", "stderr": _crash_text(data).encode()}
    for name, content in data.get("sections") or ():
        stream = "stdout" if "stdout" in name else "stderr"
        texts[stream] += content.encode() + b"\n"
    if fact.get("number") is None:
        return Incident(How.POISONED, ProbeFacts(wall_s=wall_s), texts, health=f"{fact['source']}: {fact['text']}")
    error = {"cuda_name": fact["name"], "number": fact["number"], "text": fact["text"], "call": fact["call"]}
    return Incident(How.POISONED, ProbeFacts(exit_code=1, wall_s=wall_s, result={"error": error}), texts)


def _crash_text(data: Message) -> str:
    """The exception's own words, out of a report's JSON."""
    longrepr = data.get("longrepr")
    if isinstance(longrepr, dict):
        crash = longrepr.get("reprcrash") or {}
        return str(crash.get("message") or "") + "\n"
    return f"{longrepr}\n" if isinstance(longrepr, str) else ""


def stand_in(item: RemoteItem, when: str) -> pytest.TestReport:
    """The teardown that a dead process cannot report, so that every test's reports end as pytest's do."""
    return reports.made(item, when, "passed")
