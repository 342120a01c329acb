"""No explanation claims more than its evidence: recordings and ledgers of an H200, with what is said of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
from diagnose_recorded import about, answered, diagnosed, judged
from h200_diagnoses import recorded
from test_diagnose_instruction import seen

from cudadiag.diagnose.engine import Diagnosis, diagnosis
from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.explanations.instructions import sort_of_access, sort_of_jump
from cudadiag.diagnose.explanations.overflow import all_buffers, wraps
from cudadiag.diagnose.interface import Finding, Status, Strength
from cudadiag.evidence import Expectations, to_json
from cudadiag.evidence.allocations import Buffer, locate, position, words
from cudadiag.model import Allocation, Caused
from cudadiag.session.judged import Judged
from cudadiag.session.judging import Judging
from harness import tools

NVDISASM = pytest.mark.skipif(tools.find("nvdisasm") is None, reason="nvdisasm is not here")
GIB = 1 << 30


def evidence(fault: str, history: Sequence[Judged], **changed: object) -> Evidence:
    """What these probes of a recorded fault say, where the setting is changed so."""
    found = dataclasses.replace(about(fault), setting=dataclasses.replace(about(fault).setting, **changed)).evidence(
        history
    )
    assert found is not None
    return found


def standing(fault: str, name: str) -> Finding:
    plan, history = diagnosed(fault)
    found = plan.diagnosis(history)
    assert found is not None
    return found.standing(name)


def without_tools(fault: str, **changed: object) -> Diagnosis:
    """A diagnosis where compute-sanitizer cannot be had."""
    plan, _ = diagnosed(fault)
    setting = dataclasses.replace(plan.about.setting, tool_problem="compute-sanitizer was not found", **changed)
    bare = dataclasses.replace(plan, about=dataclasses.replace(plan.about, setting=setting))
    found = bare.diagnosis(answered(bare, fault))
    assert found is not None
    return found


# -- integer-overflow --------------------------------------------------------------------------------------------------


def at(address: int, size: int, near: Buffer) -> Caused:
    return Caused(address=address, size=size, allocation=locate(address, [near]))


def test_a_wrapped_index_is_2_to_the_32_elements_off_never_2_to_the_31() -> None:
    found = standing("int32_overflow", "integer-overflow")
    assert (found.status, found.strength) == (Status.SUPPORTED, Strength.SUGGESTED)  # an index may be wrong by itself
    assert "2^32 elements of 4 bytes before byte 8624640000 of" in found.why
    assert "index 2156160000 wraps to -2138807296" in found.why
    p = Buffer("p", 100 * GIB, 8 * GIB, "float32", (2 * GIB,))
    half = at(p.address + 145408 - 8 * GIB, 4, p)  # 2^31 elements before a place in p, which no index wraps to
    assert [wrap.meant for wrap in wraps(half, [p])] == []


@pytest.mark.parametrize("meant", [1 << 31, 2_400_000_000, (1 << 32) - (8 << 20)])
def test_a_byte_offset_wraps_by_2_to_the_32_bytes(meant: int) -> None:
    p = Buffer("p", 100 * GIB, 6 * GIB, "float32", (GIB + GIB // 2,))
    found = next(wraps(at(p.address + meant - (1 << 32), 4, p), [p]))
    assert (found.unit, found.index, found.meant) == (1, meant - (1 << 32), meant)
    assert found.words.startswith(f"2^32 bytes before byte {meant} of `p`")


def test_a_wrapped_index_is_within_32_bits_and_a_multiple_of_its_element() -> None:
    p = Buffer("p", 1000 * GIB, 40 * GIB, "float32", (10 * GIB,))
    assert list(wraps(at(p.address - 9 * GIB, 4, p), [p])) == []  # an index below -2^31
    assert [wrap.unit for wrap in wraps(at(p.address - 2 * GIB + 2, 4, p), [p])] == [1]
    assert list(wraps(at(p.address + 41 * GIB, 4, p), [p])) == []  # behind the buffer: not wrapped


def test_an_index_a_little_below_zero_is_not_refuted_where_a_wrapped_one_looks_alike() -> None:
    small, large = Buffer("a", 1000 * GIB, 4096, "float32"), Buffer("b", 1000 * GIB, 20 * GIB, "float32")
    assert list(wraps(at(small.address - 4, 4, small), [small])) == []
    assert next(wraps(at(large.address - 4, 4, large), [large])).meant == (1 << 32) - 1


def test_the_largest_buffer_is_looked_for_among_those_that_were_not_made_too() -> None:
    found = recorded("diagnose_leaky_sweep")
    largest = max(all_buffers(found.evidence), key=lambda buffer: buffer.size)
    assert (largest.name, largest.size) == ("workspace", 8 * GIB)
    assert "largest buffer" not in found.diagnosis.standing("integer-overflow").why


# -- wild-jump and misalignment ----------------------------------------------------------------------------------------


def test_716_without_an_access_suggests_a_jump_and_leaves_misalignment_open() -> None:
    found = standing("bad_pc_misaligned", "wild-jump")
    assert (found.status, found.strength) == (Status.SUPPORTED, Strength.SUGGESTED)
    assert standing("bad_pc_misaligned", "misalignment").status is Status.UNTESTED
    assert standing("misaligned", "misalignment").status is Status.SUPPORTED
    assert standing("misaligned", "wild-jump").why == "the misaligned access in misaligned at zoo.cu:20 is known"


def test_716_that_only_a_text_tells_suggests_a_misaligned_access_at_most() -> None:
    told = evidence(
        "misaligned", [judged("misaligned", "blocking"), judged("misaligned", "plain", 2)], tool_problem="none"
    )
    found = diagnosis(told).standing("misalignment")
    assert (found.status, found.strength) == (Status.SUPPORTED, Strength.SUGGESTED)
    assert diagnosis(told).standing("wild-jump").status is Status.UNTESTED


@pytest.mark.parametrize("fault", ["bad_pc_data", "bad_pc_low", "hang"])
def test_a_source_line_at_which_it_hangs_refutes_no_jump(fault: str) -> None:
    found = standing(fault, "wild-jump")
    assert found.status is Status.UNTESTED
    assert "the instruction there is not known" in found.why


def disassembled(fault: str, folder: Path) -> Diagnosis:
    """A recorded fault with the instructions of its core file, as a real run has them."""
    plan, history = diagnosed(fault)
    told = to_json(seen(fault, folder))
    judging = Judging(Expectations(target="command"))
    read = [
        judging.judged(dataclasses.replace(j.line, reading=told)) if j.line.observer == "coredump" else j
        for j in history
    ]
    found = plan.diagnosis(read)
    assert found is not None
    return found


@NVDISASM
@pytest.mark.parametrize(
    ("fault", "instruction"), [("bad_pc_data", "LDC.64 R6, c[0x2][R6]"), ("bad_pc_low", "CALL.REL.NOINC R6")]
)
def test_a_hang_at_a_jump_through_a_register_suggests_a_wild_jump(fault: str, instruction: str, tmp_path: Path) -> None:
    found = disassembled(fault, tmp_path)
    assert found.cause is not None
    assert found.cause.explanation.name == "wild-jump"
    assert found.cause.finding.strength is Strength.SUGGESTED
    assert instruction in found.cause.finding.why


@NVDISASM
def test_a_hang_at_another_instruction_refutes_a_wild_jump(tmp_path: Path) -> None:
    found = disassembled("hang", tmp_path).standing("wild-jump")
    assert found.status is Status.REFUTED
    assert "ISETP.NE.AND" in found.why
    assert "BRA" in recorded("diagnose_bulk_tail").diagnosis.standing("wild-jump").why


@NVDISASM
def test_716_at_the_load_of_a_jumps_target_is_a_jump(tmp_path: Path) -> None:
    found = disassembled("bad_pc_misaligned", tmp_path)
    assert found.standing("wild-jump").strength is Strength.SHOWN
    assert found.standing("misalignment").status is Status.REFUTED


@pytest.mark.parametrize(
    ("instruction", "jump", "access"),
    [
        ("CALL.REL.NOINC R6 `(_Z8call_rawPfy)", True, False),
        ("CALL.REL.NOINC `(deep)", False, False),
        ("@P0 RET.REL.NODEC R20 `(f)", True, False),
        ("@!P1 BRA `(.L_x_5)", False, False),
        ("BRX R2 -0x110", True, False),
        ("LDC.64 R6, c[0x2][R6]", True, False),
        ("LDC.64 R2, c[0x0][0x210]", False, True),
        ("@!UP0 LDG.E.128 R4, desc[UR4][R4.64+0x4]", False, True),
        ("RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", False, True),
        ("ISETP.NE.AND P0, PT, R0, RZ, PT", False, False),
        ("call", True, False),
        ("ld.global.v4.f32", False, True),
        (None, False, False),
    ],
)
def test_instructions_are_told_apart(instruction: str | None, jump: bool, access: bool) -> None:
    assert (sort_of_jump(instruction), sort_of_access(instruction)) == (jump, access)


# -- miscompile --------------------------------------------------------------------------------------------------------


def test_another_number_does_not_refute_wrong_machine_code_and_costs_no_probe() -> None:
    found = standing("oob_far", "miscompile")
    assert found.status is Status.UNTESTED
    assert "the device reported 700, which wrong machine code can give too" in found.why
    assert {judged.line.tag for judged in diagnosed("oob_far")[1]} == {"as-judged", "memcheck", "repeat", "plain"}
    decode = recorded("diagnose_decode_loop").diagnosis.standing("miscompile")
    assert decode.status is Status.UNTESTED
    assert "not built in another way" in decode.why


@pytest.mark.parametrize("fault", ["host_segv", "double_free"])
def test_what_is_no_fault_of_the_device_refutes_wrong_machine_code(fault: str) -> None:
    assert standing(fault, "miscompile").status is Status.REFUTED


# -- hardware-or-chance ------------------------------------------------------------------------------------------------


def moved(one: Judged, device: str) -> Judged:
    return dataclasses.replace(one, line=dataclasses.replace(one.line, device=device))


def test_three_failures_refute_chance_but_not_this_gpu() -> None:
    found = standing("oob_far", "hardware-or-chance")
    assert found.status is Status.UNTESTED
    assert found.why == (
        "3 of 3 failed in fresh processes: no chance; this GPU's hardware is not excluded "
        "(there is no other GPU, the kernel log was not readable)"
    )


def test_another_gpu_that_fails_too_or_a_readable_kernel_log_refutes_this_gpu() -> None:
    runs = [judged("oob_far", "blocking", number) for number in (1, 2, 3)]
    other = moved(judged("oob_far", "blocking", 4), "cuda:GPU-other")
    found = diagnosis(evidence("oob_far", [*runs, other], gpus=2)).standing("hardware-or-chance")
    assert (found.status, found.why) == (Status.REFUTED, "4 of 4 failed in fresh processes, on 2 GPUs")
    found = recorded("diagnose_tree_flat").diagnosis.standing("hardware-or-chance")
    assert found.status is Status.REFUTED
    assert "no Xid of failing hardware in the kernel log, no uncorrected ECC error counted before the run" in found.why
    found = recorded("diagnose_verify_attn_two").diagnosis.standing("hardware-or-chance")
    assert (found.status, found.why) == (Status.REFUTED, "4 of 4 failed in fresh processes, on 2 GPUs")


def test_a_gpu_on_which_nothing_else_fails_is_still_asked_for_where_there_is_one() -> None:
    plan, _ = diagnosed("oob_far")
    setting = dataclasses.replace(plan.about.setting, gpus=2)
    more = dataclasses.replace(plan, about=dataclasses.replace(plan.about, setting=setting, labels=("a", "b")))
    assert "other-gpu" in {judged.line.tag for judged in answered(more, "oob_far")}


def test_three_passes_refute_nothing() -> None:
    found = standing("ok", "hardware-or-chance")
    assert (found.status, found.why) == (Status.UNTESTED, "0 of 3 failed: a rare fault is not excluded")


# -- carried-over, own-check, memory-exhausted -------------------------------------------------------------------------


def test_memory_that_earlier_shapes_kept_is_carried_over_and_the_cause_stays_the_memory() -> None:
    found = recorded("diagnose_leaky_sweep").diagnosis
    carried = found.standing("carried-over")
    assert carried.status is Status.SUPPORTED
    assert carried.why == "it passes alone and fails after 17 others: memory that they did not free"
    assert found.cause is not None
    assert found.cause.explanation.name == "memory-exhausted"


def test_719_alone_is_no_proof_of_a_trap() -> None:
    for fault in ("trap", "cluster_range"):
        history = [judged(fault, "blocking", 1), judged(fault, "plain", 2)]
        found = diagnosis(evidence(fault, history, tool_problem="not found", device="cuda")).standing("own-check")
        assert found.status is Status.UNTESTED
        assert "it could be a trap" in found.why
    assert standing("trap", "own-check").status is Status.SUPPORTED


def test_a_null_pointer_in_a_kernel_leaves_the_devices_heap_open() -> None:
    for fault in ("device_heap", "null"):
        found = standing(fault, "memory-exhausted")
        assert found.status is Status.UNTESTED
        assert "malloc there gives one when the device's heap is full" in found.why
    assert standing("oob_far", "memory-exhausted").status is Status.REFUTED
    assert standing("cluster_range", "memory-exhausted").status is Status.REFUTED  # 0x400, but in shared memory


def test_what_was_asked_for_is_said_with_its_size() -> None:
    assert "out of memory for `workspace` (8.0 GiB), 3.3 GiB were free" in (
        recorded("diagnose_leaky_sweep").diagnosis.standing("memory-exhausted").why
    )


# -- words of addresses and numbers ------------------------------------------------------------------------------------


def test_a_null_pointer_and_a_far_address_are_called_so_first() -> None:
    out = Buffer("out", 0x7F00_0000_0000, 128, "float32", (4, 8))
    null = Allocation(out.address, out.size, out.address, "before", "out")
    assert words(null, buffers=[out], address=0) == "a null pointer"
    assert words(null, buffers=[out], address=16) == "a null pointer plus 16 bytes"
    far = Allocation(out.address, out.size, 32 * GIB, "after", "out")
    assert words(far, buffers=[out], address=out.address + 32 * GIB) == "far from every buffer, nearest is `out`"
    assert position(far, "out", str) == "far from every buffer, nearest is out"
    assert "bytes" not in standing("null", "out-of-bounds").why.partition("zoo.cu")[2]
    assert standing("late_malloc", "out-of-bounds").why.endswith(
        "nearest is the allocation at 0x7f8716c00000 of 512 bytes"
    )


def without_log(one: Judged) -> Judged:
    """The same probe, had nobody asked for the driver's log."""
    reading = {key: value for key, value in one.line.reading.items() if key != "driver_log"}
    return dataclasses.replace(one, line=dataclasses.replace(one.line, reading=reading))


