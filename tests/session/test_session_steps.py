"""A process that ran several shapes, taken apart: the end belongs to the last one reached."""

from __future__ import annotations

from dataclasses import replace

from cudadiag.evidence import Expectations, read, to_json
from cudadiag.model import Outcome
from cudadiag.session.judging import Judging, judging_from_json
from cudadiag.session.searching import observations
from cudadiag.session.steps import step_facts
from cudadiag.store.lines import ProbeLine
from harness.records import Breadcrumb, ProbeFacts

GOOD = {"synchronised": True}  # of one step, as a kernel's worker reports it
GIB = 1 << 30


def crumbs(*steps: tuple[str, int]) -> tuple[Breadcrumb, ...]:
    return tuple(Breadcrumb(step, 0.1 * place, {"step": number}) for place, (step, number) in enumerate(steps))


def line(facts: ProbeFacts, sequence: tuple[int, ...]) -> ProbeLine:
    return ProbeLine(
        1, {"n": 3}, sequence[-1], "sequence", "blocking", "emulator", "exact", 0, "", facts, sequence, "t"
    )


JUDGING = Judging(Expectations(target="kernel"))


def test_a_signal_in_the_third_shape_leaves_the_first_two_as_they_were() -> None:
    facts = ProbeFacts(
        signal=11,
        breadcrumbs=crumbs(("launch", 0), ("finished", 0), ("launch", 1), ("finished", 1), ("launch", 2)),
        result={**GOOD, "steps": [GOOD, GOOD, {}]},
    )
    parts = list(step_facts(facts))
    assert [(part.signal, part.exit_code, last) for part, last in parts] == [
        (None, 0, False),
        (None, 0, False),
        (11, None, True),
    ]
    judged = JUDGING.judged(line(facts, (0, 1, 2, 3)))
    assert [step.outcome for step in judged.steps] == [Outcome.PASS, Outcome.PASS, Outcome.FAULT]
    seen = observations([judged])
    assert [(o.shape, o.outcome, o.earlier) for o in seen] == [
        (0, Outcome.PASS, ()),
        (1, Outcome.PASS, (0,)),
        (2, Outcome.FAULT, (0, 1)),
    ]
    assert {o.tag for o in seen} == {"t"}


def test_memory_taken_by_earlier_shapes_is_not_blamed_on_others() -> None:
    error = {
        "step": "allocate",
        "cuda_name": "CUDA_ERROR_OUT_OF_MEMORY",
        "number": 2,
        "call": "cuMemAlloc_v2",
        "text": "",
    }
    steps = [
        {**GOOD, "memory": {"total": 16 * GIB, "free_before": 16 * GIB, "free_after": GIB}},
        {"memory": {"total": 16 * GIB, "free_before": GIB}, "error": error},
    ]
    facts = ProbeFacts(
        exit_code=1,
        breadcrumbs=crumbs(("launch", 0), ("finished", 0), ("allocate", 1)),
        result={**steps[1], "steps": steps},
    )
    judged = JUDGING.judged(line(facts, (0, 1)))
    assert [step.outcome for step in judged.steps] == [Outcome.PASS, Outcome.FAULT]
    assert judged.fault is not None
    assert judged.fault.kind == "out-of-memory"


def under_memcheck(log: str) -> list[Outcome]:
    facts = ProbeFacts(
        exit_code=0,
        breadcrumbs=crumbs(("launch", 0), ("synchronise", 0), ("launch", 1), ("finished", 1)),
        result={**GOOD, "finished": True, "steps": [GOOD, GOOD]},
    )
    reading = to_json(read({"sanitizer_log": log.encode()}))
    probe = replace(line(facts, (0, 1)), observer="memcheck", device="cuda:GPU-1", reading=reading)
    return [step.outcome for step in JUDGING.judged(probe).steps]


def test_a_tool_that_found_nothing_in_the_process_found_nothing_in_any_shape() -> None:
    clean = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    assert under_memcheck(clean) == [Outcome.PASS, Outcome.PASS]
    assert Outcome.PASS not in under_memcheck("========= COMPUTE-SANITIZER\n"), "no summary is no proof"


def test_what_memcheck_found_belongs_to_the_shape_that_died_of_it() -> None:
    failed = {"step": "synchronise", "number": 719, "cuda_name": "CUDA_ERROR_LAUNCH_FAILED", "call": "cuCtxSynchronize"}
    facts = ProbeFacts(
        exit_code=1,
        breadcrumbs=crumbs(("launch", 0), ("synchronise", 0), ("launch", 1)),
        result={**GOOD, "error": failed, "steps": [GOOD, {"error": failed}]},
    )
    log = (
        b"========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n"
        b"=========     at k(float *)+0xc0 in k.cu:18\n========= ERROR SUMMARY: 1 error\n"
    )
    probe = replace(
        line(facts, (0, 1)), observer="memcheck", device="cuda:GPU-1", reading=to_json(read({"sanitizer_log": log}))
    )
    assert [step.outcome for step in JUDGING.judged(probe).steps] == [Outcome.PASS, Outcome.FAULT]


def test_a_process_that_reached_nothing_says_nothing_about_any_shape() -> None:
    judged = JUDGING.judged(line(ProbeFacts(exit_code=1), (0, 1)))
    assert judged.steps == ()
    assert [o.outcome for o in observations([judged])] == [Outcome.UNRESOLVED], "the search counts the attempt, no more"


def test_how_to_judge_survives_the_ledger() -> None:
    judging = Judging(Expectations(target="command", success="done", check=False), {0: 10, 1: 20})
    assert judging_from_json(judging.to_json()) == judging
