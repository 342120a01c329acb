"""The decision, and the plan that feeds it, against simulated crashes."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable

import pytest
from gate_kit import (
    HANG,
    PASS,
    SWEEP,
    TODAY,
    UNRESOLVED,
    case_run,
    crash,
    flaky,
    known,
    seen,
    simulate,
    verdict_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.gate.baseline import Baseline
from cudadiag.gate.decide import decide, exit_code
from cudadiag.gate.plan import MOST_EXTENT
from cudadiag.gate.rates import FALSE_FIXED, Rate, chance_to_find, passes_needed
from cudadiag.gate.status import Status
from cudadiag.model import FaultKind, Verdict

NOTHING = Baseline()


def from_five(verdict: Verdict) -> Callable[[int], Verdict]:
    return lambda index: verdict if index >= 5 else PASS


def statuses(findings: object) -> list[str]:
    return [finding.status.value for finding in findings]  # type: ignore[attr-defined]


def test_all_passes_is_zero_and_says_nothing() -> None:
    assert verdict_of(case_run(0, 9), NOTHING, lambda _: PASS) == (0, [])


def test_a_new_crash_is_one_with_its_case_and_signature() -> None:
    code, (finding,) = verdict_of(case_run(0, 9), NOTHING, from_five(crash()))
    assert code == 1
    assert (finding.status, finding.case, finding.group) == (Status.NEW, "c", "v1/fault/memory-access/attn")
    assert finding.indices == (5, 6, 7, 8, 9), "its whole extent is looked for"


def test_the_extent_of_a_new_crash_is_bounded() -> None:
    long = dataclasses.replace(SWEEP, axes=(dataclasses.replace(SWEEP.axes[0], values=tuple(range(1000))),))
    long = dataclasses.replace(long, shapes=tuple((n,) for n in range(1000)))
    _, history = simulate(case_run(0, 999, sweep=long), NOTHING, from_five(crash()))
    assert len({j.line.index for j in history}) == 2 + MOST_EXTENT


def test_two_kernels_are_two_new_crashes() -> None:
    code, findings = verdict_of(case_run(0, 5, 9), NOTHING, lambda i: crash("a") if i < 3 else crash("b"))
    assert code == 1
    assert sorted(f.group or "" for f in findings) == ["v1/fault/memory-access/a", "v1/fault/memory-access/b"]


@pytest.mark.parametrize("where", ["rule: n >= 5", "shapes: [{n: 5}, {n: 6}, {n: 7}, {n: 8}, {n: 9}]"])
def test_a_known_crash_is_zero(where: str) -> None:
    code, (finding,) = verdict_of(case_run(0, 4, 5, 9), known(where), from_five(crash()))
    assert (code, finding.status) == (0, Status.KNOWN)
    assert "scratch too small" in finding.reason


def test_a_known_signature_outside_its_rule_is_new_and_says_what_is_known() -> None:
    code, findings = verdict_of(case_run(0, 7, 9), known("rule: n >= 8"), from_five(crash()))
    assert code == 1
    new = next(f for f in findings if f.status is Status.NEW)
    assert "the signature is known, but not here: `n >= 8`" in new.reason
    assert 8 not in new.indices


def test_another_signature_at_a_known_shape_is_changed() -> None:
    code, findings = verdict_of(case_run(0, 9), known(), from_five(crash("other")))
    assert code == 1
    assert statuses(findings) == ["changed"]
    assert "v1/fault/memory-access/attn" in findings[0].reason
    assert findings[0].group == "v1/fault/memory-access/other"


def test_an_entry_about_any_shape_makes_another_crash_new() -> None:
    code, findings = verdict_of(case_run(0, 9), known("shapes: [{}]"), from_five(crash("other")))
    assert code == 1
    assert "new" in statuses(findings)


def test_a_witness_that_does_not_know_the_kernel_is_no_new_crash() -> None:
    code, findings = verdict_of(case_run(0, 9), known(), from_five(crash(None, FaultKind.ILLEGAL_ADDRESS)))
    assert (code, statuses(findings)) == (0, ["known"])
    assert "may be the same" in findings[0].reason


def test_a_split_signature_matches_only_in_its_fine_form() -> None:
    split = known(more="").judgements
    assert split.splits is None
    baseline = known()
    baseline = dataclasses.replace(
        baseline, judgements=dataclasses.replace(split, splits={"v1/fault/memory-access/attn": "two bugs"})
    )
    code, findings = verdict_of(case_run(0, 9), baseline, from_five(crash()))
    assert (code, statuses(findings)) == (1, ["changed"])


def test_a_removed_bug_is_fixed_and_zero_unless_strict() -> None:
    for strict, expected in ((False, 0), (True, 1)):
        code, (finding,) = verdict_of(case_run(0, 9), known(more="rate: 1"), lambda _: PASS, strict=strict)
        assert (code, finding.status) == (expected, Status.FIXED)


def test_fixed_takes_as_many_passes_as_the_rate_demands() -> None:
    run, history = simulate(case_run(0, 9), known(more="rate: 0.3"), lambda _: PASS)
    assert passes_needed(Rate(share=0.3)) == 26
    assert sum(j.line.index == 9 for j in history) == 26
    short = dataclasses.replace(run, seen=[s for s in run.seen if s.index == 0] + [s for s in run.seen if s.index][:25])
    (finding,) = decide([short], known(more="rate: 0.3"), TODAY, all_cases=True)
    assert finding.status is Status.FLAKY
    assert "25 fresh runs of the 26" in finding.reason


def test_an_entry_without_a_rate_is_not_fixed_by_one_pass() -> None:
    run = dataclasses.replace(case_run(9), seen=(seen(9, PASS),))
    (finding,) = decide([run], known(), TODAY, all_cases=True)
    assert finding.status is Status.KNOWN
    assert verdict_of(case_run(9), known(), lambda _: PASS)[1][0].status is Status.FIXED


def test_a_known_crash_that_is_still_there_costs_few_runs() -> None:
    spent = [
        len(simulate(case_run(9), known(more="rate: 0.3"), flaky(0.3, s, lambda i: i > 4, crash()))[1])
        for s in range(50)
    ]
    assert sum(spent) / len(spent) < 6


def test_an_expired_entry_is_said_and_red_only_when_strict() -> None:
    late = datetime.date(2027, 1, 2)
    run, _ = simulate(case_run(0, 9), known(), from_five(crash()))
    findings = decide([run], known(), late, all_cases=True)
    assert statuses(findings) == ["expired", "known"]
    assert "2027-01-01" in findings[0].reason
    assert exit_code(findings, [run], strict=False) == 0
    assert exit_code(findings, [run], strict=True) == 1
    assert statuses(decide([run], known(), datetime.date(2027, 1, 1), all_cases=True)) == ["known"]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("rule: n > 100", "holds at no shape"),
        ("rule: m > 1", "unknown name 'm'"),
        ("shapes: [{n: 77}]", "none of its shapes is in the sweep"),
        ("shapes: [{m: 1}]", "no parameter 'm'"),
        ("shapes: [{n: true}]", "none of its shapes is in the sweep"),
    ],
)
def test_an_entry_that_fits_no_shape_has_vanished(where: str, words: str) -> None:
    code, (finding,) = verdict_of(case_run(0, 9), known(where), lambda _: PASS)
    assert (code, finding.status) == (0, Status.VANISHED)
    assert words in finding.reason


def test_an_entry_of_a_case_that_is_gone_has_vanished_unless_cases_were_named() -> None:
    run = dataclasses.replace(case_run(0, name="other"), seen=(seen(0, PASS),))
    assert statuses(decide([run], known(), TODAY, all_cases=True)) == ["vanished"]
    assert decide([run], known(), TODAY, all_cases=False) == []


def test_no_evidence_is_three_and_a_new_crash_wins_over_it() -> None:
    code, findings = verdict_of(case_run(0, 9), NOTHING, lambda _: UNRESOLVED)
    assert (code, statuses(findings)) == (3, ["undecided"])
    assert "no device" in findings[0].reason
    code, findings = verdict_of(case_run(0, 9), NOTHING, lambda i: UNRESOLVED if i < 5 else crash())
    assert code == 1
    assert statuses(findings)[:2] == ["new", "undecided"]


def test_a_run_that_is_no_evidence_is_tried_again_and_too_few_are_said() -> None:
    answers = iter([PASS, UNRESOLVED, PASS, PASS])
    assert verdict_of(case_run(3, repeat=3), NOTHING, lambda _: next(answers)) == (0, [])
    answers = iter([PASS, *[UNRESOLVED] * 9])
    code, (finding,) = verdict_of(case_run(3, repeat=3), NOTHING, lambda _: next(answers))
    assert (code, finding.status) == (3, Status.UNDECIDED)
    assert finding.reason == "only 1 of 3 runs say anything: no device: n=3"


@pytest.mark.parametrize("kind", [FaultKind.ECC, FaultKind.DEVICE_LOST, FaultKind.NVLINK])
def test_a_broken_gpu_is_three_and_nothing_more_is_run_on_it(kind: FaultKind) -> None:
    code, findings = verdict_of(case_run(0, 9), NOTHING, lambda _: crash(None, kind))
    assert (code, set(statuses(findings))) == (3, {"undecided"})
    assert "the GPU is broken" in findings[0].reason
    _, history = simulate(case_run(*range(10), repeat=9), NOTHING, lambda _: crash(None, kind))
    assert len(history) <= 16


def test_a_problem_of_a_case_is_undecided_and_a_left_out_one_is_not() -> None:
    broken = dataclasses.replace(case_run(), problem="the build failed")
    fine = dataclasses.replace(case_run(0, name="d"), seen=(seen(0, PASS),))
    out = dataclasses.replace(case_run(name="e"), left_out="needs a cuda device")
    for runs, code in (([broken, fine], 3), ([fine, out], 0), ([out], 3)):
        findings = decide(runs, NOTHING, TODAY, all_cases=True)
        assert exit_code(findings, runs, strict=False) == code, findings


def test_shapes_that_the_budget_cut_are_left_out_not_undecided() -> None:
    run = dataclasses.replace(case_run(0, 9), cut=frozenset({9}), seen=(seen(0, PASS),))
    findings = decide([run], NOTHING, TODAY, all_cases=True)
    assert statuses(findings) == ["left-out"]
    assert exit_code(findings, [run], strict=False) == 0


def test_a_hang_is_repeated_less_than_a_fault() -> None:
    spent = {
        v.outcome: len(simulate(case_run(9), NOTHING, lambda i, v=v: v if i == 9 else PASS)[1]) for v in (HANG, crash())
    }
    assert spent[HANG.outcome] < spent[crash().outcome]


def test_a_baselined_crash_that_fails_in_three_of_ten_never_is_red_or_fixed_in_a_hundred_runs() -> None:
    """The whole loop, plan and decision, a hundred seeds; at each the shapes without the crash pass."""
    for rate in ("0.3", "3/10"):
        baseline = known(more=f"rate: {rate}")
        for seed in range(100):
            code, findings = verdict_of(case_run(0, 4, 5, 9), baseline, flaky(0.3, seed, lambda i: i >= 5, crash()))
            assert code == 0, (seed, findings)
            assert "fixed" not in statuses(findings), seed


def test_without_its_rate_a_rare_crash_would_be_called_fixed_wrongly() -> None:
    """What the rate is for: taken as certain, it is "fixed" by luck many times in a hundred."""
    baseline = known(more="rate: 1")
    wrong = sum(
        "fixed" in statuses(verdict_of(case_run(9), baseline, flaky(0.3, seed, lambda i: i >= 5, crash()))[1])
        for seed in range(100)
    )
    assert wrong > 50


@pytest.mark.parametrize(("rate", "repeat"), [(0.3, 1), (0.3, 3), (0.1, 10), (0.5, 2)])
def test_a_new_crash_is_found_with_the_stated_probability(rate: float, repeat: int) -> None:
    """Within four standard errors over 2000 seeded gates."""
    runs, stated = 2000, chance_to_find(rate, repeat)
    found = sum(
        verdict_of(case_run(0, 9, repeat=repeat), NOTHING, flaky(rate, seed, lambda i: i == 9, crash()))[0] == 1
        for seed in range(runs)
    )
    assert abs(found / runs - stated) < 4 * (stated * (1 - stated) / runs) ** 0.5


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.9, 1.0])
def test_the_passes_needed_keep_the_promise(share: float) -> None:
    needed = passes_needed(Rate(share=share))
    assert (1 - share) ** needed <= FALSE_FIXED
    assert needed == 1 or (1 - share) ** (needed - 1) > FALSE_FIXED


VERDICTS = [
    PASS,
    UNRESOLVED,
    HANG,
    crash(),
    crash("other"),
    crash(None, FaultKind.ILLEGAL_ADDRESS),
    crash(None, FaultKind.ECC),
]
RULES = ["rule: n >= 5", "rule: n < 3", "shapes: [{n: 1}, {n: 7}]", "shapes: [{}]", "rule: m > 1"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(VERDICTS)), max_size=30),
    st.sets(st.integers(0, 9), max_size=6),
    st.sampled_from(RULES),
    st.sampled_from(["", "rate: 0.3", "rate: 1", "rate: 2/9"]),
)
def test_whatever_was_seen_every_failure_is_in_one_finding_and_no_red_one_is_lost(
    probes: list[tuple[int, Verdict]], planned: set[int], where: str, rate: str
) -> None:
    baseline = known(where, more=rate)
    run = dataclasses.replace(case_run(*sorted(planned)), seen=tuple(seen(i, v) for i, v in probes))
    findings = decide([run], baseline, TODAY, all_cases=True)
    crashes = [f for f in findings if f.status in (Status.NEW, Status.CHANGED, Status.KNOWN, Status.FLAKY)]
    failed = {(s.index, s.signature.fine) for s in run.seen if s.failed and s.signature}
    assert sum(f.fails for f in crashes) == sum(s.failed for s in run.seen)
    assert {index for index, _ in failed} <= {index for f in crashes for index in f.indices}
    code = exit_code(findings, [run], strict=False)
    inside = set(run.covered(baseline.entries[0]).indices)
    strange = any(s.failed and (s.index not in inside or s.verdict in (HANG, VERDICTS[4])) for s in run.seen)
    assert (code == 1) is strange
    if "fixed" in statuses(findings):
        assert not any(s.failed for s in run.seen if s.index in inside)
        assert all(run.at(index) for index in set(run.planned) & inside)
