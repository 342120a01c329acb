"""Kernels that do not end: hangs, limits of time and fuel, deadlocks at a barrier."""

from __future__ import annotations

from typing import Any

import numpy as np
from emulated import launch


def zeros(n: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(n, dtype)


def test_a_hang_is_proven_and_names_the_lines() -> None:
    source = 'extern "C" __global__ void k(volatile int* flag) {\n while (*flag == 0) {}\n}'
    ran = launch(source, "k", 1, 1, [("flag", zeros(1, np.int32))])
    assert ran.error.number == 702
    record = ran.records[0]
    assert record["kind"] == "launch-timeout"
    assert record["lanes"][0]["line"] == 2
    assert "proven" in record["message"]


def test_an_endless_loop_without_memory_ends_at_the_wall_limit() -> None:
    source = (
        'extern "C" __global__ void k(int* o, int n) {\n unsigned x = n;\n while (x != 1) x = x * 3 + (x >> '
        "7 & 8) + 2;\n o[0] = x; }"
    )
    ran = launch(source, "k", 1, 32, [("o", zeros(1, np.int32)), ("int32", 8)], wall_limit_s=0.5)
    assert ran.error.number == 702
    assert ran.records[0]["line"] == 3


def test_fuel_ends_a_long_loop_at_the_same_place_every_time() -> None:
    source = (
        'extern "C" __global__ void k(int* o, int n) {\n unsigned x = n;\n while (x != 1) x = x * 3 + (x >> '
        "7 & 8) + 2;\n o[0] = x; }"
    )
    ran = launch(source, "k", 1, 32, [("o", zeros(1, np.int32)), ("int32", 8)], fuel=3)
    assert ran.error.number == 702


def test_deadlock_at_a_barrier_names_each_side() -> None:
    source = """extern "C" __global__ void k(int* o) {
      if (threadIdx.x < 32) { asm volatile("bar.sync 1, 64;" ::: "memory"); o[threadIdx.x] = 1; }
      else { asm volatile("bar.sync 2, 64;" ::: "memory"); o[threadIdx.x] = 2; }
    }"""
    ran = launch(source, "k", 1, 64, [("o", zeros(64, np.int32))])
    assert ran.error.number == 702
    record = ran.records[0]
    assert record["kind"] == "barrier"
    assert {lane["line"] for lane in record["lanes"]} == {2, 3}
    assert "deadlock" in record["message"]


def test_threads_that_left_count_as_arrived() -> None:
    source = (
        'extern "C" __global__ void k(float* out) { if (threadIdx.x < 16) { __syncthreads(); '
        "} out[threadIdx.x] = 1.f; }"
    )
    assert launch(source, "k", 1, 32, [("out", zeros(32))]).error is None
