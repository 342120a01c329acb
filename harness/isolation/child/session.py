"""The pytest plugin of the child: collects, reports what it collected, then runs one test for each order."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import pytest

from .canaries import Canaries
from .describe import collected, warning
from .health import Fact, Health, no_check, users_check
from .wire import Link

_LOUD = ("pytest_runtest_logstart", "pytest_runtest_logreport", "pytest_runtest_logfinish", "pytest_sessionfinish")
"""A reporter's hooks that would cost every test, and every child its summary, for nobody to see."""
_SYNCHRONISING = Path(__file__).parents[2] / "child" / "cuda_sync.py"


def _synchronising() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cudadiag_cuda_sync", _SYNCHRONISING)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ChildPlugin:
    """`start` is what the parent wrote: see `process.Start`."""

    def __init__(self, folder: Path, start: dict[str, Any]) -> None:
        self._start = start
        self._link = Link(folder)
        self._health: Health | None = None
        self._outputs = [str(folder / name) for name in start["outputs"]]
        self._poison: Fact | None = None  # of the test that runs now
        self._clean = True  # the last test did not fail
        self._session: pytest.Session
        self._told_capture = False
        self._null: TextIO | None = None
        self.orderly = False  # told to finish: any other end is a death

    # -- the session's frame

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Every plugin that knows pytest-xdist's workers then leaves output files and the cache to the parent."""
        config.workerinput = dict(self._start["workerinput"])  # type: ignore[attr-defined]
        config.workeroutput = {}  # type: ignore[attr-defined]
        config.pluginmanager.register(object(), "cudadiag-isolation-child")  # what the parent's half asks for
        for name, value in (("numprocesses", None), ("dist", "no"), ("distload", False), ("tx", [])):
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        if self._start["only"] is not None:
            config.args = [str(config.rootpath / self._start["only"])]

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """What a terminal would show is the parent's business; plugins may still ask for a terminal reporter."""
        shown = config.pluginmanager.unregister(name="terminalreporter")
        if shown is not None:
            self._null = open(os.devnull, "w")  # noqa: SIM115 - as long as the session
            reporter = type(shown)(config, self._null)
            for name in _LOUD:  # pluggy passes over what is no function
                setattr(reporter, name, None)
            config.pluginmanager.register(reporter, "terminalreporter")

    def pytest_unconfigure(self) -> None:
        if self._null is not None:
            self._null.close()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._link.send("process", pid=os.getpid())
        path = self._start["health"]
        try:
            users = users_check(path) if path else no_check
        except ValueError as error:
            self._link.send("usage", texts=[str(error)])
            raise pytest.UsageError(str(error)) from error
        self._health = Health(_synchronising(), users, Canaries() if self._start["canaries"] else None)

    def pytest_internalerror(self, excrepr: object) -> None:
        self._link.send("internal", text=str(excrepr))

    def pytest_warning_recorded(
        self, warning_message: Any, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        self._link.send("warning", **warning(warning_message), when=when, nodeid=nodeid, location=location)

    # -- collection

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except pytest.UsageError as error:
            self._link.send("usage", texts=[str(text) for text in error.args])
            raise
        except (pytest.Session.Interrupted, pytest.Session.Failed) as error:
            self._link.send("stopped", text=str(error), failed=isinstance(error, pytest.Session.Failed))
            raise
        except pytest.exit.Exception as error:
            self._link.send("exit", text=str(error.msg), code=error.returncode)
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Names the collector before it is imported: its import may be the last thing this process does."""
        self._link.send("collecting", nodeid=collector.nodeid)
        report = yield
        fact = self._health.check() if self._health else None
        if fact is not None:
            self._link.send("poisoned-collecting", nodeid=collector.nodeid, fact=fact)
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._link.send("collectreport", data=self._serial(report))

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._link.send("deselected", nodeids=[item.nodeid for item in items])

    # -- tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._link.send("collected", items=[collected(item, self._start["sanitize"]) for item in session.items])
        while (order := self._link.receive()) is not None:
            if order["is"] == "finish":
                self.orderly = True
                break
            if order["conditional"] and not self._clean:
                continue  # it was for a clean end of the test before
            session.testsfailed = order["failed"]  # of all children: --maxfail counts them together
            following = order["following"]
            self._run(session.items[order["index"]], session.items[following] if following is not None else None)
        return True

    def _run(self, item: pytest.Item, following: pytest.Item | None) -> None:
        self._poison, self._clean = None, True
        self._link.hold("begin", sizes=[_size(path) for path in self._outputs])
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except pytest.exit.Exception as error:
            self._link.send("exit", text=str(error.msg), code=error.returncode)
            raise
        except KeyboardInterrupt:
            self._link.send("interrupted")
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        self._clean = self._clean and self._poison is None
        self._link.send("done", poisoned=self._poison is not None, clean=self._clean)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._checked(item, "setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._checked(item, "call"):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._checked(item, "teardown"):
            return (yield)

    @contextmanager
    def _checked(self, item: pytest.Item, when: str) -> Iterator[None]:
        """Innermost around a phase, so that what the check prints (a device's printf) is captured with it."""
        self._link.send("phase", when=when)
        self._tell_capture()
        try:
            yield
        except (pytest.exit.Exception, KeyboardInterrupt):
            raise
        except BaseException:
            self._check(item, when)
            raise
        if self._check(item, when):
            pytest.fail("the process is poisoned", pytrace=False)

    def _check(self, item: pytest.Item, when: str) -> bool:
        """Whether this phase poisoned the process, against what the test said of itself."""
        mark = item.get_closest_marker("cuda_isolate")
        if self._poison is not None or self._health is None or (mark is not None and "none" in mark.args):
            return False
        fact = self._health.check()
        if fact is None:
            return False
        allowed = bool(mark is not None and mark.kwargs.get("poisons"))
        self._poison = {**fact, "when": when, "allowed": allowed}
        self._session.shouldstop = "the process is poisoned"  # so that the teardown ends the fixtures of every scope
        return not allowed

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        poison = self._poison
        if poison is None:
            return report
        if poison["when"] == call.when:
            report.cuda_poison = poison  # type: ignore[attr-defined]
            if not poison["allowed"] and report.outcome != "failed" and not hasattr(report, "wasxfail"):
                report.outcome = "failed"  # a skip that came too late
        elif report.failed:
            # An after-effect: the fault is told once, by the phase that caused it.
            report.sections.append((f"{call.when} after the fault", report.longreprtext))
            report.outcome, report.longrepr = "passed", None
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._clean = self._clean and not report.failed
        self._link.hold("report", data=self._serial(report))

    def _serial(self, report: pytest.CollectReport | pytest.TestReport) -> Any:
        config = self._session.config
        return config.hook.pytest_report_to_serializable(config=config, report=report)

    def _tell_capture(self) -> None:
        """Within a phase descriptors 1 and 2 are pytest's capture files: the parent opens them too, so that what a
        dying test printed is not lost."""
        if self._told_capture:
            return
        self._told_capture = True
        if self._session.config.option.capture == "fd":
            self._link.send("capture", descriptors=[os.dup(1), os.dup(2)])


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:  # the driver's log, before the driver is there
        return 0


class BadCollectors:
    """Collectors that killed or poisoned a child before: reported as failed, not imported again."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self._reasons = reasons

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        reason = self._reasons.get(collector.nodeid)
        return None if reason is None else pytest.CollectReport(collector.nodeid, "failed", reason, [])
