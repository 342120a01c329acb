"""The case files: they load, they are documented, they can be shipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cases_kit import CASES, EXPECTED, FILES, NAMES, case_named, holds

DDTREE = {
    "verify_attn_ok", "tree_build_ok", "tree_accept_ok", "ddtree_ok", "verify_attn", "tree_flat", "bulk_tail",
    "commit_none", "decode_loop", "leaky_sweep", "bench_kernels",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_case_loads_under_the_name_of_its_file_and_has_a_title(name: str) -> None:
    case = case_named(name)
    assert case.name == name
    assert case.title
    assert len(case.sweep) > 1


def test_all_ddtree_cases_and_two_host_cases_are_there() -> None:
    assert set(NAMES) >= DDTREE | {"crash_from", "hang_odd"}


def test_ten_field_cases_each_with_a_readme_that_names_its_structure_and_its_model() -> None:
    folders = [path for path in (CASES / "field").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(folders) == 10
    for folder in folders:
        text = (folder / "README.md").read_text()
        assert "**Structure:**" in text
        assert "**Modelled on:**" in text


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_case_says_at_its_head_where_it_fails_or_that_it_passes(path: Path) -> None:
    head = "".join(line for line in path.read_text().splitlines(keepends=True) if line.startswith("#"))
    assert re.search(r"H200|No CUDA|passes|Passes|equal to|compared|accept", head)


def test_every_fault_case_says_for_programs_what_it_must_show() -> None:
    faults = {path.stem for path in FILES if path.parent.name == "faults"}
    assert set(EXPECTED) == faults
    for entry in EXPECTED.values():
        assert entry["h200"]["blocking"]["outcome"]
        assert entry["emulator"]["outcome"]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_fault_case_has_shapes_with_the_fault_and_shapes_without(name: str) -> None:
    case = case_named(name)
    shapes = [case.sweep.shape(index) for index in range(len(case.sweep))]
    failing = [holds(EXPECTED[name]["fails"], {**shape, "earlier": index}) for index, shape in enumerate(shapes)]
    assert any(failing)
    assert not all(failing)


def test_a_fault_of_the_hardware_is_seen_by_the_observer_that_the_case_asks_for() -> None:
    for name, entry in EXPECTED.items():
        assert entry["h200"][case_named(name).observer]["outcome"] in ("fault", "hang"), name


def test_nothing_in_the_cases_points_outside_the_repository() -> None:
    for path in CASES.rglob("*"):
        if path.is_file() and path.suffix in (".yaml", ".cu", ".py", ".md"):
            assert not re.search(r"(?<![\w.])/(work|root|home|tmp)/", path.read_text()), path
