"""What does not refute, and what is not shown: refused calls, small buffers, hangs, what a tool does not look at."""

from __future__ import annotations

import dataclasses

import pytest
from diagnose_recorded import diagnosed, judged
from h200_diagnoses import recorded
from test_diagnose_claims import GIB, at, evidence, standing, without_log

from cudadiag.diagnose.engine import diagnosis
from cudadiag.diagnose.explanations.overflow import wraps
from cudadiag.diagnose.interface import Status, Strength
from cudadiag.diagnose.subject import Rule
from cudadiag.evidence import from_json, to_json
from cudadiag.evidence.allocations import Buffer
from cudadiag.evidence.core.reader import MAX_RUNNING
from cudadiag.session.judged import Judged

KERNEL_FAULTS = (
    "integer-overflow", "out-of-bounds", "miscompile", "barrier-misuse", "race", "uninitialised", "buffer-mismatch",
)  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "what"), [("oom", "an allocation"), ("oom_loop", "an allocation"), ("grid_y", "a launch")]
)
def test_a_call_that_was_refused_says_nothing_of_what_ran_before(fault: str, what: str) -> None:
    for name in KERNEL_FAULTS:
        found = standing(fault, name)
        assert found.status is Status.UNTESTED, name
        assert f"{what} was refused; what ran before is not known" in found.why


def test_kernels_that_a_worker_launched_before_are_known() -> None:
    found = recorded("diagnose_leaky_sweep").diagnosis
    for name in KERNEL_FAULTS:
        assert found.standing(name).status is Status.UNTESTED, name
        assert "an allocation was refused; kernels ran before it" in found.standing(name).why


def test_a_checker_that_ran_to_the_refused_call_refutes() -> None:
    plan, history = diagnosed("grid_y", everything=True)
    found = plan.diagnosis(history)
    assert found is not None
    assert found.standing("barrier-misuse").status is Status.REFUTED
    assert found.standing("barrier-misuse").why.startswith("synccheck checked the run")


@pytest.mark.parametrize("name", ["verify_attn", "commit_none", "decode_loop", "bulk_tail"])
def test_small_buffers_do_not_exclude_a_number_that_wraps_on_the_way(name: str) -> None:
    found = recorded(f"diagnose_{name}").diagnosis.standing("integer-overflow")
    assert found.status is Status.UNTESTED
    assert "a number on the way to it may" in found.why


def test_an_assert_may_have_caught_a_wrapped_index_and_a_null_pointer_is_none() -> None:
    assert standing("assert", "integer-overflow").status is Status.UNTESTED
    assert standing("null", "integer-overflow").status is Status.REFUTED
    assert standing("misaligned", "integer-overflow").status is Status.UNTESTED


def test_every_multiple_of_2_to_the_32_that_fits_is_named() -> None:
    p = Buffer("p", 100 * GIB, 14 * GIB, "uint8", (14 * GIB,))
    found = next(wraps(at(p.address - 20_000_000, 1, p), [p]))
    assert (found.unit, found.index, found.most) == (1, -20_000_000, 3)
    assert "a multiple of 2^32 bytes before 3 places in `p`" in found.words
    for k in (1, 2, 3):
        assert str(k * (1 << 32) - 20_000_000) in found.words
    edge = Buffer("p", 100 * GIB, (4 << 30) - 20_000_000, "uint8")
    assert list(wraps(at(edge.address - 20_000_000, 1, edge), [edge])) == []  # one byte behind its end
    larger = dataclasses.replace(edge, size=edge.size + 1)
    assert [wrap.most for wrap in wraps(at(edge.address - 20_000_000, 1, larger), [larger])] == [1]


@pytest.mark.parametrize("rule", ["nodes < 4", "nodes >= 17 and streams == 2"])
def test_a_hang_whose_rule_has_no_modulus_does_not_refute_misalignment(rule: str) -> None:
    plan, history = diagnosed("bad_pc_low")
    about_it = plan.about
    assert about_it.subject is not None
    told = dataclasses.replace(about_it.subject, rules=(Rule("hang", rule),))
    found = dataclasses.replace(plan, about=dataclasses.replace(about_it, subject=told)).diagnosis(history)
    assert found is not None
    assert found.standing("misalignment").status is Status.UNTESTED
    assert f"the rule (`{rule}`) has no modulus, which does not exclude it" in found.standing("misalignment").why


