"""The parent's pytest plugin: it collects through a child, and runs every test in one."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import pytest

from harness import sanitizer
from harness.isolation import exchange, reports
from harness.isolation.child.wire import Message
from harness.isolation.children import FINISH_S, POISONED_FINISH_S, Children
from harness.isolation.collection import Collection
from harness.isolation.incident import How, Incident, Name
from harness.isolation.items import RemoteItem, make_items
from harness.isolation.process import Child, Died
from harness.isolation.settings import Settings
from harness.isolation.telling import Telling
from harness.isolation.worker import BadCollector, Worker
from harness.records import ProbeFacts

_UNDER_A_TOOL = 10.0  # a sanitizer makes programs slower by this and more
_NOT_AGAIN = "a fresh test process did not collect this test again: does its name change from run to run?"


class Controller:
    """Registered in the process that the user started, or in each of pytest-xdist's workers."""

    def __init__(self, config: pytest.Config, settings: Settings, name: Name) -> None:
        self._config = config
        self._settings = settings
        self._children = Children(config, settings)
        self._telling = Telling(config, name)
        self._session: pytest.Session
        self._positions: dict[int, int] = {}

    def header(self) -> str:
        settings = self._settings
        limit = f"{settings.timeout_s:g} s a test" if settings.timeout_s else "no time limit"
        tool = f", marked tests under {settings.tool}" if settings.tool else ""
        return f"cuda isolation: {settings.mode}, {limit}{tool}"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    def collect(self, session: pytest.Session) -> bool:
        """pytest_collection: stand-ins for what a child collected."""
        collection = Collection(session, self._children, self._telling, self._settings.collection_s)
        worker = collection.worker()
        items = make_items(session, worker.told)
        session.items = list(items)
        session.testscollected = len(items)
        self._positions = {id(item): at for at, item in enumerate(items)}
        if self._settings.tool and items and not any(item.tool for item in items):
            tool = self._settings.tool
            text = f"--cuda-sanitize={tool}: none of these tests is marked cuda_sanitize, so none runs under {tool}"
            self._config.issue_config_time_warning(pytest.PytestWarning(text), 2)
        if any(self._shares(item) for item in items):
            self._children.shared = worker
        else:
            worker.child.finish(FINISH_S)
        found: list[Any] = [*items, *collection.left_out]  # as pytest counts what it collected
        hook = self._config.hook
        hook.pytest_collectreport(report=pytest.CollectReport(session.nodeid, "passed", None, found))
        hook.pytest_collection_finish(session=session)
        return True

    def run(self, item: RemoteItem, following: pytest.Item | None) -> None:
        """pytest_runtest_protocol for one stand-in."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            if item.tool is not None:
                self._run_under_tool(item, item.tool)
            elif self._shares(item):
                self._run_shared(item, following)
            else:
                self._run_alone(item)
        except BadCollector as bad:
            self._telling.not_collected(item, bad.nodeid, bad.incident)
        except KeyboardInterrupt:
            self._children.interrupt()
            raise
        self._children.last = item.nodeid
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _shares(self, item: RemoteItem) -> bool:
        """Whether the test runs in the shared child: not with a sanitizer, not by `each`."""
        return item.tool is None and (item.mode or self._settings.mode) != "each"

    def _orders(self, item: RemoteItem, following: pytest.Item | None) -> exchange.Orders:
        """A worker of pytest-xdist knows one test ahead and no further, so its child never goes on by itself; nor does
        a child that writes where the parent does."""
        failed = self._session.testsfailed
        if hasattr(self._config, "workerinput"):
            shared = following if isinstance(following, RemoteItem) and self._shares(following) else None
            return exchange.Orders(item, shared, False, None, failed)
        first = self._next_shared(item) if following is not None else None
        goes_on = first is not None and first is following and not self._settings.inherit_output
        return exchange.Orders(item, first, goes_on, self._next_shared(first) if first else None, failed)

    def _next_shared(self, item: RemoteItem) -> RemoteItem | None:
        items = self._session.items
        for at in range(self._positions[id(item)] + 1, len(items)):
            later = items[at]
            if isinstance(later, RemoteItem) and self._shares(later):
                return later
        return None

    def _run_shared(self, item: RemoteItem, following: pytest.Item | None) -> None:
        worker = self._children.shared_for(item)
        if item.key not in worker.index:
            self._telling.error(item, _NOT_AGAIN)
            return
        orders = self._orders(item, following)
        done = self._order(worker, orders, deliver=lambda data: self._telling.report(item, data))
        if done.incident is not None:
            self._children.shared = None
            worker.child.close()
            self._telling.ended(item, done, done.incident)
        elif done.poisoned:
            self._children.shared = None
            worker.child.finish(POISONED_FINISH_S)

    def _run_alone(self, item: RemoteItem) -> None:
        worker = self._children.own_for(item, None)
        child = worker.child
        try:
            if item.key not in worker.index:
                self._telling.error(item, _NOT_AGAIN)
                return
            done = self._order(worker, self._only(item), deliver=lambda data: self._telling.report(item, data))
            if done.incident is not None:
                self._telling.ended(item, done, done.incident)
                return
            end = child.wait_end(POISONED_FINISH_S if done.poisoned else FINISH_S)
            if not done.poisoned and (end is None or end.signal is not None or end.exit_code):
                self._telling.died_afterwards(item, end)
        finally:
            child.close()

    def _run_under_tool(self, item: RemoteItem, tool: str) -> None:
        """Nothing is told before the tool has spoken: a test that passes is not one that was checked."""
        try:
            worker = self._children.own_for(item, tool)
        except sanitizer.ToolMissing as missing:
            self._telling.error(item, f"--cuda-sanitize={tool}: {missing}")
            return
        except BadCollector as bad:
            self._telling.not_collected(item, bad.nodeid, replace(bad.incident, how=How.CHECKED, observer=tool))
            return
        try:
            if item.key not in worker.index:
                self._telling.error(item, _NOT_AGAIN)
                return
            held: list[Message] = []
            done = self._order(worker, self._only(item), deliver=held.append, factor=_UNDER_A_TOOL)
            self._telling.checked(item, held, done, _whole_run(worker.child, done, tool))
        finally:
            worker.child.close()

    def _only(self, item: RemoteItem) -> exchange.Orders:
        return exchange.Orders(item, None, False, None, self._session.testsfailed)

    def _order(
        self, worker: Worker, orders: exchange.Orders, *, deliver: Callable[[Message], None], factor: float = 1.0
    ) -> exchange.Exchange:
        marked_s = orders.item.timeout_s
        limit_s = (self._settings.timeout_s if marked_s is None else marked_s) * factor
        return exchange.run_test(
            worker, orders, limit_s=limit_s or None, deliver=deliver,
            listen=lambda message: reports.record_warning(self._config, message),
        )  # fmt: skip

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """The last child ends before pytest-cov, around this, gathers what the children measured."""
        try:
            return (yield)
        finally:
            self._children.finish_shared()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._children.finish_shared()
        if self._children.afterwards and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self) -> None:
        self._children.close()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        findings, afterwards = self._telling.findings, self._children.afterwards
        if not findings and not afterwards:
            return
        terminalreporter.section("cuda isolation")
        for finding in findings:
            shown = f" [{finding.named.signature}]" if finding.named.signature else ""
            terminalreporter.write_line(f"{finding.nodeid}: {finding.named.kind}{shown}")
        for text in afterwards:
            terminalreporter.write_line(text, red=True)
        terminalreporter.write_line(f"{self._children.started} test processes were started")


def _whole_run(child: Child, done: exchange.Exchange, tool: str) -> Incident:
    """The facts of a run under a tool, whose reports exist only after its end."""
    begun_s = time.monotonic()
    end = _end_under_a_tool(child, done.incident)
    facts = ProbeFacts(
        exit_code=end.exit_code if end else None, signal=end.signal if end else 9, timed_out=end is None,
        killed_by_us=None if end else "its time was over", wall_s=done.wall_s + time.monotonic() - begun_s,
        inner_exit=child.inner_exit, launch={"pid": child.pid},
    )  # fmt: skip
    return Incident(How.CHECKED, facts, child.texts(), observer=tool)


def _end_under_a_tool(child: Child, incident: Incident | None) -> Died | None:
    if incident is None:
        return child.wait_end(FINISH_S)
    return None if incident.how is How.HUNG else child.ended()
