"""Where the search for a failing shape did not come to its end, that is what is said: on the probes of a real run."""

from __future__ import annotations

from h200_diagnoses import recorded

from cudadiag.cli import diagnose
from cudadiag.diagnose.plans import PURPOSE, About
from cudadiag.diagnose.report import nothing_found_lines

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
