"""The traps between the rules of the table from facts to outcomes."""

from __future__ import annotations

import pytest
from judging import (
    CLEAN_REPORT,
    COMMAND,
    DONE,
    FINISHED,
    KERNEL,
    LINE_700,
    LOG_700,
    LOG_LAUNCH,
    MEMCHECK,
    PYTHON,
    asked,
    crumbs,
    error,
    fault_of,
)

from cudadiag.evidence import Expectations, Reading, decided
from cudadiag.evidence.core import CoreException, CoreReading
from cudadiag.model import FaultKind, Verdict
from harness.records import ProbeFacts, XidFacts

# A program that ignores its errors


def test_a_sticky_code_in_the_driver_log_is_a_fault_although_the_program_exits_0() -> None:
    rule, verdict = asked(ProbeFacts(exit_code=0), driver_log=LOG_700)
    assert rule == "sticky-code"
    assert "did not report" in verdict.reason
    assert fault_of(verdict).noticed.call == "cuCtxSynchronize_v2"  # type: ignore[union-attr]


def test_a_success_pattern_does_not_overrule_the_driver_log() -> None:
    expected = Expectations(success="done")
    assert asked(ProbeFacts(exit_code=0), expected, stdout=b"done\n", driver_log=LOG_700)[1].outcome == "fault"


def test_a_success_pattern_with_exit_0_overrules_a_printed_error() -> None:
    expected = Expectations(success="done")
    assert asked(ProbeFacts(exit_code=0), expected, stdout=b"done\n", stderr=LINE_700)[1].outcome == "pass"
    assert asked(ProbeFacts(exit_code=0), COMMAND, stdout=b"done\n", stderr=LINE_700)[1].outcome == "fault"


def test_out_of_memory_printed_over_a_sticky_code_is_the_sticky_code() -> None:
    verdict = asked(ProbeFacts(exit_code=1), stderr=b"CUDA out of memory\n", driver_log=LOG_700)[1]
    assert (fault_of(verdict).kind, fault_of(verdict).number) == ("illegal-address", 700)


def test_an_unchecked_launch_is_skipped_with_the_drivers_words_and_a_checked_one_a_fault() -> None:
    verdict = asked(ProbeFacts(exit_code=0), driver_log=LOG_LAUNCH)[1]
    assert "Grid Dimension Y of 70000 exceeds maximum value of 65535" in verdict.reason
    checked = asked(ProbeFacts(exit_code=2), driver_log=LOG_LAUNCH, stderr=b"CUDA error: invalid argument\n")[1]
    assert fault_of(checked).kind == "launch-limit"
    assert fault_of(checked).detail == "Grid Dimension Y of 70000 exceeds maximum value of 65535"


def test_code_1_of_a_call_that_is_no_launch_is_no_launch_limit() -> None:
    verdict = asked(ProbeFacts(exit_code=2), stderr=b"code=1 name=cudaErrorInvalidValue call=cudaFree(a)\n")[1]
    assert fault_of(verdict).kind == "other-cuda"


def test_not_ready_is_no_fault() -> None:
    assert asked(ProbeFacts(exit_code=0), stderr=b"cudaErrorNotReady: device not ready\n")[1].outcome == "pass"


# Out of memory, ours and others'


@pytest.mark.parametrize(
    ("free_gib", "asked_gib", "outcome"),
    [(139, None, "fault"), (20, None, "unresolved"), (20, 200, "fault"), (138.5, 10, "fault")],
)
def test_out_of_memory_is_a_fault_unless_others_held_it(free_gib: float, asked_gib: int | None, outcome: str) -> None:
    memory = {"total": 140 << 30, "free_before": int(free_gib * 2**30), "free_after": 0}
    result = {
        "memory": memory,
        **error(step="allocate", number=2, cuda_name="CUDA_ERROR_OUT_OF_MEMORY", call="cuMemAlloc"),
    }
    expected = Expectations(target="kernel", asked_bytes=asked_gib << 30 if asked_gib else None)
    facts = ProbeFacts(exit_code=1, breadcrumbs=crumbs("import", "context", "allocate"), result=result)
    verdict = asked(facts, expected)[1]
    assert verdict.outcome == outcome
    assert verdict.fault is None or verdict.fault.kind == "out-of-memory"


# Hangs and ends


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_the_time_limit_under_a_tool_proves_no_hang(tool: str) -> None:
    facts = ProbeFacts(signal=9, timed_out=True, wall_s=30.0)
    assert (
        asked(facts, Expectations(observer=tool), sanitizer_log=b"========= COMPUTE-SANITIZER\n")[1].outcome
        == "unresolved"
    )


