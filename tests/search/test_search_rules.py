"""The rule search on single cases: what it names, and what it says about it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from searching import run, sweep, where

from cudadiag.model import Claim, Outcome, Sweep
from cudadiag.search import Observation, Purpose, Settings, answer, next_probes

GRID = sweep(rows=[1, 2, 4, 8, 16, 32, 64], cols=[1, 3, 4, 7, 8, 12, 15, 16, 20, 31, 32])


def test_budgets_8_and_12_crash_while_15_and_16_run() -> None:
    subject = sweep(budget=[8, 12, 15, 16, 32, 64])
    found, _ = run(subject, where(subject, lambda budget: budget + 1 < 16))
    assert found.first_shape == {"budget": 8}
    assert found.claim is Claim.PROVEN
    assert [p == "fault" for p in found.predicted] == [True, True, False, False, False, False]


def test_the_rule_is_said_in_words_in_the_case_language_and_as_a_tree() -> None:
    found, _ = run(GRID, where(GRID, lambda rows, cols: cols % 8 != 0 and rows >= 8))
    (rule,) = found.rules
    assert rule.outcome == "fault"
    assert "cols is not a multiple of 8" in rule.text
    assert "cols % 8 != 0" in rule.expression
    assert rule.form["op"] == "and"
    assert rule.confidence >= 0.95
    assert json.loads(json.dumps(found.to_json()))["rules"][0]["expression"] == rule.expression


def test_axes_that_do_not_matter_are_named() -> None:
    subject = sweep(n=range(1, 20), dtype=["fp16", "bf16"], layout=["row", "col"])
    found, _ = run(subject, where(subject, lambda n, dtype, layout: n > 13))
    assert found.axes_without_effect == ("dtype", "layout")


def test_each_outcome_gets_its_rule_and_the_one_that_wins_is_named() -> None:
    subject = sweep(n=range(1, 41), w=[1, 2])

    def truth(index: int) -> str:
        shape = subject.shape(index)
        return "hang" if shape["n"] % 4 else "fault" if shape["n"] > 20 else "pass"  # type: ignore[operator]

    found, _ = run(subject, truth)
    assert {r.outcome for r in found.rules} == {"hang", "fault"}
    assert found.predicted == tuple(truth(i) for i in range(len(subject)))


def test_signatures_tell_two_faults_of_one_outcome_apart() -> None:
    subject = sweep(n=range(1, 41))
    seen: list[Observation] = []
    while batch := next_probes(subject, seen, Settings()):
        for probe in batch.probes:
            n = probe.shape + 1
            outcome, signature = (
                (Outcome.FAULT, "A") if n > 30 else (Outcome.FAULT, "B") if n % 8 == 3 else (Outcome.PASS, None)
            )
            seen += [probe.observed(outcome, signature)] * probe.repeat
    found = answer(subject, seen, Settings())
    assert {(r.outcome, r.signature) for r in found.rules} == {("fault", "A"), ("fault", "B")}
    assert found.first == 2


def test_a_signature_that_changes_from_run_to_run_separates_nothing() -> None:
    subject = sweep(n=range(1, 20))
    seen: list[Observation] = []
    while batch := next_probes(subject, seen, Settings()):
        for probe in batch.probes:
            for _ in range(probe.repeat):
                fails = probe.shape >= 9
                seen.append(
                    probe.observed(Outcome.FAULT if fails else Outcome.PASS, f"s{len(seen)}" if fails else None)
                )
    found = answer(subject, seen, Settings())
    assert len(found.rules) == 1
    assert found.first == 9
    assert any("signatures" in w for w in found.warnings)


@pytest.mark.parametrize(("fails", "claim", "code"), [(False, Claim.NONE_FOUND, 0), (True, Claim.PROVEN, 1)])
def test_all_pass_and_all_fail(fails: bool, claim: Claim, code: int) -> None:
    found, _ = run(GRID, lambda _: fails)
    assert (found.claim, found.exit_code) == (claim, code)
    assert found.first == (0 if fails else None)
    if fails:
        assert found.rules[0].text == "whatever the shape"


def test_a_sweep_that_cannot_be_exhausted_ends_undecided_unless_part_is_enough() -> None:
    subject = sweep(a=range(20), b=range(20))
    few = Settings(screen_probes=40, cheap_probes=20)
    found, seen = run(subject, lambda _: False, few)
    assert found.claim is Claim.NONE_FOUND
    assert found.exit_code == 3
    assert "40 of 400 run" in found.claim_text
    assert answer(subject, seen, replace(few, partial_ok=True)).exit_code == 0


def test_every_size_a_multiple_of_64_is_warned_about() -> None:
    subject = sweep(n=[64, 128, 256, 512], m=[1, 2, 3])
    found, _ = run(subject, lambda _: False)
    assert any("n is a multiple of 64" in w for w in found.warnings)


def test_rivals_that_no_legal_shape_tells_apart_come_with_a_shape_that_would() -> None:
    subject = sweep(prefix=[256, 1024, 4096, 8192], q=[9, 17, 33])
    found, _ = run(subject, where(subject, lambda prefix, q: prefix + q > 4096))
    outside = [r for r in found.rivals if not r.legal]
    assert outside
    assert all(r.shape is not None and tuple(r.shape.values()) not in subject.shapes for r in outside)


def test_a_stray_exception_is_reported_as_such() -> None:
    subject = sweep(a=range(1, 21), b=range(1, 6))
    stray = {37}
    found, _ = run(subject, lambda i: i in stray or subject.shape(i)["a"] > 12)  # type: ignore[operator]
    assert found.first == 37
    assert found.claim is Claim.PROVEN
    assert found.exceptions == (37,) or found.predicted[37] == "fault"
    assert "stray" in found.rule_note


def test_no_rule_fits_a_scattered_set_and_nothing_is_implied() -> None:
    subject = sweep(a=range(1, 25), b=range(1, 13))
    failing = {i for i in range(60, 288) if (i * 7919 + i * i * 104729) % 97 < 45}
    found, _ = run(subject, lambda i: i in failing)
    assert found.claim is not Claim.IMPLIED
    assert not found.rules
    assert "no rule" in found.rule_note


def test_the_smallest_shape_follows_values_where_an_axis_is_declared_downwards() -> None:
    subject = sweep(n=[64, 32, 16, 8, 4], m=[1, 2, 4])
    found, _ = run(subject, where(subject, lambda n, m: n * m >= 32))
    assert found.first_shape == {"n": 64, "m": 1}
    assert found.smallest is not None
    assert found.smallest.shape == {"n": 32, "m": 1}
    assert found.smallest.minimal


def test_costly_hangs_are_avoided_where_a_pass_tells_as_much() -> None:
    subject = sweep(n=range(1, 65))

    def hangs(cost_s: float) -> int:
        seen: list[Observation] = []
        while batch := next_probes(subject, seen, Settings(confirm_repeats=0, rate_repeats=0)):
            for probe in batch.probes:
                bad = probe.shape > 40
                seen += [
                    probe.observed(Outcome.HANG if bad else Outcome.PASS, None, cost_s if bad else 0.1)
                ] * probe.repeat
        assert answer(subject, seen, Settings()).first == 41
        return sum(o.purpose is Purpose.HALVE and o.outcome is Outcome.HANG for o in seen)

    assert hangs(1000.0) <= hangs(0.1)


def test_derived_quantities_are_part_of_the_vocabulary() -> None:
    shapes = tuple((a, b) for a in (1, 2, 3, 5, 7, 11, 13) for b in (1, 2, 3, 4, 5))
    base = sweep(a=[1, 2, 3, 5, 7, 11, 13], b=[1, 2, 3, 4, 5])
    hidden = tuple((a * 37 + b * 91) % 64 for a, b in shapes)
    subject = Sweep(base.axes, base.shapes, {"scores.bytes": hidden})
    found, _ = run(subject, lambda i: hidden[i] >= 40)
    assert "scores.bytes" in found.rules[0].text
