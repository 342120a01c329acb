"""Keys, likeness and what people decided about them."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
import recordings

from cudadiag.errors import UsageError
from cudadiag.evidence import judge, read
from cudadiag.model import Caused, Fault, FaultKind, Noticed, Outcome, Verdict
from cudadiag.signature import (
    Likeness,
    Signature,
    explain_difference,
    may_be_one,
    normal_file,
    normal_kernel,
    read_judgements,
    signature,
)


@functools.cache
def recorded(fault: str, observer: str) -> Signature:
    verdict = judge(
        recordings.run_facts(fault, observer),
        read(recordings.run_files(fault, observer)),
        recordings.expectations(observer),
    )
    made = signature(verdict)
    assert made is not None
    return made


AT = Signature(Outcome.FAULT, FaultKind.OUT_OF_BOUNDS, "write", "global", "attn<N>", "attn.cu", 41)


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("attn<(int)4, float>", "attn<N, float>"),
        ("attn<4,float>", "attn<N, float>"),
        ("ns::gemm<(bool)1, (int)-3, T2>", "ns::gemm<N, N, T2>"),
        ("fp16_gemm<float4, half2>", "fp16_gemm<float4, half2>"),
        ("_fwd_kernel_0d1d2de3", "_fwd_kernel_0d1d2de3"),
        ("_fwd_kernel_0d1d2de", "_fwd_kernel"),
        ("triton_poi_fused_add_mul_17", "triton_poi_fused_add_mul"),
        ("kernel_0123456789abcdef0123", "kernel"),
        ("off_by_one", "off_by_one"),
        ("", None),
        (None, None),
    ],
)
def test_kernel_names_lose_what_changes_from_shape_to_shape(name: str | None, normal: str | None) -> None:
    assert normal_kernel(name) == normal


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/a/b/attn.cu", "attn.cu"),
        ("C:\\x\\attn.cu", "attn.cu"),
        ("/tmp/torchinductor_u/cq/cqx3k7w2h5abc9d1.py", "generated.py"),
        ("/tmp/tmpab12cd34.py", "generated.py"),
        ("model_runner.py", "model_runner.py"),
        ("", None),
        (None, None),
    ],
)
def test_files_keep_their_own_name_only(path: str | None, normal: str | None) -> None:
    assert normal_file(path) == normal


def test_passing_and_unresolved_have_no_signature() -> None:
    assert signature(Verdict(Outcome.PASS, "ok")) is None
    assert signature(Verdict(Outcome.UNRESOLVED, "no device")) is None


def test_outcomes_without_a_fault_have_one() -> None:
    assert signature(Verdict(Outcome.WRONG, "differs")) == Signature(Outcome.WRONG)
    assert Signature(Outcome.HANG).fine == "v1/hang/-/-"
    assert Signature(Outcome.HANG).coarse == "v1/hang/-"


def test_a_hang_whose_place_is_known_carries_it() -> None:
    fault = Fault(FaultKind.LAUNCH_TIMEOUT, caused=Caused(kernel="spin", file="a.cu", line=3))
    made = signature(Verdict(Outcome.HANG, "x", fault))
    assert made is not None
    assert (made.fine, made.coarse) == ("v1/hang/launch-timeout/-/-/spin/a.cu:3", "v1/hang/launch-timeout/spin")


@pytest.mark.parametrize(
    ("fault", "fine"),
    [
        (Fault(FaultKind.HOST_SIGNAL, "SIGSEGV", 11), "v1/fault/host-signal/SIGSEGV/-"),
        (Fault(FaultKind.HOST_EXIT, None, 3), "v1/fault/host-exit/3/-"),
        (
            Fault(FaultKind.HOST_EXCEPTION, "ValueError", None, Noticed(None, "/x/bench.py", 7)),
            "v1/fault/host-exception/ValueError/bench.py:7",
        ),
        (Fault(FaultKind.OTHER_CUDA, "cudaErrorInvalidValue", 1, Noticed("cudaFree")), "v1/fault/other-cuda/1/-"),
    ],
)
def test_faults_without_a_place_on_the_device_are_told_apart_by_name(fault: Fault, fine: str) -> None:
    made = signature(Verdict(Outcome.FAULT, "x", fault))
    assert made is not None
    assert made.fine == fine


# Likeness


def test_the_same_place_is_the_same_bug() -> None:
    assert explain_difference(AT, AT).likeness is Likeness.SAME


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (replace(AT, kernel="copy"), "kernel attn<N> against copy"),
        (replace(AT, line=42), "line 41 against 42"),
        (replace(AT, access="read"), "access write against read"),
        (replace(AT, space="shared"), "space global against shared"),
        (replace(AT, kind=FaultKind.RACE), "kind out-of-bounds against race"),
        (replace(AT, outcome=Outcome.WRONG), "outcome fault against wrong"),
        (replace(AT, file="other.cu"), "file attn.cu against other.cu"),
        (replace(AT, version=2), "made by different versions"),
    ],
)
def test_a_contradiction_makes_two_bugs_and_is_named(other: Signature, word: str) -> None:
    for comparison in (explain_difference(AT, other), explain_difference(other, AT)):
        assert comparison.likeness is Likeness.DIFFERENT
    assert any(reason.startswith(word) for reason in explain_difference(AT, other).reasons)


def test_what_one_side_does_not_know_leaves_it_open_and_says_how_to_learn_it() -> None:
    comparison = explain_difference(AT, replace(AT, kernel=None, file=None, line=None))
    assert comparison.likeness is Likeness.MAYBE
    assert "run it under memcheck or with a core dump" in comparison.reasons[0]


def test_instances_of_one_template_are_one_kernel() -> None:
    assert explain_difference(AT, replace(AT, kernel="attn<N, half>")).likeness is not Likeness.DIFFERENT


@pytest.mark.parametrize(
    ("fault", "one", "other", "likeness"),
    [
        ("late_malloc", "memcheck", "flagcore", Likeness.ALIAS),
        ("stack_overflow", "memcheck", "flagcore", Likeness.ALIAS),
        ("bad_fn_table", "memcheck", "flagcore", Likeness.ALIAS),
        ("misaligned", "memcheck", "flagcore", Likeness.MAYBE),
        ("trap", "memcheck", "flagcore", Likeness.SAME),
        ("assert", "memcheck", "flagcore", Likeness.SAME),
        ("oob_far", "memcheck", "plain", Likeness.MAYBE),
        ("oob_far", "plain", "blocking", Likeness.MAYBE),
        ("host_segv", "plain", "memcheck", Likeness.SAME),
    ],
)
def test_what_different_observers_say_of_one_planted_fault(
    fault: str, one: str, other: str, likeness: Likeness
) -> None:
    assert explain_difference(recorded(fault, one), recorded(fault, other)).likeness is likeness


def test_no_two_observers_of_one_planted_device_fault_contradict_each_other() -> None:
    for fault, rows in by_fault().items():
        for one in rows:
            for other in rows:
                comparison = explain_difference(recorded(fault, one), recorded(fault, other))
                assert comparison.likeness is not Likeness.DIFFERENT, (fault, one, other, comparison.reasons)


def by_fault() -> dict[str, list[str]]:
    """The observers that saw a device fault as such (not only a failed host call or a crash at the end)."""
    found: dict[str, list[str]] = {}
    for fault, observer in recordings.runs():
        if fault.startswith("host_"):
            continue
        verdict = judge(
            recordings.run_facts(fault, observer),
            read(recordings.run_files(fault, observer)),
            recordings.expectations(observer),
        )
        if verdict.outcome is Outcome.FAULT and verdict.fault and verdict.fault.kind is not FaultKind.HOST_SIGNAL:
            found.setdefault(fault, []).append(observer)
    return found


def test_different_planted_faults_in_different_kernels_are_different_bugs() -> None:
    guilty = ["oob_far", "misaligned", "shared_oob_near", "trap", "assert", "stack_overflow", "bad_fn_table"]
    for at, one in enumerate(guilty):
        for other in guilty[at + 1 :]:
            comparison = explain_difference(recorded(one, "memcheck"), recorded(other, "memcheck"))
            assert comparison.likeness is Likeness.DIFFERENT, (one, other)


def test_719_may_hide_any_device_fault_but_no_host_fault() -> None:
    assert may_be_one(FaultKind.LAUNCH_FAILURE, FaultKind.MISALIGNED_ADDRESS)
    assert not may_be_one(FaultKind.LAUNCH_FAILURE, FaultKind.HOST_EXIT)
    assert not may_be_one(FaultKind.RACE, FaultKind.BARRIER)


# What people decided

FILE = """
version: 1
merge:
  - name: scratch overrun
    why: read back one kernel later
    signatures: [v1/fault/memory-access/attn, v1/wrong/-]
