"""The outputs people read, as snapshots made by hand: a change here is a change of what users see."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click
import pytest
from tests_report_probes import judged

from cudadiag.model import Allocation, Axis, Caused, Fault, FaultKind, Noticed, Outcome, Sweep
from cudadiag.report.fault import allocation_words, fault_lines, fault_words
from cudadiag.report.grid import grid_lines
from cudadiag.report.source import source_lines
from cudadiag.report.style import bytes_words, printable, seconds_words, shape_words
from cudadiag.report.table import InOrder, SweepTable
from cudadiag.session.judged import Judged


def plain(lines: list[str]) -> str:
    return "\n".join(click.unstyle(line) for line in lines)


SCRATCH = Allocation(address=0x7F0000000000, size=294912, distance=36, side="after", name="scores")
FAULT = Fault(
    kind=FaultKind.OUT_OF_BOUNDS,
    name="CUDA_ERROR_ILLEGAL_ADDRESS",
    number=700,
    noticed=Noticed(call="cuCtxSynchronize", text="an illegal memory access was encountered"),
    caused=Caused(
        kernel="verify_attn",
        file="verify_attn.cu",
        line=4,
        block=(1, 0, 0),
        thread=(3, 0, 0),
        access="write",
        space="global",
        size=4,
        address=0x7F0000048024,
        allocation=SCRATCH,
    ),
    found_by="memcheck",
)


def test_a_fault_in_full(tmp_path: Path) -> None:
    source = tmp_path / "verify_attn.cu"
    source.write_text("one\ntwo\nthree\nscores[i] = x;\nfive\nsix\nseven\n")
    assert plain(fault_lines(FAULT, [str(source)])) == textwrap.dedent(
        """\
        out-of-bounds, CUDA_ERROR_ILLEGAL_ADDRESS (700)
          noticed  by cuCtxSynchronize "an illegal memory access was encountered"
          caused   in verify_attn at verify_attn.cu:4, write of 4 B in global memory at 0x7f0000048024, {where}
          found by memcheck
              2 | two
              3 | three
            > 4 | scores[i] = x;
              5 | five
              6 | six"""
    ).replace("{where}", "35 B past the end of scores (288.0 KiB), thread (3,0,0) of block (1,0,0)")


def test_a_fault_in_one_line() -> None:
    assert fault_words(FAULT) == (
        "out-of-bounds, CUDA_ERROR_ILLEGAL_ADDRESS (700); noticed by cuCtxSynchronize; caused in verify_attn at "
        "verify_attn.cu:4, write of 4 B in global memory, 35 B past the end of scores (288.0 KiB)"
    )


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    fault = Fault(FaultKind.ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", 700, Noticed(call="cudaMemcpy", line=38))
    assert plain(fault_lines(fault)) == textwrap.dedent(
        """\
        illegal-address, CUDA_ERROR_ILLEGAL_ADDRESS (700)
          noticed  by cudaMemcpy at line 38
          caused   (not known: `cudadiag sanitize` looks for it)"""
    )


@pytest.mark.parametrize(
    ("allocation", "words"),
    [
        (Allocation(16, 64, 1, "before", "q"), "1 B before the start of q (64 B)"),
        (Allocation(0x10, 2048, 0, "inside", None), "inside the allocation at 0x10 (2.0 KiB)"),
        (Allocation(16, 64, 8, "after", "q", "freed"), "7 B past the end of q (64 B, already freed)"),
        (Allocation(16, 64, 1, "after", "q"), "right at the end of q (64 B)"),
    ],
)
def test_where_an_address_lies(allocation: Allocation, words: str) -> None:
    assert allocation_words(allocation) == words


SWEEP = Sweep(
    (Axis("streams", (1, 8)), Axis("q", (9,)), Axis("prefix", (256, 4096))),
    ((1, 9, 256), (1, 9, 4096), (8, 9, 256)),
)


def test_the_grid() -> None:
    seen = {0: {Outcome.PASS}, 1: {Outcome.FAULT, Outcome.PASS}, 2: {Outcome.HANG}}
    assert plain(grid_lines(SWEEP, seen)) == (
        "streams q  prefix\n            256 4096\n      1 9     .    ~\n      8 9     H"
    )  # the combination that is not legal stays empty


def test_a_shape_that_passed_too_seldom_has_a_sign_of_its_own() -> None:
    seen = {0: {Outcome.PASS}, 1: {Outcome.FAULT, Outcome.PASS}, 2: {Outcome.PASS}}
    assert plain(grid_lines(SWEEP, seen, too_few={0, 1})).splitlines()[2:] == [
        "      1 9     ,    ~",
        "      8 9     .",
    ]


def test_a_grid_too_large_to_read_is_left_out() -> None:
    values = tuple(range(100))
    assert grid_lines(Sweep((Axis("n", values),), tuple((v,) for v in values)), {}) == []


def test_a_source_line_is_taken_by_name_only_where_one_file_fits(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "k.cu").write_text("x\n" * 9)
    both = [str(tmp_path / folder / "k.cu") for folder in ("a", "b")]
    assert source_lines("/elsewhere/k.cu", 3, both) == []
    assert len(source_lines("/elsewhere/k.cu", 3, both[:1])) == 5
    assert source_lines("/elsewhere/k.cu", 99, both[:1]) == []
    assert source_lines("/elsewhere/k.cu", 0, both[:1]) == []


def test_rows_of_a_sweep_line_up() -> None:
    table = SweepTable(SWEEP, timed=True)
    rows = [
        table.header(),
        table.row(judged(0, SWEEP, us=539.3, reference_s=0.0125)),
        table.row(judged(1, SWEEP, Outcome.HANG)),
    ]
    assert plain(rows) == (
        "streams  q  prefix      us/call    reference  outcome\n"
        "      1  9     256        539.3      12500.0  pass\n"
        "      1  9    4096            -            -  hang        because (probe 2)"
    )


def test_rows_that_end_early_wait_for_their_turn() -> None:
    order = InOrder(repeat=2)
    probes = [judged(index, SWEEP) for index in (1, 0, 2, 0, 1)]
    given: list[list[int | None]] = [[j.line.index for j in order.add(probe)] for probe in probes]
    assert given == [[], [0], [], [0, 1], [1, 2]]
    assert order.rest() == []


def test_small_words() -> None:
    assert shape_words({"a": True, "b": 1.0, "c": "x y", "d": 2**70}) == f"a=true b=1.0 c=x y d={2**70}"
    assert [bytes_words(n) for n in (0, 1023, 1024, 5 << 30)] == ["0 B", "1023 B", "1.0 KiB", "5.0 GiB"]
    assert [seconds_words(s) for s in (0.0021, 3.44, 125.0)] == ["2 ms", "3.4 s", "2 min 5 s"]
    assert printable("a\x1b[2Jb\tc\x00\u202e") == "a\\x1b[2Jb\tc\\x00\\x202e"


def test_a_judged_probe_needs_no_device_to_be_printed() -> None:
    probe: Judged = judged(0, SWEEP)
    assert probe.us_per_call is None