def test_the_time_limit_before_a_context_is_unresolved_for_workers_and_a_hang_for_commands() -> None:
    facts = ProbeFacts(signal=9, timed_out=True, wall_s=30.0, breadcrumbs=crumbs("import"))
    assert asked(facts, PYTHON)[1].outcome == "unresolved"
    assert asked(facts, COMMAND)[1].outcome == "hang"


@pytest.mark.parametrize("step", ["compile", "allocate", "check"])
def test_the_time_limit_while_no_kernel_runs_is_unresolved(step: str) -> None:
    facts = ProbeFacts(signal=9, timed_out=True, wall_s=30.0, breadcrumbs=crumbs("import", "context", step))
    verdict = asked(facts, KERNEL)[1]
    assert verdict.outcome == "unresolved"
    assert f"last step: {step}" in verdict.reason


def test_a_python_function_that_does_not_return_hangs() -> None:
    facts = ProbeFacts(signal=9, timed_out=True, wall_s=30.0, breadcrumbs=crumbs("import", "launch"))
    assert asked(facts, PYTHON)[1].outcome == "hang"


def test_the_time_limit_while_a_core_is_written_is_unresolved() -> None:
    text = b"[1] coredump: Starting GPU coredump generation\n[1] coredump: 20%...\n"
    facts = ProbeFacts(signal=9, timed_out=True, wall_s=25.0)
    verdict = asked(facts, Expectations(observer="coredump"), stderr=text)[1]
    assert verdict.outcome == "unresolved"
    assert "20 %" in verdict.reason


def test_a_fault_that_then_hangs_is_the_fault() -> None:
    facts = ProbeFacts(signal=9, timed_out=True, wall_s=30.0)
    assert asked(facts, stderr=LINE_700)[1].outcome == "fault"


def test_an_emulated_launch_that_had_to_be_ended_is_a_hang_with_its_place() -> None:
    record = {"kind": "barrier", "kernel": "k", "line": 12, "message": "threads wait at different barriers"}
    result = error(step="synchronise", number=702, cuda_name="CUDA_ERROR_LAUNCH_TIMEOUT", call="cuCtxSynchronize")
    verdict = asked(ProbeFacts(exit_code=1, device_records=(record,), result=result), KERNEL)[1]
    assert verdict.outcome == "hang"
    assert fault_of(verdict).caused.line == 12  # type: ignore[union-attr]


@pytest.mark.parametrize(("status", "name"), [(139, "SIGSEGV"), (134, "SIGABRT"), (136, "SIGFPE"), (132, "SIGILL")])
def test_a_shells_status_is_decoded_to_the_signal(status: int, name: str) -> None:
    verdict = asked(ProbeFacts(exit_code=status))[1]
    assert (fault_of(verdict).kind, fault_of(verdict).name) == ("host-signal", name)


def test_an_import_error_says_nothing_about_the_shape() -> None:
    text = (
        b'Traceback (most recent call last):\n  File "b.py", line 1, in <module>\n    import nope\n'
        b"ModuleNotFoundError: No module named 'nope'\n"
    )
    assert asked(ProbeFacts(exit_code=1), stderr=text)[1].outcome == "unresolved"
    late = ProbeFacts(
        exit_code=1, breadcrumbs=crumbs("import", "launch"), result=error(step="launch", type="ImportError", text="x")
    )
    assert asked(late, PYTHON)[1].outcome == "unresolved"


def test_sys_exit_in_a_python_function_is_judged_by_its_status() -> None:
    def ended(code: int) -> Verdict:
        result = error(step="launch", type="SystemExit", text=str(code), exit_code=code)
        return asked(ProbeFacts(exit_code=code, breadcrumbs=crumbs("import", "launch"), result=result), PYTHON)[1]

    assert fault_of(ended(3)).kind == "host-exit"
    assert ended(0).outcome == "unresolved"


def test_a_cuda_error_raised_in_python_is_known_by_its_words() -> None:
    text = "CUDA error: an illegal memory access was encountered"
    facts = ProbeFacts(
        exit_code=1,
        breadcrumbs=crumbs("import", "launch"),
        result=error(step="launch", type="AcceleratorError", text=text),
    )
    assert fault_of(asked(facts, PYTHON)[1]).number == 700


def test_a_traceback_gives_the_place_of_a_printed_cuda_error() -> None:
    text = (
        b'Traceback (most recent call last):\n  File "bench.py", line 31, in run\n    x.cpu()\n'
        b"RuntimeError: CUDA error: misaligned address\n"
    )
    noticed = fault_of(asked(ProbeFacts(exit_code=1), stderr=text)[1]).noticed
    assert noticed is not None
    assert (noticed.file, noticed.line, noticed.log_line) == ("bench.py", 31, 4)