def test_where_no_device_was_in_use_a_number_is_what_the_program_printed() -> None:
    logged = diagnosis(evidence("oob_far", [judged("oob_far", "plain")], device="none"))
    assert "the device reported 700" in logged.standing("launch-limit").why  # the driver itself wrote it down
    found = diagnosis(evidence("oob_far", [without_log(judged("oob_far", "plain"))], device="none"))
    launch = found.standing("launch-limit")
    assert launch.status is Status.UNTESTED
    assert launch.why == "the program printed cudaErrorIllegalAddress (700), and nobody else says so"
    assert "the device reported" not in " ".join(w.finding.why for w in found.weighed)


# -- wrong results that differ -----------------------------------------------------------------------------------------


def bare_verify_attn() -> Evidence:
    """verify_attn on an H200 where compute-sanitizer could not be had, and no core file was made."""
    run = recorded("diagnose_verify_attn")
    history = [j for j in run.history if j.line.observer in ("plain", "blocking")]
    setting = dataclasses.replace(run.evidence.setting, tool_problem="compute-sanitizer was not found")
    return dataclasses.replace(run.evidence, setting=setting, history=history)


def test_wrong_results_that_differ_in_runs_alike_point_to_order_and_memory() -> None:
    found = diagnosis(bare_verify_attn())
    differs = "differ in runs alike (217204, then 216187 elements are wrong)"
    assert differs in found.standing("race").why
    assert differs in found.standing("uninitialised").why
    wrong = found.standing("wrong-result")
    assert (wrong.status, wrong.strength) == (Status.SUPPORTED, Strength.SUGGESTED)
    assert "a race, memory that nobody wrote, or an access outside a buffer" in wrong.why
    assert found.next_step.startswith("look for a race, memory that nobody wrote, or an access outside a buffer")


