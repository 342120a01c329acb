"""What the cases are said to show on an H200 against what they showed there: every shape once, plain, driver
580.159.04, each in a process of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cases_kit import CASES, EXPECTED, case_named, holds

RECORDED = Path(__file__).parent / "recorded"


def recording(name: str) -> dict[str, list[tuple[Any, str]]]:
    """Case -> (shape, what happened) in sweep order; for a case that runs in one process (what was run, what
    happened)."""
    found: dict[str, list[tuple[Any, str]]] = {}
    rows: list[tuple[Any, str]] = []
    for line in (RECORDED / name).read_text().splitlines():
        if title := re.match(r"== (\w+)", line):
            rows = found.setdefault(title[1], [])
        else:
            shape, rest = json.JSONDecoder().raw_decode(line)
            rows.append((shape, next(iter(json.loads(line[rest:].strip().replace("'", '"'))))))
    return found


FAULTS, FIELD = recording("faults-h200.txt"), recording("field-h200.txt")
TITLES = {"illegal address": "fault 700", "launch limit": "fault 1", "hang": "hang", "device assert": "fault 710"}


def in_words(expected: dict[str, Any]) -> str:
    return f"fault {expected['number']}" if expected["outcome"] == "fault" else str(expected["outcome"])


def test_every_case_that_is_said_to_be_measured_is_in_the_recording_and_the_reverse() -> None:
    assert {name for name, entry in EXPECTED.items() if "plain" in entry.get("measured", ())} == set(FAULTS)


@pytest.mark.parametrize("name", [name for name in FAULTS if case_named(name).isolation != "sequence"])
def test_a_fault_case_showed_what_is_expected_at_every_shape_of_its_sweep(name: str) -> None:
    case, entry = case_named(name), EXPECTED[name]
    assert [shape for shape, _ in FAULTS[name]] == [case.sweep.shape(index) for index in range(len(case.sweep))]
    for shape, happened in FAULTS[name]:
        expected = in_words(entry["h200"]["plain"]) if holds(entry["fails"], shape) else "pass"
        assert re.sub(r" CUDA_\w+$", "", happened) == expected, shape


def test_a_store_through_a_freed_buffer_faults_in_the_sequence_only() -> None:
    """A second recording: the kernel of the first kept a pointer that lay inside the next shape's buffer."""
    assert FAULTS["use_after_free"] == [
        ("whole sequence", "fault 700 CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("last alone", "pass"),
    ]
    assert in_words(EXPECTED["use_after_free"]["h200"]["plain"]) == "fault 700"


@pytest.mark.parametrize("name", FIELD)
def test_a_field_case_failed_where_its_table_says_and_nowhere_else(name: str) -> None:
    row = re.search(rf"^\| `{name}` \| (.*) \| (.*) \|$", (CASES / "field/README.md").read_text(), re.MULTILINE)
    assert row is not None
    conditions = list(zip(row[1].replace("2^31", "2**31").split("; "), row[2].split("; "), strict=True))
    sweep = case_named(name).sweep
    assert [shape for shape, _ in FIELD[name]] == [sweep.shape(index) for index in range(len(sweep))]
    for shape, happened in FIELD[name]:
        expected = next((TITLES[title] for condition, title in conditions if holds(condition, shape)), "pass")
        assert re.sub(r" CUDA_\w+$", "", happened) == expected, shape
