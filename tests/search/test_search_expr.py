"""Rules are printed in the case language: the text means what the search computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searching import sweep

from cudadiag.case.expr import parse
from cudadiag.search.expr import ALWAYS, LARGEST, Const, Name, Op, evaluate, op, text, to_json, words
from cudadiag.search.vocabulary import build

VALUES = st.integers(0, 5000)
NAMES = st.sampled_from(["a", "b", "c"]).map(Name)
TERMS = st.recursive(
    NAMES,
    lambda inner: st.one_of(
        st.builds(op, st.sampled_from(["+", "-", "*"]), inner, inner),
        st.builds(op, st.sampled_from(["//", "%", "ceil_div"]), inner, st.integers(1, 300)),
        st.builds(op, st.just("abs"), inner),
        st.builds(op, st.just("next_pow2"), NAMES),
    ),
    max_leaves=5,
)
LITERALS = st.one_of(
    st.builds(op, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), TERMS, VALUES),
    st.builds(lambda n, v: Op("in", (n, Const(tuple(v)))), NAMES, st.lists(VALUES, min_size=1, max_size=3)),
    st.builds(lambda name, n: Op(name, (n,)), st.sampled_from(["is_pow2", "not_pow2"]), NAMES),
)
RULES = st.one_of(LITERALS, st.builds(op, st.sampled_from(["and", "or"]), LITERALS, LITERALS, LITERALS))


@settings(max_examples=150, deadline=None)
@given(RULES, st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=6))
def test_the_text_of_a_rule_means_what_was_computed(rule: Op, rows: list[tuple[int, int, int]]) -> None:
    columns = {name: np.array([r[k] for r in rows], dtype=np.int64) for k, name in enumerate("abc")}
    computed = evaluate(rule, columns, len(rows))
    parsed = parse(text(rule))
    for row, value in zip(rows, computed, strict=True):
        assert bool(parsed.evaluate(dict(zip("abc", row, strict=True)))) == bool(value), text(rule)


def test_every_literal_of_a_vocabulary_is_written_as_it_is_computed() -> None:
    subject = sweep(batch=[1, 3, 8, 16, 17], dtype=["fp16", "bf16", "it's"], flag=[False, True], n=[63, 64, 65, 4096])
    made = build(subject)
    for row in range(0, len(made.literals.conditions), 7):
        condition = made.literals.conditions[row]
        parsed = parse(text(condition))
        said = [bool(parsed.evaluate(subject.shape(i))) for i in range(len(subject))]
        assert said == made.literals.bits[row].tolist(), text(condition)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (op("!=", op("%", Name("m"), 8), 0), "m is not a multiple of 8"),
        (op("and", op(">", Name("b"), 4), Op("not_pow2", (Name("b"),))), "b > 4 and b is not a power of two"),
        (op(">", op("*", Name("r"), Name("c")), 2**31), "r * c > 2**31"),
        (op(">", Name("n"), 2**31 - 1), "n > 2**31 - 1"),
        (ALWAYS, "whatever the shape"),
    ],
)
def test_rules_in_words(rule: Op, said: str) -> None:
    assert words(rule) == said


def test_products_saturate_instead_of_wrapping() -> None:
    big = np.array([2**40, 3], dtype=np.int64)
    assert evaluate(op("*", Name("a"), Name("a")), {"a": big}, 2).tolist() == [LARGEST, 9]


def test_the_machine_form_is_plain_json() -> None:
    assert to_json(op(">=", op("+", Name("a"), 1), 7)) == {
        "op": ">=",
        "args": [{"op": "+", "args": [{"name": "a"}, 1]}, 7],
    }


@given(
    st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=8),
    st.integers(1, 2**20) | st.sampled_from([1, 2, 64, 2**31]),
)
def test_division_by_a_constant_is_pythons(values: list[int], divisor: int) -> None:
    columns = {"n": np.array(values, dtype=np.int64)}
    for name, wanted in (
        ("//", [v // divisor for v in values]),
        ("%", [v % divisor for v in values]),
        ("ceil_div", [-(-v // divisor) for v in values]),
    ):
        assert evaluate(op(name, Name("n"), divisor), columns, len(values)).tolist() == wanted