def test_equal_wrong_results_point_nowhere() -> None:
    told = bare_verify_attn()
    plain = [j for j in told.history if j.line.observer == "plain"]
    assert "differ" not in diagnosis(dataclasses.replace(told, history=plain)).standing("race").why


def test_racecheck_that_found_nothing_says_what_it_looks_at() -> None:
    found = standing("image_ff", "race")
    assert found.status is Status.UNTESTED  # a race in global memory can have the same winner every time
    assert found.why.endswith("recorded no hazard in shared memory; global memory is not checked")
    assert "shared" not in standing("grid_y", "race").why


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ("async_use_after_free", "look at how that line makes its address"),
        ("free_twice", "find who frees the buffer before this access"),
        ("null", "find where that pointer comes from"),
        ("grid_zero", "launch nothing where there is nothing to do"),
        ("grid_y", "split the grid"),
        ("smem_over", "ask for less shared memory"),
        ("too_many_threads", "shrink the block"),
        ("host_segv", "run it under gdb, or built with an address sanitizer: no traceback was printed"),
        ("double_free", "look at the arguments of that call"),
    ],
)
def test_the_next_step_fits_what_was_found(fault: str, step: str) -> None:
    plan, history = diagnosed(fault)
    found = plan.diagnosis(history)
    assert found is not None
    assert found.next_step.startswith(step), found.next_step


