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
    wall_s: float = 0.0


@dataclass(frozen=True)
class Orders:
    """The test to run, the one whose fixtures may stay, and the one after that where the child may go on by itself.

    Going on saves a round trip for each test: the child begins `following` as soon as `item` is cleanly done. Only
    where nothing else may run in between. `failed` is the session's count so far, for --maxfail.
    """

    item: RemoteItem
    following: RemoteItem | None
    goes_on: bool
    after_following: RemoteItem | None
    failed: int


def run_test(
    worker: Worker, orders: Orders, *, limit_s: float | None, deliver: Deliver, listen: Callable[[Message], None]
) -> Exchange:
    """Run a test; `deliver` gets each report as the child's data. Never raises for what the test does to its process.

    `limit_s` bounds the whole test.
    """
    _send(worker, orders)
    exchange, begun_s = Exchange(), time.monotonic()
    try:
        _listen(worker, exchange, begun_s, limit_s, deliver, listen)
    except (Died, Hung) as end:
        exchange.wall_s = time.monotonic() - begun_s
        exchange.incident = _incident(worker.child, exchange, end)
    return exchange


def _send(worker: Worker, orders: Orders) -> None:
    """The order for this test, unless the child has it already, and where it may go on the next one, on condition."""
    following = _known(worker, orders.following)
    if worker.ahead != orders.item.key:
        _order(worker, orders.item, following, orders.failed, conditional=False)
    worker.promised, worker.ahead = (following.key if following else None), None
    if orders.goes_on and following is not None:
        _order(worker, following, _known(worker, orders.after_following), orders.failed, conditional=True)
        worker.ahead = following.key


def _known(worker: Worker, item: RemoteItem | None) -> RemoteItem | None:
    return item if item is not None and item.key in worker.index else None


def _order(
    worker: Worker, item: RemoteItem, following: RemoteItem | None, failed: int, *, conditional: bool
) -> None:  # fmt: skip
    index = worker.index[item.key]
    following_index = worker.index[following.key] if following else None
    worker.child.send("run", index=index, following=following_index, failed=failed, conditional=conditional)


def _listen(
    worker: Worker, exchange: Exchange, begun_s: float, limit_s: float | None, deliver: Deliver,
    listen: Callable[[Message], None],
) -> None:  # fmt: skip
    while True:
        left_s = max(0.001, begun_s + limit_s - time.monotonic()) if limit_s else None
        message = worker.child.receive(left_s)
        kind = message["is"]
        if kind == "begin":
            worker.child.mark(message["sizes"])
        elif kind == "phase":
            exchange.when = message["when"]
        elif kind == "report":
            data = message["data"]
            exchange.sections = [tuple(section) for section in data.get("sections") or ()]
            deliver(data)
        elif kind == "warning":
            listen(message)
        elif kind == "done":
            exchange.poisoned = message["poisoned"]
            if not message["clean"]:
                worker.ahead = None  # the child drops the order that was sent on condition
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


def stand_in(item: RemoteItem, when: str) -> pytest.TestReport:
    """The teardown that a dead process cannot report, so that every test's reports end as pytest's do."""
    return reports.made(item, when, "passed")
