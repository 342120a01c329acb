"""Every log fixture gets the answer a careful engineer would give."""

from __future__ import annotations

from typing import Any

import pytest
from triage_fixtures import LogFixture, log_fixtures

from cudadiag.triage import scan, tell
from cudadiag.triage.fold import Folded
from cudadiag.triage.story import Story

FIXTURES = log_fixtures()


def told(fixture: LogFixture) -> Story:
    return tell([scan([fixture.data], fixture.name)])


def answer(story: Story) -> dict[str, Any]:
    """Everything a fixture may ask for, by the fixture's words."""
    fault = story.fault
    noticed = fault.noticed if fault else None
    caused = fault.caused if fault else None
    return {
        "verdict": story.verdict.value,
        "kind": fault.kind.value if fault else None,
        "name": fault.name if fault else None,
        "number": fault.number if fault else None,
        "call": noticed.call if noticed else None,
        "file": noticed.file if noticed else None,
        "line": noticed.line if noticed else None,
        "kernel": caused.kernel if caused else None,
        "caused_file": caused.file if caused else None,
        "caused_line": caused.line if caused else None,
        "cause": story.cause,
        "confidence": story.confidence,
        "log_line": story.primary.log_line if story.primary else None,
        "process": story.primary.process if story.primary else None,
        "echoes": sum(fold.count for fold in story.folds if fold.relation is Folded.ECHO),
        "cascades": sum(fold.count for fold in story.folds if fold.relation is Folded.CASCADE),
        "settings": story.bench.settings,
        "has_table": story.table is not None,
    }


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: f"{fixture.family}-{fixture.name}")
def test_the_first_real_fault_is_named(fixture: LogFixture) -> None:
    story = told(fixture)
    found = answer(story)
    expected = dict(fixture.expected)
    misread, first, row = (
        expected.pop("misread", None),
        expected.pop("first_sign", None),
        expected.pop("last_row", None),
    )
    affected, worked = expected.pop("affected", None), expected.pop("worked", None)
    assert {key: found[key] for key in expected} == expected, story.summary
    assert misread is None or any(misread in note for note in story.misread)
    assert first is None or (story.first_sign is not None and first in story.first_sign.text)
    assert row is None or (story.table is not None and row.items() <= dict(story.table.last.cells).items())
    assert affected is None or affected in story.bench.affected
    assert worked is None or worked in story.bench.worked


def test_there_are_enough_fixtures_with_names_of_their_own() -> None:
    names = [(fixture.family, fixture.name) for fixture in FIXTURES]
    assert len(names) == len(set(names))
    assert len(names) >= 120
