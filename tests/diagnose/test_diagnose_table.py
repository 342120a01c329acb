"""The table fault x observer is what the recordings say, and says of every planted fault what its source deserves."""

from __future__ import annotations

import re

import faults_by_observer
import pytest
import yaml

TABLE: dict[str, dict[str, str]] = yaml.safe_load(faults_by_observer.DATA.read_text())
ROOT = faults_by_observer.ROOT

# Planted faults with a device cause: the kind that some observer must give, and what its line of the source holds.
KINDS = {
    "assert": ("device-assert", "zoo.cu", "void device_assert"),
    "async_race": ("use-after-free", "zoo2.cu", "if (i < n) p[i] = 1.f;"),
    "async_use_after_free": ("out-of-bounds", "zoo2.cu", "if (i < n) p[i] = 1.f;"),
    "bad_fn_table": ("out-of-bounds", "zoo.cu", "void call_table"),
    "bad_pc_data": ("launch-timeout", "zoo.cu", "void call_raw"),
    "bad_pc_low": ("launch-timeout", "zoo.cu", "void call_raw"),
    "bad_pc_misaligned": ("misaligned-address", "zoo.cu", "void call_raw"),
    "bad_syncwarp": ("barrier", "zoo2.cu", "__syncwarp(0xffff0000u)"),
    "block_divergence": ("barrier", "zoo2.cu", "__syncthreads"),
    "cluster_gone": ("race", "zoo2.cu", "ld.shared::cluster.f32"),
    "cluster_range": ("out-of-bounds", "zoo2.cu", "ld.shared::cluster.f32"),
    "device_heap": ("out-of-bounds", "zoo.cu", "void heap"),
    "divergent_barrier": ("barrier", "zoo.cu", "void divergent_barrier"),
    "ends_early": ("out-of-bounds", "zoo2.cu", "out[threadIdx.x] = p[off + threadIdx.x];"),
    "free_twice": ("use-after-free", "zoo2.cu", "free(q);"),
    "hang": ("launch-timeout", "zoo.cu", "void spin"),
    "host_pointer": ("out-of-bounds", "zoo.cu", "void store_at"),
    "image_00": ("illegal-instruction", "patched.cu", "int i = blockIdx.x"),
    "image_ff": ("illegal-instruction", "patched.cu", "int i = blockIdx.x"),
    "inlined": ("out-of-bounds", "zoo2.cu", "return p[row * cols + threadIdx.x];"),
    "int32_overflow": ("out-of-bounds", "zoo.cu", "void block_stride_i32"),
    "late_malloc": ("out-of-bounds", "zoo.cu", "void store_at"),
    "late_memcpy": ("out-of-bounds", "zoo.cu", "void store_at"),
    "late_unchecked": ("out-of-bounds", "zoo.cu", "void store_at"),
    "load_far": ("out-of-bounds", "zoo2.cu", "out[threadIdx.x] = p[off + threadIdx.x];"),
    "many_blocks": ("out-of-bounds", "zoo2.cu", "float v = p[at]; __syncthreads();"),
    "misaligned": ("misaligned-address", "zoo.cu", "void misaligned"),
    "null": ("out-of-bounds", "zoo.cu", "void store_at"),
    "oob_far": ("out-of-bounds", "zoo.cu", "void store_at"),
    "oob_near": ("out-of-bounds", "zoo.cu", "void off_by_one"),
    "race": ("race", "zoo.cu", "void race"),
    "shared_oob_far": ("out-of-bounds", "zoo.cu", "void shared_oob"),
    "shared_oob_near": ("out-of-bounds", "zoo.cu", "void shared_oob"),
    "stack_overflow": ("hardware-stack", "zoo.cu", "deep("),
    "template": ("out-of-bounds", "zoo2.cu", "p[off + i * blockDim.x + threadIdx.x] *= T(2);"),
    "template_near": ("out-of-bounds", "zoo2.cu", "p[off + i * blockDim.x + threadIdx.x] *= T(2);"),
    "trap": ("launch-failure", "zoo.cu", "__trap()"),
    "uninit": ("uninitialised-read", "zoo.cu", "void uninit"),
    "use_after_free": ("out-of-bounds", "zoo.cu", "void store_at"),
    "use_after_free_big": ("out-of-bounds", "zoo.cu", "void store_at"),
    "wrong_space": ("out-of-bounds", "zoo2.cu", "ld.global.f32"),
}
SILENT = {  # nobody sees these with the options recorded here; the page says why
    "heap_leak", "leak", "local_far", "no_cuda_work", "ok", "shared_uninit", "unused", "warp_hazard",
}  # fmt: skip
ASKED = {"heap_leak": "leak", "leak": "leak", "shared_uninit": "uninitialised-read:111", "warp_hazard": "race:92"}
NOT_DEVICE = {
    "double_free", "grid_y", "grid_zero", "host_abort", "host_exit3", "host_kill", "host_segv", "host_throw",
    "no_image", "oom", "oom_loop", "smem_attr", "smem_over", "too_many_threads",
}  # fmt: skip


