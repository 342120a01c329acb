"""What an incident is called: recorded reports of compute-sanitizer from an H200, and ends of processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))
from recordings import run_files

from cudadiag.pytest_plugin.naming import name
from harness.isolation.incident import How, Incident, poisoned
from harness.records import ProbeFacts


def checked(fault: str, tool: str = "memcheck", **facts: object) -> Incident:
    files = {key: data for key, data in run_files(fault, tool).items() if key.startswith("sanitizer")}
    return Incident(How.CHECKED, ProbeFacts(**{"exit_code": 0, **facts}), files, observer=tool)  # type: ignore[arg-type]


def test_a_finding_fails_the_test_though_its_process_ended_well() -> None:
    named = name(checked("oob_far"))
    assert (named.failed, named.undecided, named.kind) == (True, False, "out-of-bounds")
    assert (named.signature or "").startswith("v1/fault/out-of-bounds/write/global/")
    assert any(line.startswith("caused     in store_at") for line in named.lines)


def test_a_sound_report_is_no_failure() -> None:
    named = name(checked("ok"))
    assert (named.failed, named.undecided) == (False, False)


def test_no_report_is_undecided_and_never_a_pass() -> None:
    named = name(Incident(How.CHECKED, ProbeFacts(exit_code=0), {}, observer="memcheck"))
    assert (named.failed, named.undecided) == (False, True)
    assert "memcheck did not" in named.lines[0]


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (ProbeFacts(exit_code=0), "host-exit"),
        (ProbeFacts(exit_code=127), "host-exit"),
        (ProbeFacts(exit_code=3), "host-exit"),
        (ProbeFacts(signal=11), "host-signal"),
    ],
)
def test_a_process_that_left_in_the_middle_is_always_a_fault(facts: ProbeFacts, kind: str) -> None:
    named = name(Incident(How.DIED, facts))
    assert (named.failed, named.kind) == (True, kind)
    assert named.signature is not None


def test_a_sticky_code_is_named_and_noticed_by_whoever_spoke_of_it_first() -> None:
    fact = {"name": "CUDA_ERROR_ILLEGAL_ADDRESS", "number": 700, "text": "an illegal memory access was encountered"}
    fact |= {"call": "cuCtxSynchronize", "source": "driver"}
    crash = {"path": "/x/test_it.py", "lineno": 12, "message": f"RuntimeError: CUDA error: {fact['text']}"}
    own = name(poisoned({"longrepr": {"reprcrash": crash}}, fact, 1.0))
    ours = name(poisoned({"longrepr": "the process is poisoned"}, fact, 1.0))
    assert own.kind == ours.kind == "illegal-address"
    assert any(line.startswith("noticed ") and "test_it.py:12" in line for line in own.lines)
    assert any(line.startswith("noticed    by cuCtxSynchronize") for line in ours.lines)


def test_a_device_assert_beats_the_code_of_the_check() -> None:
    fact = {"name": "CUDA_ERROR_ASSERT", "number": 710, "text": "device-side assert triggered"}
    fact |= {"call": "cuCtxSynchronize", "source": "driver"}
    said = "k.cu:41: gather(): block: [1,0,0], thread: [7,0,0] Assertion `i < n` failed.\n"
    named = name(poisoned({"sections": [("Captured stderr call", said)]}, fact, 1.0))
    assert named.kind == "device-assert"
    assert any("k.cu:41" in line for line in named.lines if line.startswith("caused"))
