"""The numbers that the case names: which of them a rule may use, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from searching import run, sweep, where

from cudadiag.search.expr import Const, Name, Op, text, to_json, words
from cudadiag.search.vocabulary import build

LINE = sweep(n=[500, 1000, 1500, 2000, 2500, 3000, 3500], m=[1, 2])
OVER = where(LINE, lambda n, m: n > 2200)


def test_without_names_the_plain_number_is_said() -> None:
    found, _ = run(LINE, OVER)
    assert [r.expression for r in found.rules] == ["n > 2048"]


def test_the_rivals_are_listed_with_a_shape_that_tells_them_apart() -> None:
    found, _ = run(replace(LINE, constants={"MAX_N": 2200}), OVER)
    (rule,) = found.rules
    assert (rule.expression, rule.text) == ("n > MAX_N", "n > MAX_N (2200)")
    rivals = {r.expression: r for r in found.rivals}
    assert rivals["n > 2048"].shape == {"n": 2049, "m": 1}
    assert rivals["n >= MAX_N"].shape == {"n": 2200, "m": 1}
    assert not any(r.legal for r in found.rivals)


def test_a_rival_about_a_derived_quantity_has_no_shape_and_is_equal_everywhere() -> None:
    subject = replace(LINE, derived={"total": tuple(int(n) + 9 for n, _ in LINE.shapes)}, constants={"CAP": 2200})
    found, _ = run(subject, OVER)
    assert found.rules[0].expression == "total > CAP"
    assert "n > 2048" in {r.expression for r in found.rivals}
    assert all(r.shape is None for r in found.rivals if r.expression == "n > 2048")


@pytest.mark.parametrize("constants", [{"TWO": 2}, {"EIGHT": 8}, {"FAR": 4000}, {"BELOW": 100}])
def test_small_numbers_and_those_outside_the_sweep_are_no_words_of_it(constants: dict[str, int]) -> None:
    assert build(replace(LINE, constants=constants)).literals.conditions == build(LINE).literals.conditions


def test_two_names_of_one_number_are_one_word() -> None:
    conditions = build(replace(LINE, constants={"latent": 1200, "LATENT": 1200})).literals.conditions
    assert any("latent" in text(c) for c in conditions)
    assert not any("LATENT" in text(c) for c in conditions)


def test_a_named_constant_is_written_by_name_and_keeps_its_number() -> None:
    rule = Op("<=", (Name("n"), Const(2**20, "LIMIT")))
    assert (text(rule), words(rule)) == ("n <= LIMIT", "n <= LIMIT (2**20)")
    assert to_json(rule) == {"op": "<=", "args": [{"name": "n"}, {"name": "LIMIT", "value": 2**20}]}