def test_failing_hardware_of_another_device_blames_nothing_here() -> None:
    xid = XidFacts(True, ("NVRM: Xid (PCI:0000:42:00): 94, Contained: SM (0x1)",))
    for device_facts in ({"pci_bus_id": "0000:41:00"}, {}):
        facts = ProbeFacts(exit_code=2, device_facts=device_facts, xid=xid)
        assert asked(facts, stderr=LINE_700)[0] == "sticky-code"


def test_an_xid_of_the_program_becomes_the_detail_and_others_do_not() -> None:
    lines = (
        "NVRM: Xid (PCI:0000:41:00): 31, pid=9, name=other, Ch 08, MMU Fault: faulted @ 0x1_0000.",
        "NVRM: Xid (PCI:0000:41:00): 45, pid=7, name=bench, Ch 08",
        "NVRM: Xid (PCI:0000:41:00): 31, pid=7, name=bench, Ch 08, MMU Fault: faulted @ 0x7f29_5b8c9000.",
    )
    facts = ProbeFacts(exit_code=2, launch={"pid": 7}, xid=XidFacts(True, lines))
    fault = fault_of(asked(facts, stderr=LINE_700)[1])
    assert (fault.kind, fault.detail) == ("illegal-address", "Xid 31: Ch 08, MMU Fault: faulted @ 0x7f29_5b8c9000.")


def test_a_hang_with_a_core_of_the_running_kernel_names_its_place() -> None:
    standing = CoreException("running", FaultKind.OTHER_CUDA, kernel="spin", file="a.cu", line=3, offset=0x30)
    reading = Reading(core=CoreReading(running=(standing,)))
    facts = ProbeFacts(signal=9, timed_out=True, wall_s=30.0)
    verdict = decided(facts, reading, Expectations(observer="coredump"))[1]
    assert verdict.outcome == "hang"
    assert verdict.reason == "still running after 30.0 s in spin, a.cu:3"
    assert fault_of(verdict).caused.line == 3  # type: ignore[union-attr]


# Tools


def test_the_programs_own_end_counts_under_a_tool() -> None:
    facts = ProbeFacts(exit_code=86, inner_exit={"pid": 5, "exit_code": 7})
    assert fault_of(asked(facts, MEMCHECK, sanitizer_log=CLEAN_REPORT)[1]).number == 7
    crashed = ProbeFacts(exit_code=11, inner_exit={"pid": 5, "signal": 11})
    assert fault_of(asked(crashed, MEMCHECK, sanitizer_log=CLEAN_REPORT)[1]).name == "SIGSEGV"


def test_a_tools_own_status_is_not_the_programs() -> None:
    assert asked(ProbeFacts(exit_code=86), MEMCHECK, sanitizer_log=CLEAN_REPORT)[1].outcome == "pass"


def test_a_pass_under_a_tool_states_its_summary() -> None:
    proof = asked(ProbeFacts(exit_code=0), MEMCHECK, sanitizer_log=CLEAN_REPORT)[1].proof
    assert proof is not None
    assert "memcheck summary: 0 errors" in proof


def test_a_caching_allocator_makes_a_clean_memcheck_worthless_but_not_a_finding() -> None:
    facts = ProbeFacts(exit_code=0, breadcrumbs=FINISHED, result={**DONE, "caching_allocator": "torch"})
    expected = Expectations(target="python", observer="memcheck")
    verdict = asked(facts, expected, sanitizer_log=CLEAN_REPORT)[1]
    assert verdict.outcome == "unresolved"
    assert "PYTORCH_NO_CUDA_MEMORY_CACHING=1" in verdict.reason


def test_errors_counted_but_not_readable_are_not_clean() -> None:
    text = CLEAN_REPORT.replace(b"0 errors", b"3 errors")
    assert asked(ProbeFacts(exit_code=0), MEMCHECK, sanitizer_log=text)[1].outcome == "unresolved"


def test_no_report_at_all_is_not_clean() -> None:
    assert asked(ProbeFacts(exit_code=0), MEMCHECK)[1].outcome == "unresolved"


def test_a_report_that_was_never_asked_for_does_not_make_a_plain_pass_doubtful() -> None:
    assert asked(ProbeFacts(exit_code=0), COMMAND, sanitizer_log=b"")[1].outcome == "pass"


def test_719_under_memcheck_without_a_record_says_what_it_may_hide() -> None:
    verdict = asked(
        ProbeFacts(exit_code=2),
        MEMCHECK,
        stderr=b"CUDA error: unspecified launch failure\n",
        sanitizer_log=CLEAN_REPORT,
    )[1]
    assert "under memcheck every device fault reads 719" in verdict.reason


