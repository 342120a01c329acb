"""That nobody saw an error refutes only where somebody looked: recordings of an H200, and real processes."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import pytest
from diagnose_recorded import judged
from test_diagnose_claims import evidence, standing, without_log
from test_diagnose_cli import document
from test_diagnose_printed import part, printing

from cudadiag.diagnose.engine import Diagnosis, diagnosis
from cudadiag.diagnose.interface import Status
from cudadiag.evidence import from_json, to_json
from cudadiag.evidence.driver_log import DriverLogEntry
from cudadiag.model import Allocation
from cudadiag.session.judged import Judged

SEVEN = (
    "memory-exhausted", "launch-limit", "own-check", "integer-overflow", "stack-overflow", "misalignment", "wild-jump",
)  # fmt: skip
NO_TOOL = "compute-sanitizer was not found"


def logging(one: Judged, *errors: int) -> Judged:
    """The same probe, had the driver logged these errors."""
    entries = tuple(DriverLogEntry(n, "", number=number, call="cuCall") for n, number in enumerate(errors, 1))
    told = to_json(dataclasses.replace(from_json(one.line.reading), driver_log=entries))
    return dataclasses.replace(one, line=dataclasses.replace(one.line, reading=told))


def of(fault: str, *probes: Judged, target: str = "command") -> Diagnosis:
    return diagnosis(evidence(fault, probes, tool_problem=NO_TOOL, target=target))


# -- a program that ends itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["host_exit3", "host_segv", "host_abort"])
def test_silence_refutes_nothing_where_nobody_looked(fault: str) -> None:
    found = of(fault, without_log(judged(fault, "plain")), without_log(judged(fault, "blocking", 2)))
    for name in SEVEN:
        assert found.standing(name).status is Status.UNTESTED, name
        assert found.standing(name).why.startswith("the program ended by itself and nobody looked at its CUDA calls")


@pytest.mark.parametrize("observer", ["plain", "blocking"])
def test_an_empty_log_of_the_driver_refutes(observer: str) -> None:
    found = of("host_exit3", logging(judged("host_exit3", observer)))
    for name in SEVEN:
        assert found.standing(name).status is Status.REFUTED, name
        assert "no CUDA call returned an error (driver log)" in found.standing(name).why


@pytest.mark.parametrize(
    ("driver", "logs"), [("570.172.08", False), ("575.57", True), ("580.159.04", True), (None, True)]
)
def test_a_driver_that_writes_no_log_leaves_an_empty_one(driver: str | None, logs: bool) -> None:
    told = evidence("host_exit3", [logging(judged("host_exit3", "plain"))], tool_problem=NO_TOOL, driver=driver)
    status = diagnosis(told).standing("misalignment").status
    assert status is (Status.REFUTED if logs else Status.UNTESTED)


def test_a_log_is_none_where_no_device_is_in_use() -> None:
    told = evidence("host_exit3", [logging(judged("host_exit3", "plain"))], device="none")
    assert not told.uses_cuda
    assert {diagnosis(told).standing(name).status for name in SEVEN} == {Status.UNTESTED}


def test_a_clean_memcheck_refutes() -> None:
    probes = without_log(judged("host_exit3", "plain")), judged("host_exit3", "memcheck", 2)
    found = diagnosis(evidence("host_exit3", probes))
    for name in SEVEN:
        assert found.standing(name).status is Status.REFUTED, name
        assert "(memcheck)" in found.standing(name).why


@pytest.mark.parametrize(("error", "name"), [(2, "memory-exhausted"), (1, "launch-limit"), (701, "launch-limit")])
def test_an_error_that_the_program_kept_to_itself_refutes_nothing(error: int, name: str) -> None:
    found = of("host_exit3", logging(judged("host_exit3", "plain"), error))
    assert found.standing(name).status is Status.UNTESTED
    assert found.standing(name).why == f"a CUDA call returned {error} before the program ended"
    assert found.standing("misalignment").status is Status.REFUTED


# -- a hang ------------------------------------------------------------------------------------------------------------


def test_a_hang_on_a_device_may_be_the_host_until_a_kernel_is_seen() -> None:
    found = of("hang", judged("hang", "plain"), judged("hang", "blocking", 2)).standing("host-program")
    assert found.status is Status.UNTESTED
    assert "no kernel was seen running" in found.why
    seen = of("hang", judged("hang", "blocking"), judged("hang", "coredump", 2)).standing("host-program")
    assert (seen.status, seen.why) == (Status.REFUTED, "it hangs in a kernel")


def test_a_time_limit_is_no_proof_of_a_hang(tmp_path: Path) -> None:
    found = document(tmp_path, "diagnose", "--device", "none", "--timeout", "1", "--", "sh", "-c", "sleep 30", expect=1)
    told = part(found, "host-program")
    assert (told["status"], told["strength"]) == ("supported", "suggested")
    assert told["why"] == "still running at the limit of 1.0 s"
    assert part(found, "endless-wait")["strength"] == "suggested"
    assert found["next_step"].startswith("raise --timeout, or look where it stands")


# -- results, addresses, texts -----------------------------------------------------------------------------------------


def test_no_result_is_right_that_nobody_compared(tmp_path: Path) -> None:
    told = part(printing(tmp_path, "exit 1"), "wrong-result")
    assert told["status"] == "untested"
    assert "the program's own exit status may say" in told["why"]
    found = standing("oob_far", "wrong-result")
    assert found.status is Status.REFUTED
    plain = of("oob_far", judged("oob_far", "plain")).standing("wrong-result")
    assert (plain.status, plain.why) == (Status.REFUTED, "it faulted before a result was compared")


def test_a_wrapped_offset_can_be_misaligned() -> None:
    found = standing("misaligned", "integer-overflow")
    assert (found.status, found.why) == (Status.UNTESTED, "716: a wrapped offset can be misaligned")


@pytest.mark.parametrize("text", ["misaligned address", "invalid program counter", "device-side assert triggered"])
def test_a_text_alone_refutes_no_other_cause(text: str, tmp_path: Path) -> None:
    found = printing(tmp_path, f"echo {shlex.quote(f'CUDA error: {text}')} >&2; exit 1")
    for name in SEVEN:
        assert part(found, name)["status"] != "refuted", name


def test_a_killed_program_sends_to_the_kernel_log(tmp_path: Path) -> None:
    found = printing(tmp_path, "kill -KILL $$")
    assert "OOM killer in the kernel log (dmesg)" in found["next_step"]
    assert "gdb" in printing(tmp_path, "kill -SEGV $$")["next_step"]


def test_an_address_inside_a_freed_buffer_is_called_so() -> None:
    one = judged("use_after_free", "memcheck")
    assert one.fault is not None
    assert one.fault.caused is not None
    freed = Allocation(one.fault.caused.address or 0, 4096, 0, "inside", state="freed")
    fault = dataclasses.replace(one.fault, caused=dataclasses.replace(one.fault.caused, allocation=freed))
    told = dataclasses.replace(one, verdict=dataclasses.replace(one.verdict, fault=fault))
    found = diagnosis(evidence("use_after_free", [told])).standing("integer-overflow")
    assert found.why.startswith("the bad address is inside a freed buffer: no index into it wraps so")
    assert "next to a buffer" in standing("use_after_free", "integer-overflow").why


def test_nothing_is_shown_by_silence() -> None:
    for fault in ("host_exit3", "hang"):
        found = of(fault, without_log(judged(fault, "plain")))
        shown = {w.explanation.name for w in found.weighed if w.shown}
        assert shown <= {"endless-wait"}
