"""compute-sanitizer's text and XML in the wordings of its versions 2022 to 2026, and the health readings."""

from __future__ import annotations

import pytest

from cudadiag.evidence.sanitizer import Health, SanitizerRecord, SanitizerReport, sanitizer_report
from cudadiag.evidence.sanitizer.frames import stub_name
from cudadiag.model import FaultKind


def text_of(*lines: str, summary: str | None = "ERROR SUMMARY: 1 error") -> SanitizerReport:
    body = ["COMPUTE-SANITIZER", *lines, "", *([summary] if summary else [])]
    return sanitizer_report(None, "".join(f"========= {line}\n" for line in body).encode())


def one(*lines: str) -> SanitizerRecord:
    report = text_of(*lines)
    assert len(report.records) == 1, report.records
    return report.records[0]


def xml_of(*records: str) -> SanitizerReport:
    text = "".join(f"<record>{record}</record>" for record in records)
    document = f'<?xml version="1.0" encoding="utf-8"?>\n<ComputeSanitizerOutput>{text}</ComputeSanitizerOutput>\n'
    return sanitizer_report(document.encode(), b"========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 1 error\n")


# memcheck


@pytest.mark.parametrize(
    "said", ["Address 0x7f3e8a800404 is", "Access to 0x7f3e8a800404 is", "Access at 0x7f3e8a800404 is"]
)
@pytest.mark.parametrize("at", ["attn<(int)4>(float *)+0xc0", "attn<(int)4>(float *):0xc0"])
def test_an_invalid_access_in_old_and_new_wordings(said: str, at: str) -> None:
    found = one(
        "Invalid __global__ atomic of size 8 bytes",
        f"    at {at} in /src/attn.cu:41",
        "    by thread (31,2,0) in block (7,0,1)",
        f"    {said} out of bounds",
        "    and is 1,029 bytes after the nearest allocation at 0x7f3e8a800000 of size 1,024 bytes",
        "    Saved host backtrace up to driver entry point at kernel launch time",
        "        Host Frame: main [0xa751] in bench",
        "        Host Frame: run(int) in bench.py:12",
    )
    assert (found.kind, found.access, found.space, found.size) == (FaultKind.OUT_OF_BOUNDS, "atomic", "global", 8)
    assert (found.kernel, found.file, found.line, found.pc) == ("attn<(int)4>", "/src/attn.cu", 41, 0xC0)
    assert (found.thread, found.block, found.address) == ((31, 2, 0), (7, 0, 1), 0x7F3E8A800404)
    near = found.allocation
    assert near is not None
    assert (near.address, near.size, near.distance, near.side) == (0x7F3E8A800000, 1024, 1029, "after")
    assert [(f.function, f.pc, f.module, f.line) for f in found.host_frames] == [
        ("main", 0xA751, "bench", None),
        ("run(int)", None, None, 12),
    ]
    assert found.message == "Invalid __global__ atomic of size 8 bytes, out of bounds"


def test_a_bare_pc_a_misalignment_and_an_access_inside_an_allocation() -> None:
    found = one(
        "Invalid __global__ read of size 16 bytes",
        "    at 0x79d8",
        "    by thread (0,0,0) in block (0,0,0)",
        "    Address 0x7fe168800004 is misaligned",
        "    and is inside the nearest allocation at 0x7fe168800000 of size 4,096 bytes",
    )
    assert (found.kind, found.kernel, found.pc, found.line) == (FaultKind.MISALIGNED_ADDRESS, None, 0x79D8, None)
    assert found.allocation is not None
    assert (found.allocation.side, found.allocation.distance) == ("inside", 0)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("Illegal instruction", FaultKind.ILLEGAL_INSTRUCTION),
        ("Warp illegal address", FaultKind.ILLEGAL_ADDRESS),
        ("Warp assert", FaultKind.DEVICE_ASSERT),
        ("Trace/breakpoint trap", FaultKind.LAUNCH_FAILURE),
        ("Misaligned shared or local address", FaultKind.MISALIGNED_ADDRESS),
        ("Stack overflow", FaultKind.HARDWARE_STACK),
        ("Lane user stack overflow", FaultKind.HARDWARE_STACK),
        ("Malloc/Free error encountered : Double free", FaultKind.USE_AFTER_FREE),
        ("Malloc/Free error encountered : Invalid pointer to free", FaultKind.OTHER_CUDA),
        ("Invalid write operation (permission denied)", FaultKind.ILLEGAL_ADDRESS),
        ("Potential invalid __shared__ read of size 4 bytes", FaultKind.RACE),
        ("Uninitialized __shared__ memory read of size 4 bytes", FaultKind.UNINITIALISED_READ),
        ("Barrier error detected. Invalid arguments", FaultKind.BARRIER),
        (
            "Deadlock detected in Cuda::barrier wait called by threads starting at (0,0,0) in block (0,0,0)",
            FaultKind.BARRIER,
        ),
        ("Address 0x7f00 is potentially accessed after it is free'd", FaultKind.USE_AFTER_FREE),
    ],
)
def test_heads_without_a_table_of_their_own_get_their_kind(head: str, kind: FaultKind) -> None:
    found = one(head, "    at k(int)+0x60 in a.cu:3", "    by thread (1,0,0) in block (0,0,0)")
    assert found.kind is kind
    assert (found.kernel, found.line, found.thread) == ("k", 3, (1, 0, 0))