def test_initcheck_of_global_memory_refutes_only_where_no_shared_memory_is_used() -> None:
    found = standing("shared_uninit", "uninitialised")  # planted, and this tool cannot see it
    assert found.status is Status.UNTESTED
    assert "recorded no uninitialised read in global memory; it did not look at shared memory" in found.why
    tree = recorded("diagnose_tree_flat").diagnosis.standing("uninitialised")
    assert tree.status is Status.REFUTED
    assert tree.why.endswith("(global memory; the kernel uses no shared memory)")


def asked_for_all_spaces(one: Judged) -> Judged:
    """The same probe, had its tool been one that takes the option."""
    launch = {"argv": ["compute-sanitizer", "--tool", "initcheck", "--initcheck-address-space", "all"]}
    line = dataclasses.replace(one.line, facts=dataclasses.replace(one.line.facts, launch=launch))
    return dataclasses.replace(one, line=line)


def test_initcheck_of_all_memory_refutes() -> None:
    plan, history = diagnosed("ok")
    told = [asked_for_all_spaces(j) if j.line.observer == "initcheck" else j for j in history]
    found = plan.diagnosis(told)
    assert found is not None
    assert found.standing("uninitialised").status is Status.REFUTED
    assert found.standing("uninitialised").why.endswith("(global and shared memory)")


def test_memcheck_that_found_nothing_says_where_it_looked() -> None:
    found = standing("local_far", "out-of-bounds")  # an overrun in local memory, which it does not see
    assert found.why.endswith("recorded no bad access (global and shared memory)")
    assert "global and shared" not in standing("null", "out-of-bounds").why


def test_on_a_device_a_number_that_only_a_text_carries_is_called_printed() -> None:
    """Recorded with a driver's log: without it the program's word is all there is, and it ran on a GPU."""
    history = [judged("oom", "blocking"), judged("oom", "plain", 2)]
    logged = diagnosis(evidence("oom", history)).standing("memory-exhausted")
    assert (logged.strength, logged.why) == (Strength.SHOWN, "cudaMalloc returned out of memory")
    printed = diagnosis(evidence("oom", [without_log(j) for j in history])).standing("memory-exhausted")
    assert printed.strength is Strength.SHOWN
    assert printed.why.startswith("the program printed cudaErrorMemoryAllocation (2)")


def at_so_many_places(one: Judged, count: int) -> Judged:
    """The hang of a core file whose warps stand at so many places, none of them at a jump."""
    reading = from_json(one.line.reading)
    assert reading.core is not None
    (standing,) = reading.core.running
    spread = tuple(dataclasses.replace(standing, pc=16 * n, instruction="BRA 0x10") for n in range(count))
    changed = dataclasses.replace(reading, core=dataclasses.replace(reading.core, running=spread))
    return dataclasses.replace(one, line=dataclasses.replace(one.line, reading=to_json(changed)))


@pytest.mark.parametrize(("count", "status"), [(5, Status.REFUTED), (MAX_RUNNING, Status.UNTESTED)])
def test_places_that_were_left_out_refute_no_jump(count: int, status: Status) -> None:
    plan, history = diagnosed("hang")
    told = [at_so_many_places(j, count) if j.line.observer == "coredump" else j for j in history]
    found = plan.diagnosis(told)
    assert found is not None
    assert found.standing("wild-jump").status is status


@pytest.mark.parametrize(
    ("fault", "name", "number"), [("no_image", "miscompile", 209), ("too_many_threads", "launch-limit", 1)]
)
def test_what_a_program_on_a_gpu_printed_is_called_so(fault: str, name: str, number: int) -> None:
    history = [without_log(judged(fault, "blocking")), without_log(judged(fault, "plain", 2))]
    found = diagnosis(evidence(fault, history)).standing(name)
    assert found.strength is Strength.SHOWN
    assert found.why.startswith("the program printed cudaError")
    assert f"({number})" in found.why