split:
  - signature: v1/fault/memory-access/copy
    why: two callers
"""


def test_merges_and_splits_decide_the_group() -> None:
    judgements = read_judgements(FILE)
    assert judgements.group(AT) == "scratch overrun"
    assert judgements.group(Signature(Outcome.WRONG)) == "scratch overrun"
    copy = replace(AT, kernel="copy")
    assert judgements.group(copy) == copy.fine
    assert judgements.group(replace(AT, kernel="other")) == "v1/fault/memory-access/other"
    assert read_judgements("").group(AT) == AT.coarse


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("merge: [", "mine.yaml:1"),
        ("- a", "must hold the keys"),
        ("merged: []", "unknown key 'merged'"),
        ("version: 2", "version 2"),
        ("merge: {}", "`merge` must be a list"),
        ("merge: [{name: a, signatures: [v1/x/-]}]", "merge 1: needs `name` and at least two"),
        ("merge: [{name: a, signatures: [v1/x/-, v9/x/-]}]", "no signature of version 1"),
        ("merge: [{name: a, sig: []}]", "unknown key 'sig'"),
        ("merge: [7]", "must be a mapping"),
        ("split: [{signature: 7}]", "split 1: 7 is no signature"),
        ("merge: [{name: a, signatures: [v1/x/-, v1/y/-]}, {name: b, signatures: [v1/x/-, v1/z/-]}]", "in two merges"),
    ],
)
def test_a_wrong_file_says_where_and_what(text: str, message: str) -> None:
    with pytest.raises(UsageError) as told:
        read_judgements(text, "mine.yaml")
    assert message in told.value.message
    assert told.value.message.startswith("mine.yaml")
    assert told.value.exit_code == 2