def words(fault: str) -> list[str]:
    return [word for observer, word in TABLE[fault].items() if observer != "agreement"]


def test_the_page_and_the_data_are_what_the_recordings_say() -> None:
    for path, text in faults_by_observer.made().items():
        assert path.read_text() == text, f"{path.name}: run tests/diagnose/faults_by_observer.py"


def test_every_recorded_fault_is_accounted_for() -> None:
    assert set(TABLE) == set(KINDS) | SILENT | NOT_DEVICE


@pytest.mark.parametrize("fault", KINDS)
def test_some_observer_gives_the_right_kind_and_the_guilty_line(fault: str) -> None:
    kind, source, text = KINDS[fault]
    lines = {int(m[1]) for word in words(fault) if (m := re.fullmatch(rf"{kind}:(\d+)", word))}
    assert lines, TABLE[fault]
    rows = (ROOT / "tests/gpu" / source).read_text().splitlines()
    assert any(text in rows[line - 1] for line in lines), [rows[line - 1] for line in lines]


@pytest.mark.parametrize("fault", sorted(SILENT))
def test_what_nobody_sees_passes_or_is_not_said(fault: str) -> None:
    assert set(words(fault)) <= {"pass", "?"}


def test_what_only_asking_or_a_newer_tool_tells_is_told() -> None:
    assert {fault: told for (fault, _), told in faults_by_observer.asked().items()} == ASKED
    lines = (ROOT / "tests/gpu/zoo2.cu").read_text().splitlines()
    assert "out[threadIdx.x] = s[threadIdx.x];" in lines[110]
    assert "s[threadIdx.x] = threadIdx.x;" in lines[91]


def test_an_end_that_nobody_waited_for_is_not_masked() -> None:
    assert TABLE["ends_early"]["agreement"] == "differs with blocking, in one run each"


def test_stores_that_a_tool_swallows_are_reported_as_masked() -> None:
    for fault in ("oob_far", "null", "use_after_free_big", "host_pointer", "late_malloc"):
        assert TABLE[fault]["agreement"].startswith("masked by initcheck, coredump"), fault
    assert "masked by initcheck" in TABLE["late_memcpy"]["agreement"]


def test_what_one_tool_alone_finds_is_reported_as_such() -> None:
    alone = {
        "oob_near": "memcheck",
        "template_near": "memcheck",
        "uninit": "initcheck",
        "divergent_barrier": "synccheck",
    }
    for fault, observer in alone.items():
        assert TABLE[fault]["agreement"] == f"only under {observer}"


def test_a_pass_somewhere_never_hides_a_failure_elsewhere() -> None:
    for fault in TABLE:
        failing = [word for word in words(fault) if word not in ("pass", "?")]
        assert faults_by_observer.agreement(fault).outcome.is_failure == bool(failing), fault
