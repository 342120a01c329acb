"""Which shapes are chosen, in which shard, and in how much time."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_kit import PROGRAM, SWEEP, case_run, known
from hypothesis import given
from hypothesis import strategies as st

from cudadiag.case import load_text
from cudadiag.case.shapes import constants
from cudadiag.errors import UsageError
from cudadiag.gate.baseline import Baseline
from cudadiag.gate.caserun import CaseRun, Chosen
from cudadiag.gate.covering import Covered, Neighbours, covered
from cudadiag.gate.planning import Shard, in_shard, parse_budget, parse_shard, telling_order, within
from cudadiag.gate.selection import choose, ends
from cudadiag.model import Axis, Sweep

TWO = Sweep((Axis("a", (1, 2, 3)), Axis("b", ("x", "y"))), tuple((a, b) for a in (1, 2, 3) for b in ("x", "y")))


def chosen(gate: str, crashes: tuple[Covered, ...] = (), failed: tuple[int, ...] = ()) -> dict[int, tuple[str, ...]]:
    """n of each chosen shape -> why."""
    case = load_text((PROGRAM.format(name="c") + gate).encode(), Path("c.yaml"))
    return {int(str(case.sweep.shapes[c.index][0])): c.why for c in choose(case, crashes, failed)}


def test_without_a_word_about_it_the_ends_are_run() -> None:
    assert set(chosen("")) == {1, 8}
    assert ends(TWO) == [0, 1, 4, 5]


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ("gate: {smoke: [{n: 3}, 'n % 4 == 0']}", {3, 4, 8}),
        ("gate: {smoke: n == 2}", {2}),
        ("gate: {boundaries: [n > 4]}", {4, 5}),
        ("gate: {boundaries: [n > 4, 'n in (2, 7)']}", {4, 5, 1, 2, 3, 6, 7, 8}),
        ("gate: {known_bad: [n >= 6]}", {5, 6, 7, 8}),
        ("gate: {every: true}", set(range(1, 9))),
    ],
)
def test_a_case_says_which_shapes(gate: str, expected: set[int]) -> None:
    assert set(chosen(gate)) == expected


def test_known_crashes_and_past_failures_come_with_their_passing_neighbours_and_come_first() -> None:
    found = chosen("", (Covered((4, 5, 6, 7)),))  # n from 5 on
    assert set(found) == {1, 4, 5, 6, 7, 8}
    assert found[4] == ("boundary",)
    assert set(found[5]) == {"known crash", "boundary"}
    assert next(iter(found)) == 5
    past = chosen("", failed=(3,))
    assert set(past) == {1, 3, 4, 5, 8}
    assert past[4] == ("failed before",)


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("gate: {smoke: [{m: 3}]}", "no parameter 'm' in `sweep`"),
        ("gate: {smoke: [{n: 33}]}", "33 is not on the axis n"),
        ("gate: {smoke: ['q > 1']}", "unknown name 'q'"),
        ("gate: {smoek: []}", "did you mean 'smoke'"),
        ("gate: {repeat: 0}", "repeat|greater|1"),
        ("gate: {smoke: 3}", "needs a shape such as"),
    ],
)
def test_a_wrong_choice_is_said_where_it_stands(gate: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        chosen(gate)
    assert caught.value.message.startswith("c.yaml:6:")


def test_neighbours_are_one_step_away_and_legal() -> None:
    holes = Sweep(TWO.axes, tuple(shape for shape in TWO.shapes if shape != (2, "x")))
    assert [holes.shapes[i] for i in Neighbours(holes).of(0)] == [(3, "x"), (1, "y")]


@given(st.integers(1, 12), st.lists(st.integers(0, 9), unique=True), st.text(min_size=1, max_size=8))
def test_every_shape_is_in_exactly_one_shard(count: int, indices: list[int], name: str) -> None:
    run = case_run(*indices, name=name)
    parts = [in_shard(run, Shard(k, count), Baseline()).planned for k in range(1, count + 1)]
    assert sorted(index for part in parts for index in part) == sorted(indices)


def test_a_shape_stays_in_its_shard_whatever_else_there_is() -> None:
    alone = [k for k in range(1, 9) if in_shard(case_run(3), Shard(k, 8), Baseline()).planned]
    among = [k for k in range(1, 9) if 3 in in_shard(case_run(*range(10)), Shard(k, 8), Baseline()).planned]
    assert alone == among


def test_the_shapes_of_one_known_crash_are_in_one_shard() -> None:
    run = case_run(*range(10))
    parts = [set(in_shard(run, Shard(k, 5), known()).planned) & set(range(5, 10)) for k in range(1, 6)]
    assert sorted(map(len, parts)) == [0, 0, 0, 0, 5]


def weighted(name: str, *rows: tuple[int, int, float]) -> CaseRun:
    chosen = tuple(Chosen(index, (), weight, cost) for index, weight, cost in rows)
    return CaseRun(name, sweep=SWEEP, chosen=chosen)


def test_a_budget_takes_the_most_telling_shapes_over_all_cases() -> None:
    runs = [weighted("a", (0, 1, 2.0), (1, 1, 2.0)), weighted("b", (5, 9, 2.0), (6, 4, 2.0))]
    planned = within(runs, 6.0)
    assert [run.planned for run in planned] == [(0,), (5, 6)]
    assert telling_order(planned) == [1, 0]
    assert [run.planned for run in within(runs, 0.1)] == [(), (5,)], "one is always taken"
    assert [run.planned for run in within(runs, 60)] == [(0, 1), (5, 6)]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("1h30m", 5400), ("0.5m", 30)])
def test_a_budget_is_a_time(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5x", "0s", "5m!", "-5m"])
def test_what_is_no_budget_is_wrong_use(text: str) -> None:
    with pytest.raises(UsageError, match="--budget"):
        parse_budget(text)


@pytest.mark.parametrize("text", ["", "0/4", "5/4", "1", "a/b", "1/0"])
def test_what_is_no_shard_is_wrong_use(text: str) -> None:
    with pytest.raises(UsageError, match="--shard"):
        parse_shard(text)


MACROS = """\
case: k
target:
  kernel:
    source: k.cu
    entry: k
    define: {LEN: 6, TWICE: "{2 * n}", HALF: "{LEN // 2}"}
    grid: 1
    block: 32
    args: [{out: y, dtype: float32, shape: [n]}]