def test_the_kernel_of_a_device_function_is_the_outermost_frame() -> None:
    found = one(
        "Invalid __shared__ write of size 4 bytes",
        "    at put(float *, int)+0x20 in a.cu:5",
        "    by thread (0,0,0) in block (0,0,0)",
        "    Access to 0x400 is out of bounds",
        "        Device Frame: row(float *)+0x80 in a.cu:9",
        "    Device Frame:top<(int)2>(float *)+0x10 in a.cu:14",
    )
    assert (found.kernel, found.function, found.line) == ("top<(int)2>", "put", 5)
    assert [(f.function, f.line) for f in found.frames] == [("row(float *)", 9), ("top<(int)2>(float *)", 14)]


@pytest.mark.parametrize(
    ("stub", "kernel"),
    [
        ("__device_stub__Z13device_asserti", "device_assert"),
        ("__device_stub__ZN2ns4attnILi4EEEvPf", "ns::attn"),
        ("main", None),
        (None, None),
    ],
)
def test_a_launch_stub_names_its_kernel(stub: str | None, kernel: str | None) -> None:
    assert stub_name(stub) == kernel


@pytest.mark.parametrize(
    ("line", "name", "number", "api"),
    [
        (
            'Program hit cudaErrorInvalidValue (error 1) due to "invalid argument" on CUDA API call to cudaFree.',
            "cudaErrorInvalidValue", 1, "cudaFree",
        ),
        (
            'Program hit CUDA_ERROR_INVALID_CONTEXT (error 201) due to "none" on CUDA API call to cuCtxGetDevice.',
            "CUDA_ERROR_INVALID_CONTEXT", 201, "cuCtxGetDevice",
        ),
        ("Program hit invalid copy direction (error 21) on CUDA API call to cudaMemcpy.", None, 21, "cudaMemcpy"),
        ("Program hit error 700 on CUDA API call to cudaDeviceSynchronize", None, 700, "cudaDeviceSynchronize"),
    ],
)  # fmt: skip
def test_api_errors_are_read_but_are_no_findings(line: str, name: str | None, number: int, api: str) -> None:
    report = text_of(line, "    Saved host backtrace up to driver entry point at error")
    (found,) = report.records
    assert (found.name, found.number, found.api) == (name, number, api)
    assert report.findings(leaks=True) == ()


def test_leaks_are_findings_only_when_asked_for() -> None:
    report = text_of(
        "Leaked 1,024 bytes at 0x7879c0800000",
        "    Saved host backtrace up to driver entry point at allocation time",
        "        Host Frame: main [0xae5c] in demo",
        "Leaked 16 bytes at 0x4012ffff6 on the device heap",
        "Leaked an OptixProgramGroup with handle 0x55dbffbd9840",
        "LEAK SUMMARY: 1040 bytes leaked in 2 allocations",
    )
    assert [record.size for record in report.records] == [1024, 16, None]
    assert report.findings(leaks=False) == ()
    assert len(report.findings(leaks=True)) == 3


# racecheck and the others


