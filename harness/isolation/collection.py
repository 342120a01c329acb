"""The tests of a session, collected by a child; a file whose import ends or poisons the child costs no other file."""

from __future__ import annotations

import pytest

from harness.isolation import reports
from harness.isolation.child.wire import Message
from harness.isolation.children import Children
from harness.isolation.items import RemoteItem, make_items, unmarked
from harness.isolation.process import Child
from harness.isolation.telling import Telling
from harness.isolation.worker import BadCollector, Worker, collect


class Collection:
    """`left_out`: the deselected tests."""

    def __init__(self, session: pytest.Session, children: Children, telling: Telling, limit_s: float | None) -> None:
        self._session = session
        self._children = children
        self._telling = telling
        self._limit_s = limit_s
        self.left_out: list[RemoteItem] = []

    def worker(self) -> Worker:
        """The child that collected it all. Each bad collector costs a child more: none is imported twice."""
        while True:
            heard: list[Message] = []
            child = self._children.start()
            try:
                worker = collect(child, self._limit_s, heard.append)
            except BadCollector as bad:
                self._note(child, bad)
                continue
            except BaseException:
                self._hear(heard)
                child.close()
                raise
            self._hear(heard)
            return worker

    def _note(self, child: Child, bad: BadCollector) -> None:
        known = self._children.bad_collectors
        reason = self._telling.bad_collector(bad.nodeid, bad.incident)
        child.close()
        if not bad.nodeid or bad.nodeid in known:
            raise pytest.UsageError(f"the test process ended before it had collected anything\n{reason}")
        known[bad.nodeid] = reason

    def _hear(self, heard: list[Message]) -> None:
        hook = self._session.config.hook
        for message in heard:
            if message["is"] == "collectreport":
                hook.pytest_collectreport(report=reports.collect_report(self._session.config, message["data"]))
            elif message["is"] == "deselected":
                left_out = make_items(self._session, [unmarked(nodeid) for nodeid in message["nodeids"]])
                self.left_out += left_out
                hook.pytest_deselected(items=left_out)
            else:
                reports.record_warning(self._session.config, message)
