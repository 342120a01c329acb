"""A child that has collected: which of its tests is which, and what it was promised to run next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from harness.isolation.child.wire import Message
from harness.isolation.incident import How, Incident, poisoned
from harness.isolation.items import Key, keys
from harness.isolation.process import Child, Died, Hung
from harness.records import ProbeFacts

Listen = Callable[[Message], None]


class BadCollector(Exception):
    """Importing `nodeid` ended or poisoned the child; empty: it came to no collector."""

    def __init__(self, nodeid: str, incident: Incident) -> None:
        super().__init__(nodeid)
        self.nodeid = nodeid
        self.incident = incident


@dataclass
class Worker:
    """`promised`: the test that was named as the following one, so that fixtures still wait for it. `ahead`: the test
    that the child begins by itself, or has begun."""

    child: Child
    told: list[Message]
    index: dict[Key, int]
    promised: Key | None = None
    ahead: Key | None = None


def collect(child: Child, limit_s: float | None, listen: Listen) -> Worker:
    """Wait for the child's collection. `listen` gets collect reports, counts of deselected tests and warnings.

    Raises BadCollector, and what the child's pytest itself raised: UsageError, Interrupted, Failed, Exit.
    """
    collector: str | None = None
    while True:
        try:
            message = child.receive(limit_s)
        except Died as end:
            facts = ProbeFacts(exit_code=end.exit_code, signal=end.signal, inner_exit=child.inner_exit)
            raise BadCollector(collector or "", Incident(How.DIED, facts, child.texts())) from None
        except Hung:
            stacks = {"stacks": child.stacks()}
            facts = ProbeFacts(signal=9, timed_out=True, wall_s=limit_s or 0.0, result=stacks)
            raise BadCollector(collector or "", Incident(How.HUNG, facts, child.texts())) from None
        kind = message["is"]
        if kind == "collecting":
            collector = message["nodeid"]
        elif kind == "poisoned-collecting":
            raise BadCollector(message["nodeid"], poisoned({}, message["fact"], 0.0))
        elif kind == "collected":
            told = message["items"]
            return Worker(child, told, {key: at for at, key in enumerate(keys(told))})
        elif kind in ("collectreport", "deselected", "warning"):
            listen(message)
        else:
            raise_for(message)


def raise_for(message: Message) -> None:
    """Raise here what ended the session in the child."""
    kind = message["is"]
    if kind == "usage":
        raise pytest.UsageError(*message["texts"])
    if kind == "stopped":
        raise (pytest.Session.Failed if message["failed"] else pytest.Session.Interrupted)(message["text"])
    if kind == "exit":
        pytest.exit(message["text"], returncode=message["code"])
    if kind == "interrupted":
        raise KeyboardInterrupt
    if kind == "internal":
        raise RuntimeError(f"pytest failed in the child:\n{message['text']}")
