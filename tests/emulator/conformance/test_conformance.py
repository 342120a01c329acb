"""The emulated device against what a real GPU gave for the same PTX, kernel by kernel and bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conf_bounds import BOUNDS, bound
from conf_case import Case
from conf_compare import lanes, within
from conf_recording import Recording, find, load
from conf_run import run_case
from conf_table import table

from harness.devices.emulator import EmulatedDevice

HERE = Path(__file__).resolve().parent
CASES = table()


@pytest.fixture(scope="session")
def recording() -> Recording:
    path = find(HERE)
    if path is None:
        pytest.fail("there is no recording of a real GPU (h200.*.xz) beside this test: run record.py on one")
    return load(path)


@pytest.fixture(scope="module")
def devices() -> Iterator[list[EmulatedDevice]]:
    """One device for all kernels; a test that breaks it leaves a fresh one."""
    held = [EmulatedDevice(workers=1, cache=False, wall_limit_s=30)]
    yield held
    held[0].close()


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_gives_the_bits_of_the_gpu(name: str, recording: Recording, devices: list[EmulatedDevice]) -> None:
    case = CASES[name]
    recorded = recording.cases.get(name)
    assert recorded is not None, f"{name} is not in the recording: run record.py on a GPU"
    assert recorded.fingerprint == case.fingerprint(), f"the recording is of another {name}: run record.py on a GPU"
    assert not recorded.error, f"the GPU could not run it: {recorded.error}"
    try:
        outputs = run_case(devices[0], case, recorded.ptx)
    except Exception:
        devices[0] = EmulatedDevice(workers=1, cache=False, wall_limit_s=30)
        raise
    for number, (got, want, kind) in enumerate(zip(outputs, recorded.outputs, case.kinds, strict=True)):
        compare(case, number, got, want, kind)


def compare(case: Case, number: int, got: np.ndarray, want: np.ndarray, kind: str) -> None:
    limit = bound(case.family)
    fine = within(got, want, kind, limit.ulp, limit.absolute)
    if limit.any_nan:
        floats = np.dtype(f"f{got.dtype.itemsize}")
        fine |= np.isnan(got.view(floats)) & np.isnan(want.view(floats))
    bad = np.flatnonzero(~fine)
    if len(bad) <= limit.outside:
        return
    row = int(bad[0]) * len(got) // len(lanes(got, kind)[0])
    values = ", ".join(f"{array[row]:#x}" for array in case.inputs() if row < len(array))
    what = case.labels[number] if case.labels else case.name
    pytest.fail(f"{what}: {len(bad)} of {len(fine)} differ, first ({values}): {got[row]:#x}, on the GPU {want[row]:#x}")


def test_the_table_is_large_enough_and_every_bound_is_used() -> None:
    families = {case.family for case in CASES.values()}
    assert len(CASES) >= 300
    assert set(BOUNDS) <= families
    assert sum(case.arch == "compute_80" for case in CASES.values()) >= 300
