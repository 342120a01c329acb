"""Facts, files and expectations that the tests of the table of rules are made of."""

from __future__ import annotations

from typing import Any

from cudadiag.evidence import Expectations, decided, read
from cudadiag.model import Fault, Verdict
from harness.records import Breadcrumb, ProbeFacts

LOG_700 = b"[12:00:00.000][140][CUDA][E] Returning 700 (CUDA_ERROR_ILLEGAL_ADDRESS) from cuCtxSynchronize_v2\n"
LOG_LAUNCH = (
    b"[12:00:00.000][140][CUDA][E] Grid Dimension Y of 70000 exceeds maximum value of 65535\n"
    b"[12:00:00.001][140][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernel\n"
)
CLEAN_REPORT = b"========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
LINE_700 = b'CUDA error at a.cu:12 code=700(cudaErrorIllegalAddress) "cudaDeviceSynchronize()"\n'
FINISHED = (Breadcrumb("import", 0.1), Breadcrumb("launch", 0.2), Breadcrumb("finished", 0.3))
COMMAND = Expectations(target="command", observer="blocking")
KERNEL = Expectations(target="kernel", observer="blocking", compared=True)
PYTHON = Expectations(target="python", observer="blocking")
MEMCHECK = Expectations(target="command", observer="memcheck")
DONE: dict[str, Any] = {
    "finished": True,
    "synchronised": True,
    "comparison": {"outputs": {"out": {"elements": 4, "differing": 0}}},
}


def crumbs(*steps: str) -> tuple[Breadcrumb, ...]:
    return tuple(Breadcrumb(step, float(at)) for at, step in enumerate(steps))


def asked(facts: ProbeFacts, expected: Expectations = COMMAND, **files: bytes) -> tuple[str, Verdict]:
    rule, verdict = decided(facts, read(files, success=expected.success), expected)
    return rule.name, verdict


def fault_of(verdict: Verdict) -> Fault:
    assert verdict.fault is not None
    return verdict.fault


def error(**fields: Any) -> dict[str, Any]:
    return {"error": fields}
