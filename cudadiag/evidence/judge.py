"""`judge`: the facts of a probe to its outcome, by one table of ordered rules. The first rule that speaks decides.

What the device did comes first (a checker's finding is a fault even where the program exits 0, was killed, or failed in
another way), then what makes a probe worthless as evidence, then what the host program did, then the proof of a pass.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudadiag.evidence.expectations import Expectations
from cudadiag.evidence.reading import Reading
from cudadiag.evidence.rules import device, host, tools
from cudadiag.evidence.rules.view import Evidence
from cudadiag.model import Verdict

if TYPE_CHECKING:
    from harness.records import ProbeFacts

Decide = Callable[[Evidence], Verdict | None]


@dataclass(frozen=True)
class Rule:
    """One row of the table. `gives` lists the outcomes it can give."""

    decide: Decide
    gives: str

    @property
    def name(self) -> str:
        return self.decide.__name__.replace("_", "-")

    @property
    def says(self) -> str:
        """The rule in words: its function's docstring on one line."""
        return " ".join((inspect.getdoc(self.decide) or "").split())


TABLE: tuple[Rule, ...] = (
    Rule(tools.requirement_unmet, "unresolved"),
    Rule(tools.not_started, "unresolved"),
    Rule(device.checker_record, "fault, hang"),
    Rule(device.sanitizer_finding, "fault"),
    Rule(device.device_assert, "fault"),
    Rule(device.core_exception, "fault"),
    Rule(device.hardware_xid, "fault"),
    Rule(device.poisoned_context, "fault"),
    Rule(device.sticky_code, "fault"),
    Rule(device.dump_begun, "fault"),
    Rule(tools.tool_never_ran, "unresolved"),
    Rule(tools.not_supported, "unresolved"),
    Rule(tools.not_compiled, "unresolved"),
    Rule(tools.ended_by_us, "unresolved"),
    Rule(device.out_of_memory, "fault, unresolved"),
    Rule(device.launch_error, "fault"),
    Rule(device.skipped_launch, "skipped"),
    Rule(device.environment_error, "unresolved"),
    Rule(device.other_cuda_error, "fault"),
    Rule(tools.timed_out, "hang, unresolved"),
    Rule(tools.tool_unhealthy, "unresolved"),
    Rule(host.wrong_result, "wrong"),
    Rule(host.died_after_finish, "fault"),
    Rule(host.failed_before_context, "unresolved"),
    Rule(host.host_exception, "fault"),
    Rule(host.host_signal, "fault"),
    Rule(host.host_exit, "fault"),
    Rule(tools.outlived, "unresolved"),
    Rule(host.success_missing, "wrong"),
    Rule(host.not_proven, "unresolved"),
    Rule(host.passes, "pass"),
)


def judge(facts: ProbeFacts, reading: Reading, expectations: Expectations) -> Verdict:
    """What the facts of one probe mean. Pure; never raises for facts of a known shape."""
    return decided(facts, reading, expectations)[1]


def decided(facts: ProbeFacts, reading: Reading, expectations: Expectations) -> tuple[Rule, Verdict]:
    """The verdict and the rule that gave it, for `explain`."""
    evidence = Evidence(facts, reading, expectations)
    for rule in TABLE:
        verdict = rule.decide(evidence)
        if verdict is not None:
            return rule, verdict
    raise AssertionError("the last rule always decides")
