"""Reports: back from what a child sent, or made here for a test whose child can say nothing any more."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from harness.isolation.incident import Named
from harness.isolation.items import RemoteItem

Sections = Sequence[tuple[str, str]]


def received(config: pytest.Config, data: dict[str, Any]) -> Any:
    """A report of any kind that a plugin can make, from JSON: what must be tuples are tuples again."""
    for key in ("location", "longrepr"):
        if isinstance(data.get(key), list):
            data[key] = tuple(data[key])
    for key in ("sections", "user_properties"):
        data[key] = [tuple(pair) for pair in data.get(key) or ()]
    return config.hook.pytest_report_from_serializable(config=config, data=data)


def collect_report(config: pytest.Config, data: dict[str, Any]) -> pytest.CollectReport:
    data = {**data, "result": []}
    report: pytest.CollectReport = received(config, data)
    return report


def ended(
    item: RemoteItem, when: str, named: Named, *, sections: Sections, duration_s: float
) -> pytest.TestReport:  # fmt: skip
    """The report of the phase in which a test ended its process: failed, or xfailed where the test is so marked."""
    report = made(item, when, "failed", longrepr="\n".join(named.lines), sections=sections, duration_s=duration_s)
    if item.xfail is not None and when == "call":
        report.outcome = "skipped"
        report.wasxfail = item.xfail
    add_properties(report, named)
    return report


def made(
    item: RemoteItem, when: Any, outcome: Any, *, longrepr: str | None = None, sections: Sections = (),
    duration_s: float = 0.0,
) -> pytest.TestReport:  # fmt: skip
    now = time.time()
    return pytest.TestReport(
        nodeid=item.nodeid, location=item.location, keywords={item.name: 1}, outcome=outcome, longrepr=longrepr,
        when=when, sections=list(sections), duration=duration_s, start=now - duration_s, stop=now,
    )  # fmt: skip


def add_properties(report: pytest.TestReport, named: Named) -> None:
    """Kind and signature for JUnit XML and other plugins."""
    ours = [("cuda_fault", named.kind), *([("cuda_signature", named.signature)] if named.signature else [])]
    report.user_properties = [*(pair for pair in report.user_properties if pair not in ours), *ours]


def add_story(report: pytest.TestReport, named: Named, *, replace: bool) -> None:
    """Turn a report into a failure that tells what became of the process; the test's own exception stays first."""
    text = "\n".join(named.lines)
    add_section = getattr(report.longrepr, "addsection", None)
    if replace or report.longrepr is None:
        report.longrepr = text
    elif add_section is not None:
        add_section("cuda isolation", text)
    else:
        report.longrepr = f"{report.longreprtext}\n{text}"
    add_properties(report, named)


def capture_sections(texts: Iterable[tuple[str, bytes]], when: str) -> list[tuple[str, str]]:
    return [
        (f"Captured {name} {when}", text.decode("utf-8", "replace")) for name, text in texts if text.strip()
    ]  # fmt: skip


def record_warning(config: pytest.Config, told: dict[str, Any]) -> None:
    """A warning of the child's becomes one of the parent's. A category that this process has not imported gets a
    namesake: the parent imports nothing of the tests'."""
    kind: Any = getattr(sys.modules.get(told["module"]), told["category"], None)
    if not (isinstance(kind, type) and issubclass(kind, Warning)):
        kind = type(told["category"], (Warning,), {"__module__": told["module"]})
    message = warnings.WarningMessage(told["text"], kind, told["filename"], told["lineno"])
    location = tuple(told["location"]) if told["location"] else None
    config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": message, "when": told["when"], "nodeid": told["nodeid"], "location": location}
    )
