"""The table from facts to outcomes, rule by rule."""

from __future__ import annotations

import pytest
from judging import COMMAND, DONE, FINISHED, KERNEL, LINE_700, LOG_LAUNCH, MEMCHECK, PYTHON, asked, crumbs, error

from cudadiag.evidence import TABLE, Expectations
from harness.records import ProbeFacts, XidFacts

ROWS: dict[str, tuple[ProbeFacts, Expectations, dict[str, bytes], str, str | None]] = {
    "requirement-unmet": (ProbeFacts(), Expectations(unmet="needs sm_90, this is sm_80"), {}, "unresolved", None),
    "not-started": (ProbeFacts(start_error="./bench: No such file"), COMMAND, {}, "unresolved", None),
    "checker-record": (
        ProbeFacts(
            exit_code=0, device_records=({"kind": "out-of-bounds", "kernel": "k", "line": 3, "message": "bad"},)
        ),
        KERNEL,
        {},
        "fault",
        "out-of-bounds",
    ),
    "sanitizer-finding": (
        ProbeFacts(exit_code=0),
        MEMCHECK,
        {
            "sanitizer_log": b"========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n"
            b"=========     at k(float *)+0xc0 in a.cu:7\n=========     by thread (1,0,0) in block (2,0,0)\n"
            b"=========     Address 0x10 is out of bounds\n========= \n========= ERROR SUMMARY: 1 error\n"
        },
        "fault",
        "out-of-bounds",
    ),
    "device-assert": (
        ProbeFacts(exit_code=2),
        COMMAND,
        {"stderr": b"a.cu:9: void k(int): block: [1,0,0], thread: [3,0,0] Assertion `i < n` failed.\n" + LINE_700},
        "fault",
        "device-assert",
    ),
    "hardware-xid": (
        ProbeFacts(
            exit_code=2,
            device_facts={"pci_bus_id": "00000000:41:00.0"},
            xid=XidFacts(True, ("NVRM: Xid (PCI:0000:41:00): 94, Contained: SM (0x1)",)),
        ),
        COMMAND,
        {"stderr": LINE_700},
        "fault",
        "ecc",
    ),
    "poisoned-context": (
        ProbeFacts(
            exit_code=1,
            breadcrumbs=crumbs("import", "context", "launch", "allocate"),
            result={"steps": [{}, {}], **error(step="allocate", number=700, cuda_name="CUDA_ERROR_ILLEGAL_ADDRESS")},
        ),
        KERNEL,
        {},
        "fault",
        "poisoned-context",
    ),
    "sticky-code": (ProbeFacts(exit_code=2), COMMAND, {"stderr": LINE_700}, "fault", "illegal-address"),
    "dump-begun": (
        ProbeFacts(signal=6),
        Expectations(observer="coredump"),
        {
            "stderr": b"[1] coredump: Starting GPU coredump generation\n"
            b"[1] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)\n"
        },
        "fault",
        "illegal-address",
    ),
    "tool-never-ran": (ProbeFacts(exit_code=1), MEMCHECK, {"stderr": b"CUDA_ERROR_NOT_FOUND"}, "unresolved", None),
    "not-supported": (
        ProbeFacts(exit_code=1, result=error(type="NotSupported", text="wgmma is not emulated")),
        KERNEL,
        {},
        "unresolved",
        None,
    ),
    "not-compiled": (
        ProbeFacts(exit_code=1, result=error(type="CompileError", log='a.cu(3): error: identifier "x" is undefined')),
        KERNEL,
        {},
        "unresolved",
        None,
    ),
    "ended-by-us": (ProbeFacts(signal=15, killed_by_us="interrupted"), COMMAND, {}, "unresolved", None),
    "out-of-memory": (
        ProbeFacts(exit_code=2),
        COMMAND,
        {"stderr": b"CUDA error: out of memory\n"},
        "fault",
        "out-of-memory",
    ),
    "launch-error": (
        ProbeFacts(exit_code=2),
        COMMAND,
        {"stderr": b"GPUassert: invalid configuration argument a.cu 54\n"},
        "fault",
        "launch-limit",
    ),
    "skipped-launch": (ProbeFacts(exit_code=0), COMMAND, {"driver_log": LOG_LAUNCH}, "skipped", None),
    "environment-error": (
        ProbeFacts(exit_code=1),
        COMMAND,
        {"stderr": b"RuntimeError: CUDA error: no CUDA-capable device is detected\n"},
        "unresolved",
        None,
    ),
    "other-cuda-error": (
        ProbeFacts(exit_code=1),
        COMMAND,
        {"stderr": b"CUDA error: invalid resource handle\n"},
        "fault",
        "other-cuda",
    ),
    "timed-out": (
        ProbeFacts(
            signal=9, timed_out=True, wall_s=30.0, breadcrumbs=crumbs("import", "context", "launch", "synchronise")
        ),
        KERNEL,
        {},
        "hang",
        None,
    ),
    "tool-unhealthy": (
        ProbeFacts(exit_code=0),
        MEMCHECK,
        {"sanitizer_log": b"========= COMPUTE-SANITIZER\n"},
        "unresolved",
        None,
    ),
    "wrong-result": (
        ProbeFacts(
            exit_code=0,
            breadcrumbs=FINISHED,
            result={**DONE, "comparison": {"outputs": {"out": {"elements": 4, "differing": 2}}}},
        ),
        KERNEL,
        {},
        "wrong",
        None,
    ),
    "died-after-finish": (
        ProbeFacts(signal=11, breadcrumbs=FINISHED, result=DONE),
        KERNEL,
        {},
        "fault",
        "died-after-finish",
    ),
    "failed-before-context": (
        ProbeFacts(
            exit_code=1, breadcrumbs=crumbs("import"), result=error(step="import", type="ModuleNotFoundError", text="x")
        ),
        PYTHON,
        {},
        "unresolved",
        None,
    ),
    "host-exception": (
        ProbeFacts(exit_code=1),
        COMMAND,
        {
            "stderr": b'Traceback (most recent call last):\n  File "bench.py", line 7, in main\n    f()\n'
            b"ValueError: bad shape\n"
        },
        "fault",
        "host-exception",
    ),
    "host-signal": (ProbeFacts(signal=11), COMMAND, {}, "fault", "host-signal"),
    "host-exit": (ProbeFacts(exit_code=3), COMMAND, {}, "fault", "host-exit"),
    "outlived": (ProbeFacts(exit_code=0, survivors=(77,)), COMMAND, {}, "unresolved", None),
    "success-missing": (
        ProbeFacts(exit_code=0),
        Expectations(success="^PASS$"),
        {"stdout": b"FAIL\n"},
        "wrong",
        None,
    ),
    "not-proven": (ProbeFacts(exit_code=0, breadcrumbs=crumbs("import", "launch")), KERNEL, {}, "unresolved", None),
    "passes": (ProbeFacts(exit_code=0), COMMAND, {"driver_log": b""}, "pass", None),
}
"""Rule -> facts that only it decides, and its outcome and fault kind. core-exception is shown by the recorded cores."""


def test_every_rule_of_the_table_has_a_row_here() -> None:
    assert [rule.name for rule in TABLE if rule.name != "core-exception"] == list(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_rule_decides_what_it_is_for(name: str) -> None:
    facts, expected, files, outcome, kind = ROWS[name]
    rule, verdict = asked(facts, expected, **files)
    assert (rule, verdict.outcome.value) == (name, outcome)
    assert (verdict.fault.kind.value if verdict.fault else None) == kind
    assert verdict.reason
    assert (verdict.proof is not None) == (outcome == "pass")
    assert outcome in next(row.gives for row in TABLE if row.name == name)


def test_every_rule_says_what_it_is_for() -> None:
    for rule in TABLE:
        assert len(rule.says) > 30, rule.name