def test_a_race_has_two_places_a_level_and_a_count_of_hazards() -> None:
    report = text_of(
        "Error: Race reported between Write access at sum(int *, int *)+0x90 in /s/block.cu:41",
        "    and Read access at sum(int *, int *)+0x100 in /s/block.cu:51 [508 hazards]",
        "WARNING: Race reported between Write access at RAW()+0xf0 in warp.cu:40",
        "    and Read access at RAW()+0x280 in warp.cu:46 [4 hazards]",
        summary="RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)",
    )
    first, second = report.records
    assert (first.kind, first.level, first.kernel, first.line, first.access) == (
        FaultKind.RACE,
        "Error",
        "sum",
        41,
        "write",
    )
    assert first.other is not None
    assert (first.other.line, first.other_access, first.count) == (51, "read", 508)
    assert second.level == "Warning"
    assert report.findings(leaks=False) == (first,)
    assert (report.errors, report.health, report.tool) == (1, Health.OK, "racecheck")


def test_a_hazard_has_its_address_and_both_threads_places() -> None:
    found = one(
        "Warning: (Warp Level Programming) Potential RAW hazard detected at __shared__ 0x8c in block (0,0,0) :",
        "    Write Thread (35,0,0) at sum(int *)+0x90 in warp.cu:44",
        "    Read Thread (32,0,0) at sum(int *)+0x120 in warp.cu:56",
        "    Current Value : 35",
    )
    assert (found.kind, found.space, found.address, found.thread) == (FaultKind.RACE, "shared", 0x8C, (35, 0, 0))
    assert (found.line, found.access, found.other_access) == (44, "write", "read")
    assert found.other is not None
    assert found.other.line == 56
    assert found.is_advice


def test_unused_memory_and_synchronisation_logs_are_notes() -> None:
    report = text_of(
        "Unused __global__ memory in allocation 0x7fed9f400000 of size 100 bytes",
        "    Not written 80 bytes at offset 0x14 (0x7fed9f400014)",
        "Barrier called by threads starting at (32,0,0) in block (1,0,0), (active mask: 0xff) at k()+0x2b0 in a.cu:36",
        summary="ERROR SUMMARY: 0 errors",
    )
    assert [record.is_advice for record in report.records] == [True, True]
    assert report.findings(leaks=True) == ()


# What nobody knows yet


def test_an_unknown_head_with_a_place_is_kept_and_counted() -> None:
    report = text_of(
        "Quantum entanglement of size 3 bytes",
        "    at k()+0x10 in a.cu:2",
        "    by thread (0,0,0) in block (0,0,0)",
        "Quantum entanglement of size 4 bytes",
        "    at k()+0x10 in a.cu:2",
        "Launch #1",
        "  Kernel: _Z9store_allPfm",
    )
    assert report.unknown == {"Quantum entanglement of size N bytes": 2}
    assert {record.kind for record in report.records} == {FaultKind.OTHER_CUDA}
    assert report.records[0].line == 2


def test_an_unknown_kind_of_xml_is_kept_with_its_tags_and_counted() -> None:
    report = xml_of(
        "<kind>TeleportGuardrail</kind><level>Error</level><what><text>Too far</text><range>9</range></what>"
        "<where><func>k</func><path>/s/a.cu</path><line>4</line><pc>0x40</pc></where>"
    )
    assert report.unknown == {"TeleportGuardrail": 1}
    (found,) = report.findings(leaks=False)
    assert (found.kind, found.line, found.detail) == (FaultKind.OTHER_CUDA, 4, {"range": "9"})


def test_dotted_tags_of_older_xml_are_read() -> None:
    report = xml_of(
        "<kind>Initcheck</kind><who>"
        "<threadIdx.x>3</threadIdx.x><threadIdx.y>0</threadIdx.y><threadIdx.z>1</threadIdx.z></who>"
        "<what><text>Uninitialized __global__ memory read of size 4 bytes</text>"
        "<address>0x10</address><size>4</size></what>"
    )
    (found,) = report.records
    assert (found.thread, found.access, found.space, found.size) == ((3, 0, 1), "read", "global", 4)


# Health


