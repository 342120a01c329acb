"""Running warps of a core file: one of each place, with how many stand there, so that no place is left out unsaid."""

from __future__ import annotations

import struct

import pytest
import recordings
from test_core import built_core

from cudadiag.evidence import Reading, from_json, to_json
from cudadiag.evidence.core import read_core
from cudadiag.evidence.core.reader import MAX_RUNNING


def of_warps(pcs: list[int]) -> bytes:
    """One block of warps of one lane each, that stand at these addresses."""
    sm = struct.pack("<IIIIQIIIIQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    grid = struct.pack("<7Q12I", 2, 0, 0, 0x5000, 0, 0, 0, 0, 0, 2, 1, 1, 1, 1, 32 * len(pcs), 1, 1, 0, 0) + bytes(4)
    block = struct.pack("<QIII", 2, 0, 0, 0) + bytes(4)
    warps = b"".join(struct.pack("<QIIIIII", 0, n, 1, 1, 0, 0, 0) for n in range(len(pcs)))
    lanes = [struct.pack("<QQIIIIIII", pc, 0, 0, 32 * n, 0, 0, 0, 0, 0) + bytes(12) for n, pc in enumerate(pcs)]
    rows = [(15, lane, 56, 4, n) for n, lane in enumerate(lanes)]
    return built_core([(11, sm, 48, 0, 0), (12, grid, 108, 0, 0), (13, block, 24, 1, 0), (14, warps, 32, 3, 0), *rows])


def test_a_place_behind_32_warps_that_stand_alike_is_kept() -> None:
    reading = read_core(of_warps([0x5010] * 40 + [0x5020] * 2))
    assert [(warp.pc, warp.warps) for warp in reading.running] == [(0x5010, 40), (0x5020, 2)]
    assert not any("running" in note for note in reading.notes)
    assert from_json(to_json(Reading(core=reading))).core == reading


def test_more_places_than_are_kept_are_said() -> None:
    reading = read_core(of_warps([0x5000 + 16 * n for n in range(MAX_RUNNING + 5)]))
    assert len(reading.running) == MAX_RUNNING
    assert f"running warps stand at {MAX_RUNNING + 5} places; the first {MAX_RUNNING} are kept" in reading.notes


@pytest.mark.parametrize(("fault", "warps"), [("int32_overflow", 209), ("shared_oob_far", 3), ("bad_pc_low", 1)])
def test_recorded_warps_are_counted_by_place(fault: str, warps: int) -> None:
    (standing,) = read_core(recordings.files(recordings.AGAIN)[f"runs/{fault}/coredump/core.gpu"]).running
    assert standing.warps == warps
