"""The cross-check of what several observers say: pure, on recorded and on made-up probes."""

from __future__ import annotations

from diagnose_recorded import judged
from faults_by_observer import agreement

from cudadiag.diagnose.crosscheck import cross_check
from cudadiag.diagnose.report import closing_lines
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence import Expectations, read, to_json
from cudadiag.model import Outcome
from cudadiag.session.judging import Judging
from cudadiag.store.lines import ProbeLine
from harness.records import ProbeFacts

CLEAN = b"========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
CUT_OFF = b"========= COMPUTE-SANITIZER\n"


def probe(observer: str, fails: bool, *, stderr: bytes = b"", log: bytes = CLEAN, number: int = 1) -> Witness:
    """A program that ends with 1 or 0 under an observer."""
    files = {"stdout": b"", "stderr": stderr}
    if observer.endswith("check"):
        files["sanitizer_log"] = log
    line = ProbeLine(
        number=number,
        shape={"n": 1},
        index=None,
        purpose="sanitize",
        observer=observer,
        device="cuda:GPU-0",
        memory_model="hardware",
        repeat=0,
        started="2026-11-29T20:00:00+00:00",
        facts=ProbeFacts(exit_code=int(fails), inner_exit={"exit_code": int(fails)}),
        reading=to_json(read(files)),
    )
    return Witness(Judging(Expectations(target="command")).judged(line))


def test_a_pass_under_every_tool_does_not_override_a_failure_without_one() -> None:
    found = cross_check([probe("plain", True), probe("memcheck", False), probe("racecheck", False)])
    assert found.outcome is Outcome.FAULT
    assert found.masked_by == ("memcheck", "racecheck")
    assert found.vanishes_under_tools
    assert any("vanishes under every tool" in word for word in found.words)


def test_a_failure_that_needs_launches_to_overlap_is_said_to() -> None:
    def runs(plain: bool, blocking: bool, count: int) -> list[Witness]:
        return [probe("plain", plain, number=n) for n in range(count)] + [probe("blocking", blocking)] * count

    found = cross_check(runs(True, False, 3))
    assert found.only_with_blocking_off
    assert not found.masked_by
    assert not found.vanishes_under_tools  # no tool was asked
    assert cross_check(runs(False, True, 3)).only_with_blocking_on
    few = cross_check(runs(True, False, 2))
    assert not few.only_with_blocking_off
    assert few.blocking_differs
    assert any("too few runs to tell it from chance" in word for word in few.words)


def test_a_tool_that_did_not_see_the_run_to_its_end_has_not_passed_it() -> None:
    found = cross_check([probe("plain", False), probe("memcheck", False, log=CUT_OFF)])
    assert found.outcome is Outcome.UNRESOLVED
    assert found.unresolved == ("memcheck",)
    assert "could not say: memcheck" in found.words


def test_all_that_were_asked_must_pass_for_a_pass() -> None:
    assert cross_check([probe("plain", False), probe("memcheck", False)]).outcome is Outcome.PASS
    assert cross_check([]).outcome is Outcome.UNRESOLVED


def test_an_observer_whose_own_runs_differ_is_named() -> None:
    found = cross_check([probe("plain", True), probe("plain", False, number=2), probe("plain", False, number=3)])
    assert found.varies == ("plain",)
    assert found.outcome is Outcome.FAULT
    assert (found.told[0].failed, found.told[0].runs) == (1, 3)


def test_memory_that_runs_out_under_a_tool_only_says_nothing_of_the_shape() -> None:
    told = b"CUDA error: out of memory\n"
    alone = cross_check([probe("plain", False), probe("racecheck", True, stderr=told)])
    assert alone.outcome is Outcome.UNRESOLVED
    assert alone.unresolved == ("racecheck",)
    both = cross_check([probe("plain", True, stderr=told), probe("racecheck", True, stderr=told)])
    assert both.found_by == ("plain", "racecheck")


def test_the_cause_is_taken_from_who_knows_most_about_it() -> None:
    assert agreement("oob_far").cause == Witness(judged("oob_far", "memcheck", 3))
    cause = agreement("hang").cause  # initcheck has a record; the core file only shows where the threads stand
    assert cause is not None
    assert cause.observer == "initcheck"
    cause = agreement("cluster_gone").cause
    assert cause is not None
    assert (cause.kind, cause.caused and cause.caused.line) == ("race", 72)
    assert agreement("grid_y").cause is None


def test_bisect_closes_with_the_cause_that_a_tool_found() -> None:
    text = "\n".join(closing_lines(agreement("load_far"), []))
    assert "found by plain, blocking, memcheck" in text
    assert "(probe 3, observer memcheck" in text
    assert "load_far at" in text
    assert "The cause" not in "\n".join(closing_lines(agreement("grid_y"), []))