sweep: {n: [1, 2, 3, 4, 5, 6, 7, 8]}
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("n > LEN", {6, 7}), ("y.bytes > 4 * LEN", {6, 7}), ("grid.x == 1 and n > 2", {2, 3})],
)
def test_conditions_use_macros_and_quantities(tmp_path: Path, condition: str, expected: set[int]) -> None:
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k(float* y) {}\n')
    case = load_text((MACROS + f"gate: {{boundaries: ['{condition}']}}\n").encode(), tmp_path / "k.yaml")
    assert {int(str(case.sweep.shapes[c.index][0])) for c in choose(case)} == expected
    assert constants(case)["LEN"] == 6
    (entry,) = known(f"rule: '{condition}'").entries
    assert covered(entry, case.sweep, constants(case)).indices == tuple(range(min(expected), 8))


@pytest.mark.parametrize("rule", ["n > 700", "n % 7 == 3 and n < limit", "n in (1, 5, 999)", "n // 0 == 1", "q > 1"])
def test_a_long_sweep_is_covered_as_a_short_one_is(rule: str) -> None:
    """Above 512 shapes whole columns are computed; the answer is that of the shapes one by one."""
    (entry,) = known(f"rule: '{rule}'").entries
    long = Sweep((Axis("n", tuple(range(1000))),), tuple((n,) for n in range(1000)))
    short = [Sweep(long.axes, long.shapes[at : at + 500]) for at in (0, 500)]
    parts = [covered(entry, sweep, {"limit": 600}) for sweep in short]
    whole = covered(entry, long, {"limit": 600})
    assert whole.indices == (*parts[0].indices, *(index + 500 for index in parts[1].indices))
    assert (whole.why_none is None) is any(part.why_none is None for part in parts)


def test_a_long_sweep_is_chosen_from_at_once() -> None:
    """200 000 shapes, most of them of a known crash: only its first edges are looked for."""
    text = PROGRAM.format(name="c").replace("[1, 2, 3, 4, 5, 6, 7, 8]", "{from: 1, to: 200000, step: 1}")
    case = load_text(text.encode(), Path("c.yaml"))
    found = choose(case, [Covered(tuple(range(1000, 200_000)))])
    assert len(found) < 20
    assert {0, 999, 1000, 199_999} <= {choice.index for choice in found}
