"""Every recorded run of a planted fault gives the answer that its source code deserves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import recordings
import yaml

from cudadiag.evidence import Expectations, driver_log, from_json, judge, read, to_json
from cudadiag.evidence.core import read_core
from cudadiag.evidence.reading import Reading
from cudadiag.model import Caused, Outcome, Verdict

EXPECTED = yaml.safe_load((Path(__file__).parent / "expected.yaml").read_text())
ANSWERS = recordings.answers(EXPECTED)
CORES = sorted(name.split("/")[1] for name in recordings.files() if name.endswith("flagcore/core.gpu"))


def rendered(verdict: Verdict, reading: Reading) -> str:
    """A verdict as the table writes it."""
    words = [verdict.outcome.value]
    fault = verdict.fault
    if fault is not None:
        words.append(fault.kind.value)
        if fault.number is not None:
            words.append(f"{fault.name}={fault.number}")
        if fault.noticed and (fault.noticed.call or fault.noticed.line):
            words.append(f"noticed {fault.noticed.call or '-'}@{fault.noticed.line or '-'}")
        if fault.caused:
            words.append(rendered_cause(fault.caused))
    if reading.sanitizer:
        words.append(f"health {reading.sanitizer.health}")
    return " ".join(words)


def rendered_cause(caused: Caused) -> str:
    text = f"caused {caused.kernel or '-'}:{caused.line or '-'}"
    text += f"+{caused.pc:#x}" if caused.pc is not None else ""
    if caused.thread and caused.block:
        thread, block = (",".join(map(str, each)) for each in (caused.thread, caused.block))
        text += f" thread ({thread}) block ({block})"
    text += f" {caused.access} {caused.space or '-'} {caused.size}" if caused.access else ""
    near = caused.allocation
    if near:
        text += f" {near.side} allocation of {near.size}" + (f" by {near.distance}" if near.distance < 1000 else "")
    return text


def test_the_table_covers_every_run_and_nothing_else() -> None:
    assert set(ANSWERS) == set(recordings.runs())
    assert len(ANSWERS) == 376


@pytest.mark.parametrize(("fault", "observer"), recordings.runs())
def test_a_run_gets_the_answer_its_source_deserves(fault: str, observer: str) -> None:
    reading = read(recordings.run_files(fault, observer))
    verdict = judge(recordings.run_facts(fault, observer), reading, recordings.expectations(observer))
    assert rendered(verdict, reading) == ANSWERS[fault, observer]
    assert verdict.reason


def test_no_answer_blames_another_kernel_or_line_than_the_source() -> None:
    for fault, rows in EXPECTED.items():
        kernel, _, line = rows["truth"].partition(":")
        for observers, answer in rows.items():
            blamed = re.search(r"caused (\S+?):(\d+|-)", answer)
            if blamed and observers != "truth":
                assert blamed[1] == kernel, fault
                assert blamed[2] in (line, "-"), fault


def test_every_guilty_kernel_is_named_with_its_line_by_some_observer() -> None:
    """Except where the recording has no witness: jumps that hang, and an overrun into a neighbour without padding."""
    silent = {
        fault
        for fault, rows in EXPECTED.items()
        if rows["truth"] != "none" and not any(f"caused {rows['truth']}" in answer for answer in rows.values())
    }
    assert silent == {"bad_pc_data", "bad_pc_low", "oob_near"}


def test_leaks_are_faults_only_when_asked_for() -> None:
    files, facts = recordings.run_files("leak", "memcheck"), recordings.run_facts("leak", "memcheck")
    asked = judge(facts, read(files), Expectations(observer="memcheck", leaks=True))
    assert asked.fault is not None
    assert asked.fault.kind == "leak"
    assert judge(facts, read(files), Expectations(observer="memcheck")).outcome is Outcome.PASS


FAILED = [("oom", "out-of-memory"), ("double_free", "other-cuda"), ("null", "out-of-bounds")]


@pytest.mark.parametrize(("fault", "kind"), FAILED)
def test_what_a_failed_program_leaves_unfreed_is_no_leak(fault: str, kind: str) -> None:
    files, facts = recordings.run_files(fault, "memcheck"), recordings.run_facts(fault, "memcheck")
    report = read(files).sanitizer
    assert report is not None
    assert any(record.is_leak for record in report.records)
    asked = judge(facts, read(files), Expectations(observer="memcheck", leaks=True))
    assert asked.fault is not None
    assert asked.fault.kind == kind


def test_xml_and_text_of_one_run_agree_in_every_recording() -> None:
    for fault, observer in recordings.runs():
        report = read(recordings.run_files(fault, observer)).sanitizer
        if report is not None:
            assert report.disagreements == (), (fault, observer)
            assert report.unknown == {}, (fault, observer)


def test_repeats_in_many_threads_are_folded_with_their_count() -> None:
    report = read(recordings.run_files("int32_overflow", "memcheck")).sanitizer
    assert report is not None
    found = [record for record in report.records if not record.is_api]
    assert [(record.kernel, record.count) for record in found] == [("block_stride_i32", 8)]
    assert (report.errors, report.not_printed) == (4212, 4204)


def test_a_reading_survives_the_ledger() -> None:
    for fault, observer in recordings.runs():
        reading = read(recordings.run_files(fault, observer))
        line = json.dumps(to_json(reading))
        assert from_json(json.loads(line)) == reading, (fault, observer)
        assert len(line) < 100_000


def gdb_answer(fault: str) -> dict[str, str]:
    """What cuda-gdb printed of a core: the name of the exception, its pc, function and line, and where it looked."""
    text = recordings.files()[f"runs/{fault}/flagcore/gdb.txt"].decode()
    found: dict[str, str] = {}
    for key, pattern in {
        "name": r"(?m)^CUDA Exception: (.*)$",
        "pc": r"The exception was triggered at PC (0x[0-9a-f]+)",
        "function": r"triggered at PC 0x[0-9a-f]+ +([^(]+)",
        "line": r"triggered at PC .*\(zoo\.cu:(\d+)\)",
        "block": r"\[Current focus .* block (\([\d,]+\))",
        "thread": r"\[Current focus .* thread (\([\d,]+\))",
        "frame": r"(?m)^#0  (0x[0-9a-f]+)",
        "lane": r"\[Current focus .* lane (\d+)",
        "sm": r"\[Current focus .* sm (\d+)",
    }.items():
        match = re.search(pattern, text)
        if match:
            found[key] = match[1].strip()
    return found


@pytest.mark.parametrize("fault", CORES)
def test_a_core_file_says_what_cuda_gdb_says(fault: str) -> None:
    told = gdb_answer(fault)
    found = read_core(recordings.files()[f"runs/{fault}/flagcore/core.gpu"]).exceptions[0]
    spaced = {"thread": found.thread, "block": found.block}
    for key, value in spaced.items():
        assert told.get(key) == (str(value).replace(" ", "") if value else None)
    if "name" in told:
        assert (found.name, hex(found.pc or 0), found.function) == (told["name"], told["pc"], told["function"])
        assert str(found.line) == told["line"]
        assert found.pc_is_exact
    else:  # cuda-gdb names no exception for an assert and for a trap, and knows only where the threads stood
        assert fault in ("assert", "trap")
        assert found.pc == int(told["frame"], 16)
    if "sm" in told:
        assert (str(found.sm), str(found.lane)) == (told["sm"], told["lane"])


def test_a_core_of_a_kernel_that_is_gone_names_it_where_cuda_gdb_crashes() -> None:
    assert "terminate called" in recordings.files()["runs/late_malloc/flagcore/gdb.txt"].decode()
    found = read_core(recordings.files()["runs/late_malloc/flagcore/core.gpu"])
    assert [(e.name, e.kernel, e.line, e.offset, e.thread) for e in found.exceptions] == [
        ("Warp Illegal Address", "store_at", 16, 0xC0, None)
    ]


def test_a_core_shows_the_callers_of_a_device_function() -> None:
    found = read_core(recordings.files()["runs/stack_overflow/flagcore/core.gpu"]).exceptions[0]
    assert (found.kernel, found.function) == ("recurse", "deep")
    assert [(frame.function, frame.line) for frame in found.frames] == [("deep", 30)] * 3 + [("recurse", 31)]


def test_a_core_names_grid_block_and_device() -> None:
    found = read_core(recordings.files()["runs/shared_oob_near/flagcore/core.gpu"])
    kernel = found.kernels[0]
    assert (kernel.name, kernel.grid, kernel.block) == ("shared_oob", (1, 1, 1), (128, 1, 1))
    assert found.devices == ("NVIDIA H200 (sm_90)",)
    assert "driver 580.159, CUDA 13.0" in found.notes
    assert found.exceptions[0].lanes == 32


def test_the_driver_log_of_a_program_that_ignores_errors_makes_it_a_fault() -> None:
    text = recordings.files()["pages-and-driver-log.txt"]
    log = text[text.index(b"== late_unchecked") : text.index(b"== oob_far")]
    calls = [entry.call for entry in driver_log(log) if entry.is_error]
    assert calls == ["cuCtxSynchronize_v2", "cuLaunchKernel", "cuCtxSynchronize_v2"]
    files = {**recordings.run_files("late_unchecked", "plain"), "driver_log": log}
    verdict = judge(recordings.run_facts("late_unchecked", "plain"), read(files), Expectations(observer="plain"))
    assert verdict.outcome is Outcome.FAULT
    assert verdict.fault is not None
    assert (verdict.fault.kind, verdict.fault.number) == ("illegal-address", 700)
    assert verdict.fault.noticed is not None
    assert verdict.fault.noticed.call == "cuCtxSynchronize_v2"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("grid_y", "Grid Dimension Y of 70000 exceeds maximum value of 65535"),
        ("smem_over", "Requested dynamic shared memory size of 61440 bytes exceeds maximum dynamic shared memory size"),
        ("smem_attr", "Requested dynamic shared memory size is larger than limit"),
    ],
)
def test_the_drivers_plain_words_become_the_detail_of_a_launch_limit(fault: str, words: str) -> None:
    text = recordings.files()["exit-codes-and-logs.txt"].decode()
    start = text.index(f"zoo {fault} {{'CUDA_LOG_FILE'")
    log = text[start : text.index("\n$", start)].replace("  err| ", "").encode()
    files = {**recordings.run_files(fault, "plain"), "driver_log": log}
    verdict = judge(recordings.run_facts(fault, "plain"), read(files), Expectations(observer="plain"))
    assert verdict.fault is not None
    assert verdict.fault.kind == "launch-limit"
    assert verdict.fault.detail is not None
    assert verdict.fault.detail.startswith(words)
