"""Diagnosis of 63 recorded faults: the recordings answer the experiments, and the true explanation must come out.

`TRUE` has for each fault the explanation that its source deserves, and what else may be supported because it is also
true; nothing else may be. `noticed-late` is a statement about the report and may always be supported.
"""

from __future__ import annotations

import dataclasses
from typing import NoReturn

import pytest
from diagnose_recorded import answered, diagnosed, faults

from cudadiag.diagnose.engine import Diagnosis
from cudadiag.diagnose.explanations import EXPLANATIONS
from cudadiag.diagnose.interface import Status
from cudadiag.diagnose.subject import Rule

OOB, WAIT, BARRIER, HOST = "out-of-bounds", "endless-wait", "barrier-misuse", "host-program"
LIMIT, MEMORY = "launch-limit", "memory-exhausted"
TRUE: dict[str, tuple[str | None, set[str]]] = {
    "assert": ("own-check", set()),
    "async_race": (OOB, set()),
    "async_use_after_free": (OOB, set()),
    "bad_fn_table": (OOB, {"wild-jump", "buffer-mismatch"}),  # the table is read beyond its end, then jumped through
    "bad_pc_data": (WAIT, set()),
    "bad_pc_low": (WAIT, set()),
    "bad_pc_misaligned": ("wild-jump", set()),  # the address of a jump is what is misaligned
    "bad_syncwarp": (BARRIER, set()),
    "block_divergence": (BARRIER, set()),
    "cluster_gone": ("race", set()),
    "cluster_range": (OOB, set()),
    "device_heap": (OOB, set()),
    "divergent_barrier": (BARRIER, set()),
    "double_free": (HOST, set()),
    "ends_early": (OOB, set()),
    "free_twice": (OOB, set()),
    "grid_y": (LIMIT, set()),
    "grid_zero": (LIMIT, set()),
    "hang": ("uninitialised", {WAIT}),  # it spins on a flag that nobody wrote
    "host_abort": (HOST, set()),
    "host_exit3": (HOST, set()),
    "host_kill": (HOST, set()),
    "host_pointer": (OOB, set()),
    "host_segv": (HOST, set()),
    "host_throw": (HOST, set()),
    "image_00": ("miscompile", set()),
    "image_ff": ("miscompile", set()),
    "inlined": (OOB, set()),
    # The address is shown; that an index wrapped only fits it (an index may be that wrong by itself).
    "int32_overflow": (OOB, {"integer-overflow"}),
    "late_malloc": (OOB, set()),
    "late_memcpy": (OOB, set()),
    "late_unchecked": (OOB, set()),
    "load_far": (OOB, set()),
    "many_blocks": (OOB, set()),
    "misaligned": ("misalignment", set()),
    "no_image": ("miscompile", set()),
    "null": (OOB, set()),
    "oob_far": (OOB, set()),
    "oob_near": (OOB, {"buffer-mismatch"}),
    "oom": (MEMORY, set()),
    "oom_loop": (MEMORY, set()),
    "race": ("race", set()),
    "shared_oob_far": (OOB, set()),
    "shared_oob_near": (OOB, set()),
    "smem_attr": (LIMIT, set()),
    "smem_over": (LIMIT, set()),
    "stack_overflow": ("stack-overflow", set()),
    "template": (OOB, set()),
    "template_near": (OOB, {"buffer-mismatch"}),
    "too_many_threads": (LIMIT, set()),
    "trap": ("own-check", set()),
    "uninit": ("uninitialised", set()),
    "use_after_free": (OOB, set()),
    "use_after_free_big": (OOB, set()),
    "wrong_space": (OOB, set()),
    # Nothing fails under the options recorded: nothing may be supported.
    **dict.fromkeys(
        ("heap_leak", "leak", "local_far", "no_cuda_work", "ok", "shared_uninit", "unused"),
        (None, set()),
    ),
    "warp_hazard": (None, set()),
}


def found(fault: str, *, everything: bool = False) -> tuple[Diagnosis, list[str]]:
    plan, history = diagnosed(fault, everything=everything)
    diagnosis = plan.diagnosis(history)
    assert diagnosis is not None
    return diagnosis, [judged.line.tag for judged in history]


