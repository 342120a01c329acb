"""A child that has collected: which of its tests is which, and what it was promised to run next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from harness.isolation.child.wire import Message
from harness.isolation.incident import How
from harness.isolation.items import Key, keys
from harness.isolation.process import Child, Died, Hung

Listen = Callable[[Message], None]


@dataclass(frozen=True)
class BadCollector(Exception):
    """Importing `nodeid` ended or poisoned the child."""

    nodeid: str
    how: How
    fact: Message
    end: Died | None = None


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
            raise BadCollector(collector or "", How.DIED, {}, end) from None
        except Hung:
            raise BadCollector(collector or "", How.HUNG, {}) from None
        kind = message["is"]
        if kind == "collecting":
            collector = message["nodeid"]
        elif kind == "poisoned-collecting":
            raise BadCollector(message["nodeid"], How.POISONED, message["fact"])
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
