"""Driver log, host errors, dump progress, kernel names, named allocations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cudadiag.evidence.allocations import Buffer, buffers_of, locate, named, words
from cudadiag.evidence.driver_log import driver_log
from cudadiag.evidence.host_errors import HostError, host_error
from cudadiag.evidence.names import base_name, caller_name
from cudadiag.evidence.progress import core_progress
from cudadiag.evidence.xid_lines import same_device, xid_lines
from cudadiag.model import Allocation, FaultKind

# Driver log


def test_a_driver_log_gives_calls_codes_threads_and_words() -> None:
    entries = driver_log(
        b"[17:31:30.738][140591570595840][CUDA][E] Grid Dimension Y of 70000 exceeds maximum value of 65535\r\n"
        b"GPU: noise between\n"
        b"[17:31:30.739][140591570595840][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernel\n"
    )
    assert [(e.log_line, e.number, e.call, e.is_launch, e.is_sticky) for e in entries] == [
        (1, None, None, False, False),
        (3, 1, "cuLaunchKernel", True, False),
    ]
    assert entries[0].text == "Grid Dimension Y of 70000 exceeds maximum value of 65535"
    assert (entries[1].time, entries[1].thread, entries[1].level) == ("17:31:30.739", 140591570595840, "E")


def test_a_driver_log_without_its_prefix_is_read() -> None:
    (entry,) = driver_log(b"Returning 700 (CUDA_ERROR_ILLEGAL_ADDRESS) from cuCtxSynchronize_v2\n")
    assert (entry.number, entry.call, entry.is_sticky) == (700, "cuCtxSynchronize_v2", True)


def test_a_log_that_says_nothing_is_empty() -> None:
    assert driver_log(b"") == ()
    assert driver_log(b"\n\nhello\n") == ()


# Xid lines


def test_an_xid_line_gives_number_device_pid_address_and_access() -> None:
    (found,) = xid_lines(
        [
            "kernel: something else",
            "[ 12.3] NVRM: Xid (PCI:0000:41:00): 31, pid=4711, name=bench, Ch 00000008, intr 00000000. MMU Fault: "
            "ENGINE GRAPHICS GPC1 faulted @ 0x7f29_5b8c9000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
        ]
    )
    assert (found.number, found.pci, found.pid, found.name) == (31, "0000:41:00", 4711, "bench")
    assert (found.address, found.access, found.log_line) == (0x7F295B8C9000, "read", 2)
    assert found.entry is not None
    assert found.entry.blame == "application"


@pytest.mark.parametrize(
    ("line", "number", "pid", "name"),
    [
        ("NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception on (GPC 1): Misaligned Address", 13, None, None),
        ("NVRM: Xid (PCI:0000:00:06): 79, GPU has fallen off the bus.", 79, None, None),
        ("NVRM: Xid (PCI:0000:8b:00): 43, pid=812, name=python3, Ch 00000010", 43, 812, "python3"),
        (
            "NVRM: Xid (PCI:0000:8b:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error",
            48,
            None,
            "<unknown>",
        ),
        ("NVRM: Xid (0000:8b:00): 9999, anything", 9999, None, None),
    ],
)
def test_forms_of_xid_lines(line: str, number: int, pid: int | None, name: str | None) -> None:
    (found,) = xid_lines([line])
    assert (found.number, found.pid, found.name) == (number, pid, name)
    assert (found.entry is None) == (number == 9999)


def test_ways_to_write_a_pci_address_mean_one_device() -> None:
    assert same_device("0000:41:00", "00000000:41:00.0")
    assert same_device("PCI:0000:41:00", "41:00.0")
    assert not same_device("0000:41:00", "0000:42:00")
    assert not same_device("nonsense", "nonsense")


# Host errors


def test_the_last_traceback_wins_but_not_one_python_only_noted() -> None:
    text = (
        b'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: first\n'
        b"During handling of the above exception, another exception occurred:\n"
        b'Traceback (most recent call last):\n  File "a.py", line 9, in <module>\n    f()\n'
        b'  File "b.py", line 4, in h\n    raise X\nmod.MyError: second: with colons\n'
        b"Exception ignored in: <function C.__del__>\n"
        b'Traceback (most recent call last):\n  File "c.py", line 1, in __del__\nRuntimeError: noise\n'
    )
    assert host_error(text) == HostError("python", "mod.MyError", 11, "second: with colons", "b.py", 4, "h")


@pytest.mark.parametrize(
    ("text", "form", "type_", "message", "line"),
    [
        (
            b"terminate called after throwing an instance of 'std::runtime_error'\n  what():  no room\nAborted\n",
            "terminate", "std::runtime_error", "no room", None,
        ),
        (b"bench: /s/a.cpp:77: int main(int): Assertion `n > 0' failed.\n", "assertion", "assertion", "n > 0", 77),
        (
            b'Fatal Python error: Segmentation fault\n\nThread 0x01:\n  File "w.py", line 1 in wait\n'
            b'Current thread 0x02 (most recent call first):\n  File "bench.py", line 12 in run\n'
            b'  File "x.py", line 1 in m\n',
            "faulthandler", "Segmentation fault", None, 12,
        ),
        (b"free(): invalid pointer\nAborted\n", "native", "free(): invalid pointer", None, None),
        (b"./run.sh: line 3:  9 Segmentation fault    ./a\n", "native", "Segmentation fault", None, None),
    ],
)  # fmt: skip
def test_forms_of_a_hosts_end(text: bytes, form: str, type_: str, message: str | None, line: int | None) -> None:
    found = host_error(text)
    assert found is not None
    assert (found.form, found.type, found.message, found.line) == (form, type_, message, line)


def test_a_program_that_said_nothing_told_no_error() -> None:
    assert host_error(b"warmup ok\ndone\n") is None


# Progress of a dump


def test_progress_lines_name_exception_kernel_pc_and_how_far_the_dump_came() -> None:
    found = core_progress(
        b"[1] coredump: Starting GPU coredump generation\n"
        b"[1] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS (5)\n"
        b"[1] coredump:   - Device: 0\n[1] coredump:   - SM: 124\n[1] coredump:   - PC 0x7fcebf7a0f30\n"
        b"[1] coredump:   #0\t0x7fcebf7a0fa0\t_Z7recursePii\n"
        b"[1] coredump: Writing ELF file to /tmp/core.gpu\n[1] coredump: 5%...\n[1] coredump: 10%...\n"
    )
    assert found is not None
    assert (found.exception, found.kind, found.kernel, found.pc, found.percent, found.done, found.path) == (
        "Warp Out-of-range Address", FaultKind.OUT_OF_BOUNDS, "recurse", 0x7FCEBF7A0F30, 10, False, "/tmp/core.gpu",
    )  # fmt: skip


def test_an_unknown_exception_keeps_its_name() -> None:
    found = core_progress(
        b"Starting GPU coredump generation\n"
        b"[1] coredump: Detected an exception of type CUDBG_EXCEPTION_NEW_THING (99)\n"
    )
    assert found is not None
    assert (found.exception, found.kind) == ("CUDBG_EXCEPTION_NEW_THING", FaultKind.OTHER_CUDA)


def test_no_dump_no_progress() -> None:
    assert core_progress(b"nothing of the kind\n") is None


# Kernel names


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("race", "race"),
        ("race(float *)", "race"),
        ("void race(float*)", "race"),
        ("_Z4racePf", "race"),
        ("$_Z7recursePii$_Z4deepiPVi", "deep"),
        ("deep(int, int volatile*) [clone recurse(int*, int)]", "deep"),
        ("[clone recurse(int *, int)] deep(int, volatile int *)", "deep"),
        ("void ns::f<(int)4, float>(float *, int)", "ns::f<(int)4, float>"),
        ("void f<(int)4, void (*)(int)>(int *)", "f<(int)4, void (*)(int)>"),
        ("_ZN2at6native12_GLOBAL__N_16gatherILi4EfEEvPi", "at::native::{anonymous}::gather"),
        ("void at::(anonymous namespace)::g<T>(int)", "at::{anonymous}::g<T>"),
        ("S::operator()(int) const", "S::operator()"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("", None),
        (None, None),
    ],
)
def test_the_forms_of_a_kernels_name_come_to_one(written: str | None, name: str | None) -> None:
    assert base_name(written) == name


# Named allocations

SCRATCH = Buffer("scratch", 0x1000, 4096 * 4 * 4, "float32", (4, 4096))
TABLE = (SCRATCH, Buffer("out", 0x20000, 64, "float32", (16,)))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (0x1000, ("inside", 0, "scratch")),
        (0x1000 + 65535, ("inside", 0, "scratch")),
        (0x1000 + 65536, ("after", 1, "scratch")),
        (0x1000 + 65539, ("after", 4, "scratch")),
        (0xFFF, ("before", 1, "scratch")),
        (0x20000 - 4, ("before", 4, "out")),
        (0x20040, ("after", 1, "out")),
    ],
)
def test_an_address_is_placed_by_the_nearest_buffer(address: int, place: tuple[str, int, str]) -> None:
    found = locate(address, TABLE)
    assert found is not None
    assert (found.side, found.distance, found.name) == place


def test_an_address_far_from_everything_names_nothing() -> None:
    assert locate(0x7F00_0000_0000, TABLE) is None
    assert locate(0x1000, ()) is None


def test_words_say_how_far_past_the_end_the_access_begins_and_in_which_row() -> None:
    after = locate(0x1000 + 65536, TABLE)
    assert after is not None
    assert words(after, buffers=TABLE) == "right at the end of `scratch` (row 3)"
    assert words(replace(after, distance=2)) == "1 byte past the end of `scratch`"
    assert words(after, address=0x1000 + 65536) == "right at the end of `scratch`"
    assert words(after, address=0x1000 + 65532) == "across the end of `scratch`", "eight bytes, four of them inside"
    inside = locate(0x1000 + 16384 * 2 + 8, TABLE)
    assert inside is not None
    assert words(inside, buffers=TABLE, address=0x1000 + 16384 * 2 + 8) == "inside `scratch` (row 2)"
    before = locate(0xFF0, TABLE)
    assert before is not None
    assert words(before, buffers=TABLE) == "16 bytes before the start of `scratch` (row 0)"
    unnamed = Allocation(0x100, 1_000_000, 1, "after")
    assert words(unnamed) == "right at the end of the allocation at 0x100 of 1 000 000 bytes"
    freed = Allocation(0x100, 64, 0, "inside", "kv", "freed")
    assert words(freed) == "inside freed `kv`"


def test_a_tools_allocation_gets_the_cases_name_for_it() -> None:
    told = Allocation(0x1000, 65536, 1, "after")
    assert named(told, 0x11000, TABLE) == Allocation(0x1000, 65536, 1, "after", "scratch")
    assert named(Allocation(0x5, 1, 1, "after"), 6, TABLE) == Allocation(0x5, 1, 1, "after")
    found = named(None, 0x20001, TABLE)
    assert found is not None
    assert found.name == "out"


def test_a_workers_buffer_table_is_read_and_its_gaps_left_out() -> None:
    table = [
        {"name": "q", "role": "in", "dtype": "float32", "shape": [1, 9], "address": 4096, "size": 36},
        {"name": "empty", "address": 0, "size": 0, "shape": [0]},
        {"name": "not yet allocated", "shape": [4]},
        "nonsense",
    ]
    assert buffers_of({"buffers": table}) == (Buffer("q", 4096, 36, "float32", (1, 9)),)
    assert buffers_of({}) == ()
    assert buffers_of({"buffers": 7}) == ()


def test_a_librarys_look_up_of_functions_is_no_entry_of_the_driver_log() -> None:
    """Seen on an H200 with cuda-bindings newer than its driver: dozens of such pairs in every log."""
    noise = (
        b"[19:29:05.116][139814078910784][CUDA][E] cudaVersion argument (13020) exceeds the driver version (13000)\n"
        b"[19:29:05.116][139814078910784][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuGetProcAddress_v2\n"
    )
    real = (
        b"[19:29:06.001][139814078910784][CUDA][E] Grid Dimension Y of 70000 exceeds maximum value of 65535\n"
        b"[19:29:06.001][139814078910784][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernel\n"
    )
    assert driver_log(noise * 300) == ()
    entries = driver_log(noise * 300 + real)
    assert [(entry.number, entry.call) for entry in entries] == [(None, None), (1, "cuLaunchKernel")]
    assert entries[0].log_line == 601


def test_a_function_kept_apart_inside_a_kernel_names_both() -> None:
    """As compute-sanitizer printed it for a device function that was not inlined (NVRTC 13.0)."""
    name = (
        "$tree_flat$_ZN43_INTERNAL_00000000_12_tree_flat_cu_eac9c07345_GLOBAL__N__00000000_12_tree_flat_cu_eac9c0731"
        "8mask_of_small_treeEPKiPhi"
    )
    assert caller_name(name) == "tree_flat"
    assert base_name(name) == "{anonymous}::mask_of_small_tree"
    assert caller_name("_Z4racePf") is None
    assert caller_name("$odd") is None
    assert base_name("$odd") == "$odd"
