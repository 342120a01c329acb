"""The quality benchmark on a few seeds: is the answer right, and in how many probes? The whole of it is a command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import bench_rules
import pytest
from restricted import Condition, Refused
from simulated import load

from cudadiag.search.vocabulary import FAMILIES

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def entries() -> list[bench_rules.Entry]:
    return [bench_rules.bench(k, seeds=1, flaky_seeds=6) for k in load(HERE / "rules.yaml")]


@pytest.mark.slow
def test_the_numbers_hold(entries: list[bench_rules.Entry]) -> None:
    totals = bench_rules.totals(entries)
    assert totals["deterministic rules"] == 32
    assert totals["first right, every seed"] == 32
    assert totals["failing set exact, every seed"] >= 29  # type: ignore[operator]
    assert totals["proven and false"] == 0
    assert totals["probes to the answer, median"] <= 25  # type: ignore[operator]
    assert totals["share of running every shape, without the two largest"] <= 0.4  # type: ignore[operator]


def test_order_and_noise(entries: list[bench_rules.Entry]) -> None:
    for entry in entries:
        if entry.kind == "order":
            assert all(r.order_right for r in entry.runs), entry.subject.name
        if entry.kind == "flaky":
            assert sum(r.first_right for r in entry.runs) >= 5, entry.subject.name


def test_several_outcomes_get_a_rule_each(entries: list[bench_rules.Entry]) -> None:
    several = [e for e in entries if len(set(e.subject.truth)) > 2]
    assert len(several) == 3
    assert all(len(r.rules) == 2 for e in several for r in e.runs)


def test_the_other_methods_are_wrong_where_bisection_must_be(entries: list[bench_rules.Entry]) -> None:
    plain = [e for e in entries if e.kind == "deterministic"]
    assert all(e.beside["linear"].right for e in plain)
    assert sum(e.beside["bisect"].right for e in plain) == 13


def test_the_command_prints_json() -> None:
    arguments = [str(HERE / "rules.yaml"), "--seeds", "1", "--only", "empty-rows,flat-tree-small-budget", "--json"]
    done = subprocess.run(
        [sys.executable, str(HERE / "bench_rules.py"), *arguments], capture_output=True, text=True, check=True
    )
    assert [r["id"] for r in json.loads(done.stdout)["rules"]] == ["flat-tree-small-budget", "empty-rows"]


def test_a_wrong_file_is_named_and_nothing_is_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("rules:\n- {id: x, axes: {n: [1, 2]}, fails: \"__import__('os').system('true')\"}\n")
    assert bench_rules.main([str(wrong)]) == 2
    assert "rule x" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["__import__('os')", "n.bit_length()", "2 ** 99999", "lambda: 1", "open('x')", "1 if"])
def test_the_evaluator_refuses_what_it_does_not_know(text: str) -> None:
    with pytest.raises(Refused):
        Condition(text)({"n": 3})


def test_the_evaluator_knows_the_language_of_the_file() -> None:
    earlier = [{"batch": 4}, {"batch": 16}]
    assert Condition('any(p["batch"] > 8 for p in earlier) and n not in (1, 2)')({"earlier": earlier, "n": 3})
    assert not Condition("128 < n < 256 or next_pow2(n) == 8")({"n": 3})


def test_the_page_shows_the_vocabulary_as_it_is() -> None:
    page = (HERE.parents[1] / "docs" / "reference" / "search-quality.md").read_text(encoding="utf-8")
    for family in FAMILIES:
        assert f"| {family.name} | `{family.says}` | {family.mass:.2f} |" in page, (
            "make the page again: see its first line"
        )
    assert "proven and false | 0" in page