def test_a_finding_carries_what_the_program_noticed_and_the_cases_name_for_the_buffer() -> None:
    log = (
        b"========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n"
        b"=========     at attn(float *)+0xc0 in attn.cu:41\n=========     by thread (1,0,0) in block (2,0,0)\n"
        b"=========     Access to 0x10100 is out of bounds\n"
        b"=========     and is 1 bytes after the nearest allocation at 0x10000 of size 256 bytes\n========= \n"
        b"========= Target application returned an error\n========= ERROR SUMMARY: 1 error\n"
    )
    buffers = [
        {"name": "scratch", "role": "scratch", "dtype": "float32", "shape": [4, 16], "address": 0x10000, "size": 256}
    ]
    result = {
        "buffers": buffers,
        **error(step="synchronise", number=719, cuda_name="CUDA_ERROR_LAUNCH_FAILED", call="cuCtxSynchronize"),
    }
    expected = Expectations(target="kernel", observer="memcheck")
    verdict = asked(ProbeFacts(exit_code=1, result=result), expected, sanitizer_log=log)[1]
    fault = fault_of(verdict)
    assert (fault.kind, fault.number, fault.found_by) == ("out-of-bounds", 719, "memcheck")
    assert fault.noticed is not None
    assert fault.noticed.call == "cuCtxSynchronize"
    assert fault.caused is not None
    assert fault.caused.allocation is not None
    assert fault.caused.allocation.name == "scratch"
    assert verdict.reason.endswith("right at the end of `scratch` (row 3)")


# Passing


def test_a_kernel_that_has_a_reference_passes_only_with_a_comparison() -> None:
    facts = ProbeFacts(exit_code=0, breadcrumbs=FINISHED, result={"finished": True, "synchronised": True})
    assert asked(facts, KERNEL)[1].outcome == "unresolved"
    unchecked = Expectations(target="kernel", compared=True, check=False)
    assert asked(facts, unchecked)[1].proof == "finished mark after a device synchronise, outputs not compared"


def test_a_changed_input_is_wrong() -> None:
    comparison = {"outputs": {"out": {"elements": 4, "differing": 0}}, "changed_inputs": ["kv"]}
    facts = ProbeFacts(exit_code=0, breadcrumbs=FINISHED, result={**DONE, "comparison": comparison})
    assert asked(facts, KERNEL)[1].reason == "input `kv` was changed"


def test_a_wrong_result_says_where_it_first_differs() -> None:
    out = {
        "elements": 8,
        "differing": 3,
        "first": {"index": [0, 5], "got": 1.0, "expected": 2.0},
        "poison_left": 1,
        "nonfinite": 0,
    }
    facts = ProbeFacts(exit_code=0, breadcrumbs=FINISHED, result={**DONE, "comparison": {"outputs": {"out": out}}})
    reason = asked(facts, KERNEL)[1].reason
    assert (
        reason == "output `out` differs in 3 of 8 elements, first at [0, 5]: 1.0 instead of 2.0; 1 were never written"
    )


def test_python_without_cuda_passes_and_says_so() -> None:
    facts = ProbeFacts(exit_code=0, breadcrumbs=FINISHED, result={"finished": True, "synchronised": []})
    assert asked(facts, PYTHON)[1].proof == "finished mark, no CUDA was used, outputs not compared"


def test_a_python_function_among_several_passes_by_having_returned() -> None:
    facts = ProbeFacts(
        exit_code=0, breadcrumbs=crumbs("launch", "synchronise"), result={"call_s": 0.1, "synchronised": ["device 0"]}
    )
    assert asked(facts, PYTHON)[1].outcome == "pass"


def test_a_command_that_dies_after_its_success_line_died_after_finishing() -> None:
    verdict = asked(ProbeFacts(signal=11), Expectations(success="all tests passed"), stdout=b"all tests passed\n")[1]
    assert fault_of(verdict).kind == "died-after-finish"


def test_any_reading_of_no_files_can_be_judged() -> None:
    for expected in (COMMAND, KERNEL, PYTHON, MEMCHECK):
        assert decided(ProbeFacts(), Reading(), expected)[1].outcome == "unresolved"


@pytest.mark.parametrize(
    ("killed", "signal", "reason"),
    [
        ("still running at the time limit of 1 s", 15, "still running after 1.0 s"),
        ("still running at the time limit of 1 s", 9, "still running after 1.0 s (SIGTERM did not end it)"),
        ("still running at the time limit of 1e+06 s", 15, "still running after 1000000.0 s"),
        (None, 15, "still running after 3.0 s"),
    ],
)
def test_a_hang_names_its_limit_and_not_the_time_it_took_to_end_it(
    killed: str | None, signal: int, reason: str
) -> None:
    facts = ProbeFacts(signal=signal, timed_out=True, killed_by_us=killed, wall_s=3.003)
    verdict = asked(facts, COMMAND)[1]
    assert (verdict.outcome.value, verdict.reason) == ("hang", reason)
