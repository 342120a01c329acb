"""Which shape is in question where none is given: taken from an earlier run only if it is a run of the same thing."""

from __future__ import annotations

import dataclasses

import pytest
from h200_diagnoses import recorded

from cudadiag.diagnose.origin import came_to_its_end, from_ledger, looked_for_it
from cudadiag.diagnose.subject import Rule, Subject
from cudadiag.model import Axis, Sweep
from cudadiag.store.ledger import Ledger
from cudadiag.store.lines import NoteLine

LEDGER = recorded("bisect_tree_flat").ledger
SWEEP = LEDGER.run.sweep


def found(ledger: Ledger = LEDGER, sweep: Sweep = SWEEP, **other: object) -> tuple[Subject | None, str]:
    alike = {"leaks": False, "check": True, "memory_model": "exact"}
    fields = {"device": "cuda", "hashes": ledger.run.sources, "program": None, "alike": alike, **other}
    return from_ledger(ledger, sweep, **fields)  # type: ignore[arg-type]


def test_the_first_failing_shape_comes_with_its_rule() -> None:
    subject, why = found()
    assert subject is not None
    assert not why
    assert subject.shape == {"budget": 8, "streams": 1}
    assert subject.rules == (Rule("fault", "nodes < 16"),)
    assert subject.origin == f"the first failing shape of the run {LEDGER.run.run_id}"


def test_a_run_of_something_else_is_not_taken_and_says_why() -> None:
    assert found(device="emulator") == (None, f"the run {LEDGER.run.run_id} was made on another kind of device")
    for other in ({"hashes": {**LEDGER.run.sources, "/checkout/new.h": "0"}}, {"program": ("./bench",)}):
        assert found(**other) == (None, f"the run {LEDGER.run.run_id} is of another version of the case")
    other_purpose = dataclasses.replace(LEDGER, run=dataclasses.replace(LEDGER.run, purpose="gate"))
    assert found(other_purpose)[1] == f"the run {LEDGER.run.run_id} was made by `gate`"


def test_a_diagnosis_that_searched_has_a_shape_of_its_own_and_one_that_was_given_it_has_none() -> None:
    diagnosed = recorded("diagnose_verify_attn").ledger
    subject, why = found(diagnosed, diagnosed.run.sweep)
    assert subject is not None, why
    assert subject.shape == {"streams": 1, "q_len": 9, "prefix": 4096}
    assert looked_for_it(diagnosed)
    given = {**diagnosed.run.settings, "search": {"subject": subject.to_json()}}
    assert not looked_for_it(dataclasses.replace(diagnosed, run=dataclasses.replace(diagnosed.run, settings=given)))


def test_a_shape_that_is_not_in_this_sweep_is_not_taken() -> None:
    fewer = Sweep((Axis("budget", (16, 32)), SWEEP.axes[1]), ((16, 1), (16, 2), (32, 1), (32, 2)))
    subject, why = found(sweep=fewer)
    assert subject is None
    assert why.endswith("is not in this sweep")


def test_a_run_in_which_nothing_failed_gives_nothing() -> None:
    passing = tuple(line for line in LEDGER.probes if line.facts.exit_code == 0)
    assert passing
    assert found(dataclasses.replace(LEDGER, probes=passing)) == (
        None,
        f"nothing failed in the run {LEDGER.run.run_id}",
    )


def test_a_shape_is_found_among_those_of_other_indices() -> None:
    later = Sweep(SWEEP.axes, tuple(reversed(SWEEP.shapes)))
    subject, _ = found(sweep=later)
    assert subject is not None
    assert subject.index == len(SWEEP) - 1
    assert later.shape(subject.index) == subject.shape


@pytest.mark.parametrize(
    ("key", "value", "option"),
    [("leaks", True, "--leaks"), ("check", False, "--no-check"), ("memory_model", "hardware", "--memory")],
)
def test_what_was_judged_otherwise_is_no_failure_here(key: str, value: object, option: str) -> None:
    alike = {"leaks": False, "check": True, "memory_model": "exact", key: value}
    assert found(alike=alike) == (None, f"the run {LEDGER.run.run_id} was judged otherwise ({option})")


def test_a_run_that_did_not_end_gives_a_failing_shape_and_no_rule() -> None:
    cut = dataclasses.replace(LEDGER, probes=LEDGER.probes[:12], notes=(NoteLine("interrupted", "now", {}),))
    assert came_to_its_end(LEDGER)
    assert not came_to_its_end(cut)
    subject, why = found(cut)
    assert subject is not None, why
    assert subject.rules == ()
    assert subject.origin == f"a failing shape of the run {LEDGER.run.run_id}, which did not end"
