"""The runs of `diagnose` and `sanitize` on an H200, weighed again: the true explanation supported, no false one."""

from __future__ import annotations

import click
import h200_diagnoses
import pytest
from h200_diagnoses import recorded

from cudadiag.cli import diagnose
from cudadiag.cli.bisect import lines_of
from cudadiag.cli.explain import findings
from cudadiag.diagnose.interface import Status
from cudadiag.model import Outcome

OOB = "out-of-bounds"
TRUE = {
    "verify_attn": (OOB, {"buffer-mismatch"}),
    "tree_flat": ("miscompile", {"noticed-late"}),
    "bulk_tail": ("misalignment", {"endless-wait"}),  # a copy of a size that is no multiple of 16 never completes
    "commit_none": (OOB, set()),
    "decode_loop": (OOB, {"buffer-mismatch", "noticed-late"}),
    "leaky_sweep": ("memory-exhausted", {"carried-over"}),
    "hang": ("endless-wait", set()),
    "race": ("race", set()),
    "int32_overflow": (OOB, {"integer-overflow", "noticed-late"}),
    "illegal_instruction": ("miscompile", {"noticed-late"}),
    "damaged": ("miscompile", {"noticed-late"}),  # a program whose machine code is damaged, its PTX is not
    "silent": ("miscompile", {"host-program"}),  # the same where a store is left out: it exits with 1
    "device_heap": (OOB, {"noticed-late"}),
    "verify_attn_two": (OOB, {"buffer-mismatch"}),  # on two GPUs
}


def why(name: str, explanation: str) -> str:
    return recorded(f"diagnose_{name}").diagnosis.standing(explanation).why


@pytest.mark.parametrize("name", TRUE)
def test_the_true_explanation_is_supported_and_no_false_one(name: str) -> None:
    true, also = TRUE[name]
    found = recorded(f"diagnose_{name}").diagnosis
    assert found.cause is not None
    assert found.cause.explanation.name == true
    supported = {w.explanation.name for w in found.weighed if w.finding.status is Status.SUPPORTED}
    assert supported == {true, *also}


@pytest.mark.parametrize("name", TRUE)
def test_a_run_weighed_again_asks_for_no_more(name: str) -> None:
    run = recorded(f"diagnose_{name}")
    plan = diagnose.plan_of(run.ledger.run.settings["search"], run.ledger.run.sweep, ("cuda:GPU-recorded",))
    assert not plan.next(run.history).tasks


def test_the_three_hypotheses_of_the_crash_at_a_synchronisation_are_answered() -> None:
    assert "`scores` (9437184 bytes) ends where verify_attn at verify_attn.cu:108 goes on" in why(
        "verify_attn", "buffer-mismatch"
    )
    assert "no overrun of q, kv, vis or out was recorded" in why("verify_attn", "buffer-mismatch")
    assert "its buffers take 20.4 MiB of 138.8 GiB free" in why("verify_attn", "memory-exhausted")
    assert why("verify_attn", "carried-over").startswith("it fails alone, in a fresh process")
    assert "right at the end of `scores` (row 575)" in why("verify_attn", OOB)


def test_the_hypotheses_of_the_illegal_instruction_are_answered() -> None:
    told = why("tree_flat", "miscompile")
    assert "an illegal instruction in tree_flat at tree_flat.cu:23" in told
    assert "no instruction: Unrecognized operation" in told
    assert why("tree_flat", "misalignment") == "the device reported 715; a misaligned access gives 716"
    assert "3 of 3 failed in fresh processes" in why("tree_flat", "hardware-or-chance")
    for tool, name in (("memcheck", OOB), ("synccheck", "barrier-misuse"), ("racecheck", "race")):
        assert why("tree_flat", name).startswith(f"{tool} checked the run up to its fault")


def test_a_hang_shows_where_its_threads_stand() -> None:
    assert "bulk_tail.cu:42" in why("bulk_tail", "endless-wait")
    assert "nodes % 4 != 0" in why("bulk_tail", "misalignment")
    assert why("bulk_tail", "miscompile") == (
        "without optimisation it fails too, compiled by the driver from PTX it fails too"
    )
    assert recorded("diagnose_bulk_tail").diagnosis.standing("race").status is Status.UNTESTED


def test_machine_code_made_in_another_way_is_right_where_the_usual_is_damaged() -> None:
    built = "without optimisation it is right, compiled by the driver from PTX it is right"
    assert why("illegal_instruction", "miscompile").endswith(built)
    assert why("damaged", "miscompile").endswith("compiled by the driver from PTX it is right")
    assert why("silent", "miscompile") == "compiled by the driver from PTX it is right"
    found = recorded("diagnose_silent").diagnosis
    assert "suggested, nobody recorded it" in found.sureness


def test_the_probes_of_a_diagnosis_on_two_gpus_ran_on_both() -> None:
    run = recorded("diagnose_verify_attn_two")
    assert len({judged.line.device for judged in run.history}) == 2


def test_cuda_gdb_was_asked_about_the_core_files() -> None:
    for name in ("diagnose_hang", "diagnose_illegal_instruction"):
        assert any("cuda-gdb agrees" in line for line in recorded(name).lines()), name


def test_a_core_dump_that_never_ends_has_seen_nothing() -> None:
    found = recorded("sanitize_oob_far_hung").agreement_of_sanitize
    assert found.unresolved == ("coredump",)
    assert "coredump" not in found.found_by
    assert found.masked_by == ("initcheck",)


def test_what_is_never_freed_is_named_on_a_gpu() -> None:
    text = "\n".join(recorded("sanitize_leaky_kernel").lines())
    assert "Leaked 128 bytes" in text
    assert "(`work`)" in text
    assert "only under memcheck" in text


def test_the_leak_is_measured() -> None:
    told = why("leaky_sweep", "memory-exhausted")
    assert "returned out of memory for `workspace`" in told
    assert "free memory falls by 8.0 GiB a shape, from 139.3 GiB to 3.3 GiB in 18 shapes" in told


def test_a_swallowed_store_is_masked_and_a_tool_alone_is_named() -> None:
    masked = "\n".join(recorded("sanitize_oob_far").lines())
    assert "masked by initcheck" in masked
    assert "STG.E" in masked  # the instruction at the pc of its core file
    assert why("race", "race") == "hazard in reverse at race.cu:5, with the read at line 6"
    for name, tool in (("race", "racecheck"), ("uninit", "initcheck"), ("divergent_barrier", "synccheck")):
        found = recorded(f"sanitize_{name}").agreement_of_sanitize
        assert (found.outcome, found.only_under) == (Outcome.FAULT, tool)


def test_bisect_tells_the_cause_that_another_observer_found() -> None:
    run = recorded("bisect_tree_flat")
    text = [click.unstyle(line) for line in lines_of(findings(run.ledger, None))]
    fault = next(line for line in text if line.startswith("fault "))
    assert "CUDA_ERROR_ILLEGAL_INSTRUCTION (715); noticed by cuLaunchKernel; caused in" in fault
    assert "tree_flat.cu:23" in fault
    assert any("found by blocking, the cause by memcheck (probe 30)" in line for line in text)
    assert "  found by plain, blocking and memcheck" in text
    assert "Probes  28 processes" in "\n".join(text)  # those of the search


def test_the_page_is_what_the_ledgers_say() -> None:
    text = "\n".join(h200_diagnoses.page()).rstrip() + "\n"
    assert text == h200_diagnoses.PAGE.read_text(), "run tests/diagnose/h200_diagnoses.py"