@pytest.mark.parametrize(
    ("line", "health"),
    [
        ("Error: Target application terminated before first instrumented API call", Health.NEVER_REACHED_CUDA),
        ("Target application doesn't exist or is not a valid executable", Health.NEVER_REACHED_CUDA),
        ("Error: Target application terminated before first instrumented kernel launch", Health.FILTERED_OUT),
        ("Filter ill-formed: missing value", Health.FILTERED_OUT),
        ("Error: No attachable process found. compute-sanitizer timed-out.", Health.NO_CONNECTION),
        ("Unable to find injection library libsanitizer-collection.so", Health.NO_CONNECTION),
        (
            "Internal Sanitizer Error: The Sanitizer encountered an error while launching k and didn't track it. "
            "Errors might go undetected.",
            Health.INTERNAL_ERROR,
        ),
        ("Internal Sanitizer Error: The Sanitizer failed to handle a hardware exception", Health.INTERNAL_ERROR),
        (
            "Warning: Detected overflow of tracked cuda::barrier structures. Results might be incorrect.",
            Health.INTERNAL_ERROR,
        ),
        ("Error: couldn't find exit code.", Health.INTERNAL_ERROR),
        ("Device not supported. Please refer to the documentation.", Health.DEVICE_NOT_SUPPORTED),
    ],
)
def test_a_tool_that_says_it_did_not_check_is_not_healthy_even_with_a_summary(line: str, health: Health) -> None:
    report = text_of(line, summary="ERROR SUMMARY: 0 errors")
    assert report.health is health
    assert report.health_detail == (line,)


def test_health_needs_the_summary_line_and_the_end_of_the_xml() -> None:
    good_text = b"========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    good_xml = b'<?xml version="1.0" encoding="utf-8"?>\n<ComputeSanitizerOutput/>\n'
    assert sanitizer_report(good_xml, good_text).health is Health.OK
    assert sanitizer_report(None, good_text).health is Health.OK
    assert sanitizer_report(good_xml, None).health is Health.NO_SUMMARY
    assert sanitizer_report(good_xml, b"========= COMPUTE-SANITIZER\n").health is Health.NO_SUMMARY
    assert sanitizer_report(good_xml[:60], good_text).health is Health.TRUNCATED
    assert sanitizer_report(b"<html/>", good_text).health is Health.TRUNCATED
    assert sanitizer_report(b"", good_text).health is Health.TRUNCATED
    assert sanitizer_report(None, b"").health is Health.NO_REPORT
    assert sanitizer_report(None, None).health is Health.NO_REPORT


def test_a_program_that_failed_is_told_apart_from_a_tool_that_failed() -> None:
    report = text_of(
        "Error: process didn't terminate successfully",
        "Target application returned an error",
        summary="ERROR SUMMARY: 0 errors",
    )
    assert (report.health, report.program_failed) == (Health.OK, True)


def test_summaries_count_with_separators_and_left_out_records() -> None:
    report = text_of(
        summary="ERROR SUMMARY: 12,345 errors\n========= ERROR SUMMARY: 12,245 errors were not printed. Use this"
    )
    assert (report.errors, report.not_printed) == (12345, 12245)


def test_xml_and_text_that_disagree_say_so() -> None:
    document = (
        b'<?xml version="1.0"?><ComputeSanitizerOutput><record><kind>Precise</kind><level>Error</level><what>'
        b"<text>Invalid __global__ write of size 4 bytes is out of bounds</text><space>__global__</space><size>4</size>"
        b"<direction>write</direction><error>out of bounds</error><address>0x10</address></what>"
        b"<where><func>k</func><path>/s/a.cu</path><line>4</line><pc>0x40</pc></where></record></ComputeSanitizerOutput>"
    )
    other = (
        b"========= COMPUTE-SANITIZER\n========= Stack overflow\n=========     at q()+0x10 in a.cu:9\n"
        b"========= ERROR SUMMARY: 1 error\n"
    )
    report = sanitizer_report(document, other)
    assert report.disagreements == (
        "only in the text: Stack overflow in q:9",
        "only in the XML: Invalid __global__ write of size 4 bytes, out of bounds in k:4",
    )
    assert len(report.records) == 2


def test_entities_are_refused() -> None:
    bomb = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><ComputeSanitizerOutput>&a;</ComputeSanitizerOutput>'
    report = sanitizer_report(bomb, None)
    assert report.records == ()
    assert report.health is Health.TRUNCATED


def test_text_mixed_into_the_programs_output_is_found() -> None:
    mixed = (
        b"warmup ok\n 50%\r========= COMPUTE-SANITIZER\nhello ========= no\n"
        b"========= Invalid __global__ read of size 4 bytes\n=========     at k()+0x10 in a.cu:2\nprogram prints here\n"
        b"=========     by thread (4,0,0) in block (0,0,0)\n=========     Access to 0x10 is out of bounds\n"
        b"========= ERROR SUMMARY: 1 error\n"
    )
    (found,) = sanitizer_report(None, mixed).records
    assert (found.thread, found.address) == ((4, 0, 0), 0x10)
