"""Runs of several shapes in one process: what depends on order is found, shortened and named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st
from searching import sweep

from cudadiag.model import Outcome, Sweep
from cudadiag.search import Answer, Observation, Purpose, Settings, answer, next_probes
from cudadiag.search.ddmin import ddmin

Kernel = Callable[[int, Sequence[int]], bool]
SEQUENCE = Settings(sequence=True)


def search(subject: Sweep, fails: Kernel) -> tuple[Answer, list[Observation]]:
    seen: list[Observation] = []
    while batch := next_probes(subject, seen, SEQUENCE):
        for probe in batch.probes:
            for _ in range(probe.repeat):
                order, results = probe.sequence or (probe.shape,), []
                for position, index in enumerate(order):
                    failed = fails(index, order[:position])
                    results.append((Outcome.FAULT if failed else Outcome.PASS, None))
                    if failed:
                        break
                seen += probe.observed_sequence(results) if probe.sequence else [probe.observed(results[0][0])]
        assert len(seen) < 5000
    return answer(subject, seen, SEQUENCE), seen


BATCHES = sweep(batch=[1, 2, 4, 8, 16, 32])


def test_fails_only_after_a_larger_one() -> None:
    value = [1, 2, 4, 8, 16, 32]
    found, _ = search(BATCHES, lambda i, before: value[i] < 8 and any(value[b] > 8 for b in before))
    assert found.first is None
    assert found.order is not None
    assert found.order.kind == "fails-after"
    assert len(found.order.sequence) == 2
    assert found.order.minimal
    assert found.order.rule is not None
    assert found.exit_code == 1


def test_fails_only_as_the_first_of_its_process() -> None:
    found, _ = search(BATCHES, lambda i, before: i >= 4 and not before)
    assert found.first == 4
    assert found.order is not None
    assert found.order.kind == "fails-only-first"


def test_fails_from_the_third_on() -> None:
    found, _ = search(BATCHES, lambda i, before: len(before) >= 2)
    assert found.first is None
    assert found.order is not None
    assert (found.order.kind, found.order.kth) == ("fails-from-the-kth", 3)
    assert "from its 3rd shape on" in found.order.text


def test_a_leak_adds_up() -> None:
    sizes = [5, 1, 3, 2, 4, 6]
    found, _ = search(BATCHES, lambda i, before: sizes[i] + sum(sizes[b] for b in before) > 12)
    assert found.order is not None
    assert found.order.kind == "fails-from-the-kth"


def test_without_dependence_it_says_so() -> None:
    found, seen = search(BATCHES, lambda i, before: i == 3)
    assert found.order is not None
    assert found.order.kind == "independent"
    assert {o.tag for o in seen if o.purpose is Purpose.SEQUENCE} == {"declared", "reverse", "shuffled"}


def test_a_pass_after_others_is_no_evidence_about_the_shape_alone() -> None:
    seen = [Observation(0, Outcome.PASS), Observation(1, Outcome.PASS, earlier=(0,))]
    found = answer(BATCHES, seen, Settings())
    assert found.counts.run == 1


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12, unique=True), st.data())
def test_ddmin_is_one_minimal(items: list[int], data: st.DataObject) -> None:
    wanted = set(data.draw(st.lists(st.sampled_from(items), min_size=1, max_size=4)))

    def triggers(part: tuple[int, ...]) -> bool:
        return wanted <= set(part)

    assert set(ddmin(items, triggers)) == wanted


@given(st.lists(st.integers(1, 9), min_size=1, max_size=10))
def test_ddmin_is_one_minimal_for_sums_too(sizes: list[int]) -> None:
    limit = sum(sizes) // 2

    def triggers(part: tuple[int, ...]) -> bool:
        return sum(sizes[i] for i in part) > limit

    found = ddmin(range(len(sizes)), triggers)
    assert triggers(found)
    assert not any(triggers(found[:i] + found[i + 1 :]) for i in range(len(found)))


def test_sequences_that_tell_nothing_are_given_up() -> None:
    seen: list[Observation] = []
    while batch := next_probes(BATCHES, seen, SEQUENCE):
        for probe in batch.probes:
            for _ in range(probe.repeat):
                seen += probe.observed_sequence([]) if probe.sequence else [probe.observed(Outcome.PASS)]
        assert len(seen) < 200
    found = answer(BATCHES, seen, SEQUENCE)
    assert found.order is None


def test_minimising_sequences_that_tell_nothing_are_given_up() -> None:
    seen: list[Observation] = []
    while batch := next_probes(BATCHES, seen, SEQUENCE):
        for probe in batch.probes:
            for _ in range(probe.repeat):
                if probe.tag in ("declared", "reverse", "shuffled"):
                    seen += probe.observed_sequence([(Outcome.PASS, None)] * 5 + [(Outcome.FAULT, None)])
                else:
                    seen += probe.observed_sequence([]) if probe.sequence else [probe.observed(Outcome.PASS)]
        assert len(seen) < 500
    found = answer(BATCHES, seen, SEQUENCE)
    assert found.order is not None
    assert found.order.kind in ("fails-after", "fails-from-the-kth")