def test_what_is_found_only_under_a_tool_is_said_with_what_it_recorded() -> None:
    found = recorded("diagnose_commit_none").diagnosis.standing("memory-exhausted").why
    assert found.startswith("it fails only under memcheck, which recorded out-of-bounds, and no allocation failed")


def test_the_buffers_that_were_not_overrun_are_named_as_such() -> None:
    found = recorded("diagnose_verify_attn").diagnosis.standing("buffer-mismatch").why
    assert found.endswith("no overrun of q, kv, vis or out was recorded")


# -- what NVML counts, and an exit status ------------------------------------------------------------------------------


def test_memory_that_nvml_counts_against_the_gpu_is_suggested_and_none_is_said() -> None:
    plan, history = diagnosed("oob_far")
    assert plan.about.setting.troubles is None  # nobody asked when this was recorded
    trouble = "2 uncorrected ECC errors since the driver was loaded (cuda:GPU-recorded)"
    found = diagnosis(evidence("oob_far", history, troubles=(trouble,))).standing("hardware-or-chance")
    assert (found.status, found.strength) == (Status.SUPPORTED, Strength.SUGGESTED)
    assert trouble in found.why
    clean = diagnosis(evidence("oob_far", history, troubles=())).standing("hardware-or-chance")
    assert "no uncorrected ECC error counted before the run" in clean.why


def test_an_exit_status_alone_is_only_suggested_to_be_the_hosts() -> None:
    assert standing("host_exit3", "host-program").strength is Strength.SUGGESTED
    for fault in ("host_segv", "host_abort", "host_throw"):
        assert standing(fault, "host-program").strength is Strength.SHOWN
