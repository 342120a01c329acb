"""What pytest is told: the child's reports as they are, and the fault, named, where a test ended or poisoned it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from harness.isolation import exchange, reports
from harness.isolation.child.wire import Message
from harness.isolation.incident import How, Incident, Name, Named, poisoned
from harness.isolation.items import RemoteItem
from harness.isolation.process import Died

_BARE = "the process is poisoned"  # the child's own words where the test itself had nothing to say


@dataclass(frozen=True)
class Finding:
    """One line of the summary at the end."""

    nodeid: str
    named: Named


class Telling:
    """`findings` in the order they came up."""

    def __init__(self, config: pytest.Config, name: Name) -> None:
        self._config = config
        self._name = name
        self.findings: list[Finding] = []

    def report(self, item: RemoteItem, data: Message) -> None:
        """A report of the child's, with the fault named where its phase poisoned the process."""
        fact = data.pop("cuda_poison", None)
        if fact is None or fact["allowed"]:
            self._deliver(item, reports.received(self._config, data))
            return
        named = self._name(poisoned(data, fact, data["duration"]))  # before pytest takes the data apart
        named = _headed(named, f"the test's {fact['when']} poisoned its process")
        bare = _BARE in str(data.get("longrepr"))
        report = reports.received(self._config, data)
        reports.add_story(report, named, replace=bare)
        self._found(item.nodeid, named)
        self._deliver(item, report)

    def ended(self, item: RemoteItem, done: exchange.Exchange, incident: Incident) -> None:
        """The test ended its process: reported in the phase it was in."""
        named = self._name(incident)
        said = "hung and was ended" if incident.facts.timed_out else "ended its process"
        named = _headed(named, f"the test {said} in its {done.when}")
        stacks = incident.facts.result.get("stacks")
        if stacks:
            named = replace(named, lines=(*named.lines, "where it was:", *stacks))
        self._found(item.nodeid, named)
        texts = [(name, incident.files.get(name, b"")) for name in ("stdout", "stderr")]
        sections = [*done.sections, *reports.capture_sections(texts, done.when)]
        self._deliver(item, reports.ended(item, done.when, named, sections=sections, duration_s=done.wall_s))
        if done.when != "teardown":
            self._deliver(item, exchange.stand_in(item, "teardown"))

    def died_afterwards(self, item: RemoteItem, end: Died | None) -> None:
        """The process of this test alone ended badly after the test was done."""
        how = f"died of {end}" if end is not None else "did not end and was killed"
        named = _headed(Named(True, "died-after-finish", None, ()), f"the test was done, then its process {how}")
        self._found(item.nodeid, named)
        self._deliver(item, reports.ended(item, "teardown", named, sections=(), duration_s=0.0))

    def error(self, item: RemoteItem, text: str) -> None:
        """The test could not be run or judged: an error, never a pass."""
        self._deliver(item, reports.made(item, "setup", "failed", longrepr=f"cudadiag: {text}"))
        self._deliver(item, exchange.stand_in(item, "teardown"))

    def checked(self, item: RemoteItem, held: list[Message], done: exchange.Exchange, incident: Incident) -> None:
        """A test that ran under a sanitizer, whose word decides: `held` are the reports it made itself."""
        if any(data.get("outcome") == "skipped" and not data.get("wasxfail") for data in held):
            for data in held:
                self.report(item, data)
            return
        named = self._name(incident)
        if named.undecided:
            self.error(item, "\n".join((f"{incident.observer} did not decide", *named.lines)))
        elif done.incident is not None:
            self.ended(item, done, incident)
        elif not named.failed:
            for data in held:
                self.report(item, data)
        else:
            self._accuse(item, held, _headed(named, f"found by {incident.observer}"))

    def _accuse(self, item: RemoteItem, held: list[Message], named: Named) -> None:
        """The finding goes to the call, or to the setup where there was no call."""
        self._found(item.nodeid, named)
        phases = [data.get("when") for data in held]
        guilty = "call" if "call" in phases else "setup"
        for data in held:
            data.pop("cuda_poison", None)
            own_words = data["outcome"] == "failed" and _BARE not in str(data.get("longrepr"))
            report = reports.received(self._config, data)
            if report.when == guilty:
                report.outcome = "failed"
                reports.add_story(report, named, replace=not own_words)
            self._deliver(item, report)

    def bad_collector(self, nodeid: str, incident: Incident) -> str:
        """Why a collector cannot be used, for its own report."""
        named = _headed(self._name(incident), f"importing it {_PAST[incident.how]} the test process")
        self._found(nodeid or "collection", named)
        said = incident.files.get("stderr", b"").decode("utf-8", "replace")
        return "\n".join([*named.lines, *incident.facts.result.get("stacks", ()), said]).rstrip()

    def not_collected(self, item: RemoteItem, nodeid: str, incident: Incident) -> None:
        """A later child ended where the first one did not: the test could not be run."""
        named = self._name(incident)
        said = b"\n".join(incident.files.get(name, b"") for name in ("stdout", "stderr")).decode("utf-8", "replace")
        where = f"at {nodeid}" if nodeid else "at once"
        lines = (f"the test's process {_PAST[incident.how]} {where}, before it could run", *named.lines, said.strip())
        self.error(item, "\n".join(line for line in lines if line))

    def _found(self, nodeid: str, named: Named) -> None:
        self.findings.append(Finding(nodeid, named))

    def _deliver(self, item: RemoteItem, report: Any) -> None:
        report.nodeid = item.nodeid
        last = self.findings[-1] if self.findings else None
        if report.when == "teardown" and last is not None and last.nodeid == item.nodeid:
            reports.add_properties(report, last.named)  # JUnit XML takes properties from here
        item.ihook.pytest_runtest_logreport(report=report)


_PAST = {How.POISONED: "poisoned", How.DIED: "ended", How.HUNG: "hung", How.CHECKED: "ended"}


def _headed(named: Named, what: str) -> Named:
    """The first line alone must say it: pytest's short summary shows no other."""
    return replace(named, lines=(f"cudadiag: {named.kind}: {what}", *named.lines))
