"""The second recording: padding, text and XML of one run, driver logs, cores of many exceptions, dumps of hangs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import recordings
import yaml
from hypothesis import given
from hypothesis import strategies as st
from recordings import AGAIN, NEWER
from test_recorded import rendered

from cudadiag.evidence import judge, read
from cudadiag.evidence.core import read_core
from cudadiag.evidence.core.debugger import debugger_answer, opinion
from cudadiag.evidence.sanitizer import SanitizerReport

EXPECTED = yaml.safe_load((Path(__file__).parent / "expected-faults2.yaml").read_text())
ANSWERS = recordings.answers(EXPECTED)
CORES = sorted(tuple(name.split("/")[1:3]) for name in recordings.files(AGAIN) if name.endswith("core.gpu"))


def report_of(fault: str, observer: str) -> SanitizerReport:
    report = read(recordings.run_files(fault, observer, AGAIN)).sanitizer
    assert report is not None
    return report


def test_the_table_covers_every_run_and_nothing_else() -> None:
    assert set(ANSWERS) == set(recordings.runs(AGAIN))
    assert len(ANSWERS) == 486


@pytest.mark.parametrize(("fault", "observer"), recordings.runs(AGAIN))
def test_a_run_gets_the_answer_its_source_deserves(fault: str, observer: str) -> None:
    reading = read(recordings.run_files(fault, observer, AGAIN))
    verdict = judge(recordings.run_facts(fault, observer, AGAIN), reading, recordings.expectations(observer))
    assert rendered(verdict, reading) == ANSWERS[fault, observer]
    assert reading.sanitizer is None or reading.sanitizer.disagreements == ()
    assert reading.sanitizer is None or reading.sanitizer.unknown == {}
    assert reading.core_problem is None


def test_every_guilty_kernel_is_named_with_a_right_line_and_no_other_is() -> None:
    """Silent: an index the compiler took out, shared memory that this initcheck does not know, a warning only."""
    silent = set()
    for fault, rows in EXPECTED.items():
        kernel, _, lines = rows["truth"].rpartition(":")
        blamed = [
            re.search(r"caused (.+?):(\d+|-)(?=\+| |$)", answer) for name, answer in rows.items() if name != "truth"
        ]
        named = [(found[1].partition("<")[0], found[2]) for found in blamed if found and found[1] != "-"]
        assert {name for name, _ in named} <= {kernel.partition("<")[0]}, fault
        assert {line for _, line in named} <= {*lines.split(","), "-"}, fault
        if kernel and not any(line != "-" for _, line in named):
            silent.add(fault)
    assert silent == {"local_far", "shared_uninit", "warp_hazard"}


@pytest.mark.parametrize(("fault", "line"), [("hang", 32), ("bad_pc_low", 29), ("bad_pc_data", 29)])
def test_a_hanging_kernel_asked_for_a_core_is_found_with_its_line(fault: str, line: int) -> None:
    """Jumps into data hang without any record; a core asked for through the pipe still shows where."""
    found = read_core(recordings.files(AGAIN)[f"runs/{fault}/coredump/core.gpu"])
    assert found.exceptions == ()
    assert [standing.line for standing in found.running] == [line]


@pytest.mark.parametrize(("fault", "observer"), CORES)
def test_a_core_file_agrees_with_cuda_gdb(fault: str, observer: str) -> None:
    reading = read_core(recordings.files(AGAIN)[f"runs/{fault}/{observer}/core.gpu"])
    text = recordings.files(AGAIN)[f"runs/{fault}/{observer}/gdb.txt"].decode()
    assert debugger_answer(text) is not None
    assert opinion(reading, text) == "cuda-gdb agrees"


@pytest.mark.parametrize("change", ["PC 0x", "thread (0,0,0)", "Exception: Warp"])
def test_a_debugger_that_says_otherwise_is_quoted(change: str) -> None:
    core = read_core(recordings.files(AGAIN)["runs/misaligned/coredump/core.gpu"])
    text = recordings.files(AGAIN)["runs/misaligned/coredump/gdb.txt"].decode()
    other = {"PC 0x": "PC 0x1", "thread (0,0,0)": "thread (9,0,0)", "Exception: Warp": "Exception: Cluster"}[change]
    assert opinion(core, text.replace(change, other)).startswith("cuda-gdb says otherwise: ")


@given(st.text())
def test_any_words_of_a_debugger_are_read(text: str) -> None:
    core = read_core(recordings.files(AGAIN)["runs/misaligned/coredump/core.gpu"])
    assert opinion(core, text).startswith("cuda-gdb ")
    assert opinion(core, "") == "cuda-gdb says nothing of the core file"


def test_the_exceptions_met_with_in_the_recording_are_all_known_by_name() -> None:
    names = {
        each.name for fault, observer in CORES
        for each in read_core(recordings.files(AGAIN)[f"runs/{fault}/{observer}/core.gpu"]).exceptions
    }  # fmt: skip
    assert names == {
        "Warp Illegal Instruction", "Warp Out-of-range Address", "Warp Misaligned Address", "Warp Assert",
        "Warp Invalid Address Space", "Warp Invalid PC", "Warp Illegal Address", "Cluster Block Not Present",
        "Trace/breakpoint trap",
    }  # fmt: skip


def test_an_inlined_functions_fault_shows_the_chain_of_calls() -> None:
    (core, *_) = read_core(recordings.files(AGAIN)["runs/inlined/coredump/core.gpu"]).exceptions
    assert (core.kernel, core.function, core.line) == ("inlined", "row_value", 18)
    assert [frame.line for frame in core.frames] == [23, 27]
    record = report_of("inlined", "memcheck").records[0]
    assert (record.kernel, record.function, record.line) == ("inlined", "row_value", 18)
    assert [frame.line for frame in record.frames] == [23, 27]


def test_a_fault_in_a_header_of_the_toolkit_is_put_at_the_users_line() -> None:
    record = report_of("bad_syncwarp", "synccheck").records[0]
    assert (record.function, record.line) == ("__syncwarp", 97)
    assert record.file is not None
    assert record.file.endswith("zoo2.cu")
    core = read_core(recordings.files(AGAIN)["runs/bad_syncwarp/coredump/core.gpu"]).exceptions[0]
    assert (core.kernel, core.function, core.line, core.thread) == ("bad_syncwarp", "__syncwarp", 97, (16, 0, 0))


def test_padding_finds_the_overrun_that_lands_in_a_neighbour() -> None:
    near = report_of("oob_near", "memcheck").records[0].allocation
    assert near is not None
    assert (near.side, near.distance, near.size) == ("after", 1, 4096)


def test_hazards_of_xml_and_text_carry_both_threads() -> None:
    record = next(r for r in report_of("race", "hazards").records if r.tool_kind == "Hazard")
    assert (record.thread, record.access, record.other_access, record.level) == ((255, 0, 0), "write", "read", "Error")
    assert record.other is not None
    assert record.other.line == 33


def test_unused_memory_is_a_note_and_leaves_the_run_clean() -> None:
    assert [record.is_advice for record in report_of("unused", "unused").records] == [True]


def test_a_tool_that_refused_its_options_did_not_run() -> None:
    verdict = judge(
        recordings.run_facts("template", "launches", AGAIN),
        read(recordings.run_files("template", "launches", AGAIN)),
        recordings.expectations("launches"),
    )
    assert verdict.outcome == "unresolved"
    assert "did not run" in verdict.reason


def test_host_frames_that_go_on_in_the_next_line_keep_their_module() -> None:
    frames = report_of("oob_far", "memcheck").records[0].host_frames
    assert {frame.module and frame.module.rpartition("/")[2] for frame in frames if frame.function == "main"} == {"zoo"}


def caused_at(answer: str) -> tuple[list[str], str | None]:
    """(outcome and kind, `race:33`) of a rendered answer."""
    place = re.search(r" caused (\S+?)[+ ]", answer)
    return answer.split()[:2], place[1] if place else None


@pytest.mark.parametrize(("fault", "observer"), recordings.runs(NEWER))
def test_a_newer_tool_names_the_same_kernel_and_line_and_sees_shared_memory(fault: str, observer: str) -> None:
    reading = read(recordings.run_files(fault, observer, NEWER))
    verdict = judge(recordings.run_facts(fault, observer, NEWER), reading, recordings.expectations(observer))
    got = rendered(verdict, reading)
    if observer == "allspaces":
        place = "shared_uninit:111+0xd0 thread (16,0,0) block (0,0,0) read shared 4"
        assert got == f"fault uninitialised-read caused {place} health ok"
    else:  # it may print another thread first, and count another allocation as the nearest
        assert caused_at(got) == caused_at(ANSWERS[fault, observer])
    assert reading.sanitizer is not None
    assert (reading.sanitizer.disagreements, reading.sanitizer.unknown) == ((), {})
