"""The kernel cases end to end on the emulated device: a process per probe, judged as the commands judge it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases_kit import EXPECTED, case_named, holds, judged, line_with, probed

from cudadiag.case import Case
from cudadiag.model import Verdict

pytest.importorskip("llvmlite")
pytest.importorskip("cuda.bindings.nvrtc")

Shape = dict[str, Any]


def judged_all(case: Case, shapes: Sequence[Shape], folder: Path, **settings: Any) -> list[Verdict]:
    """The verdicts of several shapes, two processes at a time."""
    run: Callable[[int], Verdict] = lambda index: judged(case, shapes[index], folder / str(index), **settings)  # noqa: E731
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, range(len(shapes))))


def all_shapes(case: Case) -> list[Shape]:
    return [case.sweep.shape(index) for index in range(len(case.sweep))]


def around_the_fault(case: Case, fails: str) -> list[Shape]:
    """The last passing shape before the first failing one, the first failing one, and the last failing one."""
    shapes = all_shapes(case)
    failing = [index for index, shape in enumerate(shapes) if holds(fails, shape)]
    return [shapes[index] for index in sorted({failing[0] - 1, failing[0], failing[-1]})]


# --- planted faults

ALONE = [name for name in EXPECTED if name != "use_after_free"]


@pytest.mark.parametrize("name", ALONE)
def test_a_planted_fault_shows_at_its_shapes_and_only_there(name: str, tmp_path: Path) -> None:
    case, expected = case_named(name), EXPECTED[name]["emulator"]
    shapes = around_the_fault(case, EXPECTED[name]["fails"])
    for shape, verdict in zip(shapes, judged_all(case, shapes, tmp_path), strict=True):
        failing = holds(EXPECTED[name]["fails"], shape)
        if expected["outcome"] == "unresolved":
            assert verdict.outcome == "unresolved", shape
            continue
        if not failing:
            assert verdict.outcome == "pass", (shape, verdict.reason)
            continue
        assert verdict.outcome == expected["outcome"], (shape, verdict.reason)
        assert verdict.fault is not None
        assert verdict.fault.kind == expected.get("kind", verdict.fault.kind)
        assert verdict.fault.number == expected["number"]
        if "line" in expected:
            caused = verdict.fault.caused
            assert caused is not None
            assert caused.file is not None
            assert caused.line in line_with(caused.file, expected["line"])


@pytest.mark.parametrize("name", [name for name in ALONE if "hardware" in EXPECTED[name]["emulator"]])
def test_hardware_memory_hides_what_pages_hide(name: str, tmp_path: Path) -> None:
    case, expected = case_named(name), EXPECTED[name]["emulator"]["hardware"]
    shape = next(shape for shape in all_shapes(case) if holds(EXPECTED[name]["fails"], shape))
    verdict = judged(case, shape, tmp_path / "p", memory_model="hardware")
    assert verdict.outcome == expected["outcome"], verdict.reason
    if "number" in expected:
        assert verdict.fault is not None
        assert verdict.fault.number == expected["number"]


def test_use_after_free_needs_an_earlier_shape_in_the_same_process(tmp_path: Path) -> None:
    case = case_named("use_after_free")
    shapes = all_shapes(case)
    assert {verdict.outcome.value for verdict in judged_all(case, shapes, tmp_path)} == {"pass"}
    facts = probed(case, shapes, tmp_path / "sequence")
    assert len(facts.result["steps"]) == 2  # the second shape ended the process
    (record,) = facts.device_records
    assert record["kind"] == "use-after-free"
    assert record["line"] in line_with(record["file"], "FAULT")


# --- ddtree

RIGHT: list[tuple[str, Shape]] = [
    ("verify_attn_ok", {"streams": 1, "q_len": 9, "prefix": 256}),
    ("verify_attn_ok", {"streams": 4, "q_len": 17, "prefix": 1024}),
    ("verify_attn_ok", {"streams": 8, "q_len": 33, "prefix": 4096}),
    ("tree_build_ok", {"streams": 8, "budget": 64, "topk": 8}),
    ("tree_build_ok", {"streams": 4, "budget": 15, "topk": 1}),
    ("tree_accept_ok", {"streams": 32, "nodes": 2}),
    ("tree_accept_ok", {"streams": 32, "nodes": 129}),
    ("ddtree_ok", {"streams": 1, "budget": 8, "prefix": 256}),
    ("ddtree_ok", {"streams": 4, "budget": 32, "prefix": 1024}),
]


@pytest.mark.parametrize(("name", "shape"), RIGHT)
def test_the_right_versions_agree_with_their_references(name: str, shape: Shape, tmp_path: Path) -> None:
    verdict = judged(case_named(name), shape, tmp_path / "p")
    assert verdict.outcome == "pass", verdict.reason
    assert "equal the reference" in str(verdict.proof)


PLANTED: list[tuple[str, Shape, str]] = [
    ("verify_attn", {"streams": 1, "q_len": 9, "prefix": 1024}, "pass"),
    ("verify_attn", {"streams": 1, "q_len": 9, "prefix": 4096}, "fault"),
    ("verify_attn", {"streams": 8, "q_len": 33, "prefix": 4096}, "fault"),
    ("tree_flat", {"budget": 8, "streams": 1}, "fault"),
    ("tree_flat", {"budget": 12, "streams": 2}, "fault"),
    ("tree_flat", {"budget": 15, "streams": 1}, "pass"),
    ("commit_none", {"streams": 4, "nodes": 9, "accepted": 1}, "pass"),
    ("commit_none", {"streams": 4, "nodes": 9, "accepted": 0}, "fault"),
    ("decode_loop", {"prompt": 16, "generated": 177}, "pass"),
    ("decode_loop", {"prompt": 16, "generated": 178}, "fault"),
    ("decode_loop", {"prompt": 64, "generated": 129}, "pass"),
    ("decode_loop", {"prompt": 64, "generated": 130}, "fault"),
]


@pytest.mark.parametrize(("name", "shape", "outcome"), PLANTED)
def test_the_planted_defects_show_where_their_cases_say(name: str, shape: Shape, outcome: str, tmp_path: Path) -> None:
    verdict = judged(case_named(name), shape, tmp_path / "p")
    assert verdict.outcome == outcome, verdict.reason


def test_the_overrun_of_verify_attn_is_named_by_line_buffer_and_distance(tmp_path: Path) -> None:
    fault = judged(case_named("verify_attn"), {"streams": 1, "q_len": 9, "prefix": 4096}, tmp_path / "p").fault
    assert fault is not None
    assert fault.caused is not None
    assert fault.caused.kernel == "verify_attn"
    assert fault.caused.line in line_with(str(fault.caused.file), "block_scores[static_cast")
    assert fault.caused.allocation is not None
    assert fault.caused.allocation.name == "scores"
    assert fault.caused.allocation.side == "after"
    assert fault.caused.allocation.distance < 36  # nine floats too many


@pytest.mark.parametrize("q_len", [9, 17, 33])
def test_on_real_pages_the_rows_of_verify_attn_overlap_and_the_result_is_wrong(q_len: int, tmp_path: Path) -> None:
    shape = {"streams": 1, "q_len": q_len, "prefix": 4096}
    case = case_named("verify_attn")
    assert judged(case, shape, tmp_path / "p", memory_model="hardware").outcome == "wrong"
    assert judged(case, shape, tmp_path / "unchecked", memory_model="hardware", check=False).outcome == "pass"


def test_bulk_tail_needs_a_newer_architecture_than_the_emulated_one() -> None:
    unmet = case_named("bulk_tail").requires.unmet(device="emulator", capability=80)
    assert unmet is not None
    assert "90" in unmet


def test_leaky_sweep_passes_alone_and_runs_out_of_memory_in_a_long_sequence(tmp_path: Path) -> None:
    case = case_named("leaky_sweep")
    shapes = all_shapes(case)
    assert judged(case, shapes[-1], tmp_path / "alone").outcome == "pass"
    facts = probed(case, shapes, tmp_path / "sequence")
    assert facts.result["error"]["number"] == 2
    assert 12 <= len(facts.result["steps"]) <= 18


# --- structures of public bugs: what holds first decides

FIELD: dict[str, list[tuple[str, str]]] = {
    "last_sample_offset": [("((B - 1) * T * H + (H - 1)) * 128 > 2 ** 31 - 1", "fault")],
    "grid_y_limit": [("rows * columns // 64 > 65535", "fault")],
    "padded_row_shared": [("next_pow2(head_dim) * itemsize > 512", "fault")],
    "head_dim_tile": [("(head_dim // 16) % 4 != 0", "fault"), ("head_dim % 16 != 0", "wrong")],
    "odd_length": [("length % 2 == 1 and samples >= 2", "fault")],
    "window_129_255": [("128 < batch < 256", "fault")],
    "between_graph_sizes": [("batch not in (1, 2, 4, 8, 16, 32)", "fault")],
    "position_past_table": [("prompt + output > 2048", "fault")],
    "odd_m_or_odd_k": [("M % 2 == 1 or K % 2 == 1", "fault")],
    "hang_on_ragged": [("nodes % 4 != 0", "hang"), ("nodes * width > 100", "fault")],
}


def expected_outcome(name: str, shape: Shape) -> str:
    return next((outcome for rule, outcome in FIELD[name] if holds(rule, shape)), "pass")


@pytest.mark.parametrize("name", FIELD)
def test_a_field_case_fails_by_its_rule(name: str, tmp_path: Path) -> None:
    case = case_named(name)
    shapes = all_shapes(case)
    expected = [expected_outcome(name, shape) for shape in shapes]
    first = next(index for index, outcome in enumerate(expected) if outcome != "pass")
    kinds = [expected.index(outcome) for outcome in sorted(set(expected))]
    drawn = np.random.default_rng(len(name)).permutation(len(shapes))[:1].tolist()
    chosen = sorted({max(first - 1, 0), first, *kinds, *drawn})
    verdicts = judged_all(case, [shapes[index] for index in chosen], tmp_path)
    assert [verdict.outcome.value for verdict in verdicts] == [expected[index] for index in chosen]


def test_head_of_each_field_sweep_is_the_first_failing_shape_its_case_names() -> None:
    firsts = {
        "last_sample_offset": {"B": 16, "T": 17477, "H": 64},
        "grid_y_limit": {"rows": 1024, "columns": 4096},
        "padded_row_shared": {"head_dim": 160, "itemsize": 4},
        "head_dim_tile": {"head_dim": 8, "rows": 64},
        "odd_length": {"length": 3, "samples": 2},
        "window_129_255": {"batch": 129, "beam": 1},
        "between_graph_sizes": {"batch": 3},
        "position_past_table": {"prompt": 1900, "output": 256},
        "odd_m_or_odd_k": {"M": 1, "K": 1, "N": 8},
        "hang_on_ragged": {"nodes": 1, "width": 1},
    }
    for name, first in firsts.items():
        assert next(s for s in all_shapes(case_named(name)) if expected_outcome(name, s) != "pass") == first
