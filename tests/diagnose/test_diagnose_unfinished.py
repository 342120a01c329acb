"""Where the search for a failing shape did not come to its end, that is what is said: on the probes of a real run."""

from __future__ import annotations

import dataclasses

from h200_diagnoses import recorded

from cudadiag.cli import diagnose
from cudadiag.diagnose.engine import diagnosis
from cudadiag.diagnose.interface import Status
from cudadiag.diagnose.plans import PURPOSE, About
from cudadiag.diagnose.report import nothing_found_lines, unfinished_lines
from cudadiag.model import Outcome

RUN = recorded("diagnose_verify_attn")


def about() -> About:
    run = RUN.ledger.run
    found = diagnose.plan_of(run.settings["search"], run.sweep, tuple(run.device["labels"])).about
    assert found.subject is None  # it had to be searched for
    return found


def test_a_failure_that_was_seen_is_told() -> None:
    searched = [judged for judged in RUN.history if judged.line.purpose != PURPOSE]
    failing = next(i for i, judged in enumerate(searched) if judged.outcome.is_failure)
    lines = nothing_found_lines(about(), searched[: failing + 1])
    assert lines[0] == "the search under blocking for the first failing shape did not end"
    assert f"(probe {searched[failing].line.number})" in lines[1]
    assert not about().searched(searched[: failing + 1])


def test_passes_alone_are_no_end_of_a_search() -> None:
    passing = [judged for judged in RUN.history if not judged.outcome.is_failure][:1]
    assert nothing_found_lines(about(), passing) == ["the search under blocking did not end; nothing failed so far"]
    assert not about().searched(passing)


def test_a_search_that_ended_without_a_failure_says_how_many_shapes_it_ran() -> None:
    found = about()
    every = [judged for judged in RUN.history if judged.line.purpose != PURPOSE and not judged.outcome.is_failure]
    assert 0 < found.shapes_run(every) < len(found.sweep)
    assert not found.ran_all(every)


def test_a_diagnosis_that_was_stopped_says_what_it_still_wanted_and_decides_nothing() -> None:
    run = recorded("diagnose_race")
    plan = diagnose.plan_of(run.ledger.run.settings["search"], run.ledger.run.sweep, ("cuda:GPU-recorded",))
    assert unfinished_lines(plan, run.history) == []
    passing = [judged for judged in run.history if judged.outcome is Outcome.PASS and judged.line.purpose == PURPOSE]
    cut = [j for j in run.history if j.line.purpose != PURPOSE] + passing[:1]
    left = unfinished_lines(plan, cut)
    assert left[1].startswith("not finished: ")
    assert "wanted (experiments: " in left[1]


def test_a_shape_that_passes_alone_was_not_run_after_others() -> None:
    run = recorded("diagnose_leaky_sweep")
    alone = [judged for judged in run.history if not judged.line.sequence and judged.outcome is Outcome.PASS]
    evidence = dataclasses.replace(
        run.evidence, subject=dataclasses.replace(run.evidence.subject, sequence=()), history=alone
    )
    found = diagnosis(evidence).standing("carried-over")
    assert (found.status, found.why) == (Status.UNTESTED, "it passes alone; it was not run after other shapes")
