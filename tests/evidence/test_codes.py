"""The tables of CUDA errors and Xids, against CUDA's own enumerations, and what `lookup` finds in them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cudadiag.evidence.codes import (
    CudaCode,
    codes_by_old_number,
    codes_by_text,
    cuda_codes,
    is_sticky,
    kind_of,
    lookup,
    xids,
)
from cudadiag.model import FaultKind


def test_the_table_holds_every_error_of_the_driver_and_the_runtime_by_its_number() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    runtime = pytest.importorskip("cuda.bindings.runtime")
    table = cuda_codes()
    for enum, field in ((driver.CUresult, "driver"), (runtime.cudaError_t, "runtime")):
        for member in enum:
            if int(member) != 0:
                assert getattr(table[int(member)], field) == member.name, member


def test_every_code_says_what_it_means_and_sticky_ones_have_a_kind() -> None:
    for code in cuda_codes().values():
        assert len(code.meaning) > 10, code
        assert code.sticky in ("yes", "no", "treat as yes")
        assert code.kind is not None or code.group == "status"
        if code.sticky == "yes" and code.kind is not FaultKind.OTHER_CUDA:
            assert code.causes or code.number in (911,), code


def test_the_sticky_codes_are_those_the_context_does_not_survive() -> None:
    sticky = {code.number for code in cuda_codes().values() if code.sticky == "yes"}
    assert {700, 702, 710, 714, 715, 716, 717, 718, 719} <= sticky
    assert not {1, 2, 9, 98, 201, 209, 400, 600, 701, 720} & sticky
    assert is_sticky(214)
    assert not is_sticky(123456)
    assert not is_sticky(None)


BEFORE_10_1 = {
    77: 700, 74: 716, 73: 715, 76: 718, 72: 714, 75: 717, 4: 719, 6: 702, 59: 710, 39: 214, 48: 209, 47: 200,
    11: 1, 8: 98, 30: 999, 7: 701,
}  # fmt: skip


@pytest.mark.parametrize(("old", "now"), BEFORE_10_1.items())
def test_numbers_from_before_cuda_10_1_lead_to_todays(old: int, now: int) -> None:
    assert codes_by_old_number()[old].number == now


def test_numbers_that_never_changed_have_no_old_number() -> None:
    assert cuda_codes()[2].old is None
    assert cuda_codes()[9].old is None


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("700", [700]),
        (" 700 ", [700]),
        ("error 700", [700]),
        ("cuda error: 77", [700]),
        ("cudaErrorIllegalAddress", [700]),
        ("CUDA_ERROR_ILLEGAL_ADDRESS", [700]),
        ("an illegal memory access was encountered", [700]),
        ("Misaligned Address", [716]),
        ("cuda_error_illegal_instruction", [715]),
        ("Xid 31", [31]),
        ("xid:31", [31]),
        ("Xid 99999", []),
        ("4", [4, 719]),
        ("31", [31, 31]),
        ("", []),
        ("no such thing", []),
        ("9" * 40, []),
    ],
)
def test_lookup_finds_by_number_name_text_and_xid(query: str, numbers: list[int]) -> None:
    assert [entry.number for entry in lookup(query)] == numbers


def test_a_bare_number_that_is_code_and_xid_gives_both_the_code_first() -> None:
    first, second = lookup("31")
    assert isinstance(first, CudaCode)
    assert not isinstance(second, CudaCode)


def test_part_of_a_name_finds_all_that_hold_it() -> None:
    assert {700, 715} <= {entry.number for entry in lookup("illegal")}
    assert 31 in {entry.number for entry in lookup("page fault")}


def test_kinds_of_numbers() -> None:
    assert kind_of(716) is FaultKind.MISALIGNED_ADDRESS
    assert kind_of(209) is FaultKind.NO_KERNEL_IMAGE
    assert kind_of(701) is FaultKind.LAUNCH_LIMIT
    assert kind_of(226) is FaultKind.ECC
    assert kind_of(424242) is FaultKind.OTHER_CUDA
    assert kind_of(None) is FaultKind.OTHER_CUDA


def test_the_xids_of_the_drivers_catalogue_are_there_and_say_whom_to_blame() -> None:
    assert {8, 13, 31, 43, 45, 48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140, 154, *range(144, 151)} <= set(xids())
    assert {x.blame for x in xids().values()} == {"application", "hardware", "driver", "consequence", "information"}
    assert xids()[31].blame == "application"
    assert xids()[79].kind is FaultKind.DEVICE_LOST


def test_cudas_texts_are_told_apart() -> None:
    assert codes_by_text()["an illegal memory access was encountered"].number == 700
    assert codes_by_text()["device kernel image is invalid"].number == 200


def test_the_tables_are_read_on_first_use_only() -> None:
    code = "import cudadiag.evidence, cudadiag.evidence.codes as c; print(c.cuda_codes.cache_info().misses)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["0"]