def supported(diagnosis: Diagnosis) -> set[str]:
    return {w.explanation.name for w in diagnosis.weighed if w.finding.status is Status.SUPPORTED}


def test_every_recorded_fault_has_its_truth() -> None:
    assert set(TRUE) == set(faults())


@pytest.mark.parametrize("fault", TRUE)
def test_the_true_explanation_is_supported_and_no_false_one(fault: str) -> None:
    true, also = TRUE[fault]
    diagnosis, _ = found(fault)
    assert (diagnosis.cause.explanation.name if diagnosis.cause else None) == true
    assert supported(diagnosis) - also - {"noticed-late"} == ({true} if true else set())


@pytest.mark.parametrize("fault", TRUE)
def test_with_every_experiment_the_true_explanation_stays_supported(fault: str) -> None:
    true = TRUE[fault][0]
    diagnosis, tags = found(fault, everything=True)
    if true is not None:
        assert true in supported(diagnosis)
    assert set(tags) >= {"plain", "memcheck", "racecheck", "initcheck", "synccheck", "coredump", "repeat"}


def test_the_same_evidence_gives_the_same_diagnosis() -> None:
    for fault in ("oob_far", "hang", "image_ff"):
        plan, history = diagnosed(fault)
        assert plan.diagnosis(history) == plan.diagnosis(list(history))
        assert not plan.next(history).tasks  # a run that is judged again asks for nothing more


def test_only_experiments_that_can_tell_explanations_apart_are_made() -> None:
    """A launch that is refused needs no checker; a bad access that memcheck names needs no race checker."""
    assert set(found("grid_y")[1]) == {"as-judged", "repeat", "plain"}
    assert set(found("oob_far")[1]) == {"as-judged", "memcheck", "repeat", "plain"}
    _, tags = found("oob_near")
    assert "racecheck" not in tags


def test_a_cause_that_is_shown_names_its_probes_and_its_rivals() -> None:
    diagnosis, _ = found("oob_far")
    assert diagnosis.cause is not None
    assert diagnosis.cause.finding.probes
    assert "not excluded" in diagnosis.sureness
    assert "store_at at zoo.cu:16" in diagnosis.cause.finding.why


def test_names_are_unique_and_every_explanation_speaks() -> None:
    names = [explanation.name for explanation in EXPLANATIONS]
    assert len(names) == len(set(names)) == 19
    for explanation in EXPLANATIONS:
        assert explanation.title
        assert explanation.predicts
        assert explanation.advice


def test_a_hang_whose_rule_has_a_modulus_suggests_a_size_that_is_no_multiple() -> None:
    plan, history = diagnosed("bad_pc_low")
    rules = (Rule("hang", "nodes % 4 != 0"),)
    told = dataclasses.replace(plan.about.subject or fail(), rules=rules)
    diagnosis = dataclasses.replace(plan, about=dataclasses.replace(plan.about, subject=told)).diagnosis(history)
    assert diagnosis is not None
    assert diagnosis.cause is not None
    assert diagnosis.cause.explanation.name == "misalignment"
    assert diagnosis.cause.finding.strength == "suggested"
    assert "it hangs where nodes % 4 != 0" in diagnosis.cause.finding.why
    assert diagnosis.standing("endless-wait").status is Status.SUPPORTED


def test_without_the_tool_nothing_is_refuted_that_only_it_could_refute() -> None:
    plan, _ = diagnosed("oob_far")
    setting = dataclasses.replace(plan.about.setting, tool_problem="compute-sanitizer was not found")
    bare = dataclasses.replace(plan, about=dataclasses.replace(plan.about, setting=setting))
    diagnosis = bare.diagnosis(answered(bare, "oob_far"))
    assert diagnosis is not None
    assert diagnosis.cause is not None
    assert diagnosis.cause.explanation.name == OOB
    assert diagnosis.cause.finding.strength == "suggested"
    assert "nobody recorded it" in diagnosis.sureness
    for name in ("race", "uninitialised", "barrier-misuse"):
        assert diagnosis.standing(name).status is Status.UNTESTED
        assert "compute-sanitizer was not found" in diagnosis.standing(name).why


def fail() -> NoReturn:
    raise AssertionError("the question has no subject")
