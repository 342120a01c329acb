"""The sweep of a case: order, conditions, derived columns; small and large sweeps alike."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.case import Case, CaseError, load_text, parse_option, shapes
from cudadiag.errors import UsageError

MATERIAL = Path(__file__).parent / "material" / "x.yaml"


def case(**keys: Any) -> Case:
    data = {"case": "c", "target": {"command": "true"}, **keys}
    return load_text(json.dumps(data).encode(), MATERIAL)


def kernel(**keys: Any) -> dict[str, Any]:
    return {"kernel": {"source": "kernel.cu", "entry": "scale", "grid": 1, "block": 1, **keys}}


def test_the_declared_order_with_the_last_axis_fastest() -> None:
    sweep = case(sweep={"streams": [4, 1], "q": [9, 17], "mode": ["a", True]}).sweep
    assert sweep.shapes == tuple(itertools.product((4, 1), (9, 17), ("a", True)))
    assert sweep.shape(1) == {"streams": 4, "q": 9, "mode": True}


def test_conditions_leave_out_shapes_and_guard_each_other() -> None:
    sweep = case(sweep={"a": [0, 1, 2, 3, 4], "b": [8]}, where=["a != 0", "b % a == 0"]).sweep
    assert [shape[0] for shape in sweep.shapes] == [1, 2, 4]


def test_a_condition_may_be_one_text_and_use_derived_quantities() -> None:
    made = case(sweep={"n": [1, 2, 3]}, set={"k": 10}, derive={"m": "n * k", "twice": "2 * m"}, where="twice < 50")
    assert made.sweep.shapes == ((1,), (2,))
    assert made.sweep.derived == {"m": (10, 20), "twice": (20, 40)}


def test_derived_columns_are_numbers_true_as_1_and_texts_left_out() -> None:
    sweep = case(sweep={"n": [1, 2], "t": ["x", "y"]}, derive={"odd": "n % 2 == 1", "half": "n / 2", "text": "t"}).sweep
    assert sweep.derived == {"odd": (1, 1, 0, 0), "half": (0.5, 0.5, 1.0, 1.0)}
    assert all(type(value) is int for value in sweep.derived["odd"])


def test_the_columns_of_a_kernel_target() -> None:
    args = [
        {"in": "x", "dtype": "float16", "shape": ["n", "ROWS"]},
        {"out": "y", "dtype": "float64", "shape": []},
        {"scalar": "n", "dtype": "int32"},
    ]
    target = kernel(
        define={"ROWS": "{n + 1}", "T": "float"}, grid=["n", 2], block=[32, "k"], shared="4 * ROWS", args=args
    )
    sweep = case(target=target, sweep={"n": [1, 2]}, set={"k": 4}).sweep
    assert sweep.derived == {
        "x.elements": (2, 6),
        "x.bytes": (4, 12),
        "y.elements": (1, 1),
        "y.bytes": (8, 8),
        "grid.x": (1, 2),
        "grid.y": (2, 2),
        "grid": (2, 4),
        "block.x": (32, 32),
        "block.y": (4, 4),
        "block": (128, 128),
        "shared": (8, 12),
    }


def test_a_parameter_hides_a_quantity_of_its_name() -> None:
    sweep = case(target=kernel(block="block"), sweep={"block": [64, 128]}, derive={"grid": "block * 2"}).sweep
    assert sweep.derived == {"grid": (128, 256), "grid.x": (1, 1), "block.x": (64, 128)}


def test_launches_of_several_kernels_have_the_kernels_name() -> None:
    one = {"source": "kernel.cu", "entry": "scale", "grid": "n", "block": 8}
    sweep = case(target={"kernels": [one, {**one, "entry": "twice"}, one]}, sweep={"n": [3]}).sweep
    assert [name for name in sweep.derived if name.endswith("grid")] == ["scale.grid", "twice.grid", "scale_2.grid"]


def test_macros_of_several_kernels_are_names_where_they_agree() -> None:
    one = {"source": "kernel.cu", "entry": "scale", "grid": "A", "block": 1, "define": {"A": 4, "B": 1}}
    two = {**one, "grid": "A * 2", "define": {"A": 4, "B": 2}}
    assert case(target={"kernels": [one, two]}).sweep.derived["scale_2.grid"] == (8,)
    with pytest.raises(CaseError, match="unknown name 'B'"):
        case(target={"kernels": [one, {**two, "grid": "B"}]})


def test_no_axes_is_one_shape() -> None:
    made = case(set={"n": 3}, derive={"m": "n + 1"})
    assert made.sweep.shapes == ((),)
    assert made.sweep.derived == {"m": (4,)}


def test_the_emulated_device_has_its_own_fixed_parameters() -> None:
    made = case(
        sweep={"n": [1, 2]}, set={"heads": 64, "rope": 8}, emulator={"heads": 2}, derive={"m": "n * heads + rope"}
    )
    assert made.sweep.derived["m"] == (72, 136)
    assert made.on_device("emulator").sweep.derived["m"] == (10, 12)
    assert made.on_device("cuda:GPU-1") is made


def test_axes_and_fixed_parameters_are_overridden_by_name() -> None:
    made = case(sweep={"a": [1, 2], "b": [3]}, set={"k": 5, "j": 6}, emulator={"k": 1}, derive={"m": "a * k"})
    other = made.with_axes([parse_option("k=7,8"), parse_option("a=9")])
    assert [(axis.name, axis.values) for axis in other.axes] == [("a", (9,)), ("b", (3,)), ("k", (7, 8))]
    assert other.on_device("emulator").sweep.derived["m"] == (63, 72)
    assert made.sweep.shapes == ((1, 3), (2, 3))
    with pytest.raises(UsageError, match="-P zz: the case c has no such parameter; it has a, b, k, j"):
        made.with_axes([parse_option("zz=9")])
    with pytest.raises(UsageError, match="-P a is given twice: write its values in one"):
        made.with_axes([parse_option("a=1"), parse_option("a=2")])


def test_one_more_condition_may_use_what_the_case_has() -> None:
    made = case(sweep={"a": [1, 2, 3]}, derive={"m": "a * 2"}).with_where("m > 2")
    assert made.sweep.shapes == ((2,), (3,))
    with pytest.raises(UsageError, match="unknown name 'mm': did you mean 'm'"):
        made.with_where("mm > 2")


def test_a_shape_is_completed_and_checked() -> None:
    made = case(sweep={"a": [1, 2], "b": [3]})
    assert list(made.shape({"b": 3, "a": 7}).items()) == [("a", 7), ("b", 3)]
    assert made.shape({"a": 7}) == {"a": 7, "b": 3}
    with pytest.raises(UsageError, match="no value for a: add -P a=1"):
        made.shape({})
    with pytest.raises(UsageError, match="no parameter 'c' on an axis; it has a, b"):
        made.shape({"c": 1})


LARGE = {
    "target": kernel(
        grid=["h", "s"],
        block="max(32, d)",
        args=[{"in": "q", "dtype": "float32", "shape": ["s", "h", "d", "LEN"]}],
        define={"LEN": 4096},
    ),
    "sweep": {
        "s": {"from": 1, "to": 20, "step": 1},
        "h": {"from": 1, "to": 25, "step": 1},
        "d": {"from": 8, "to": 800, "step": 8},
        "mode": ["a", "b"],
    },
    "derive": {"rows": "ceil_div(s * h, 7)", "big": "s * h * d * 2 ** 40", "p": "next_pow2(d)"},
    "where": ["s * h <= 480", "mode == 'a' or d % 16 == 0", "q.bytes < 2 ** 40"],
}


def test_a_hundred_thousand_shapes_take_a_moment() -> None:
    made = case(**LARGE)
    start = time.perf_counter()
    sweep = made.sweep
    assert time.perf_counter() - start < 5  # 0.6 s alone on one core; the rest is for a busy machine
    assert 60_000 < len(sweep) < 100_000
    index = len(sweep) // 2
    values = made.values(sweep.shape(index))
    assert {name: sweep.derived[name][index] for name in ("rows", "big", "p")} == {
        name: values[name] for name in ("rows", "big", "p")
    }
    assert sweep.derived["big"][-1] > 2**52


def test_a_million_shapes_are_the_limit() -> None:
    axes = {"a": {"from": 1, "to": 1000, "step": 1}, "b": {"from": 1, "to": 1001, "step": 1}}
    with pytest.raises(
        CaseError, match=r"x.yaml:1:\d+: 1001000 shapes \(a 1000 x b 1001\), the limit is 1000000: shorten b"
    ):
        shapes.build_sweep(case(sweep=axes))


conditions = st.lists(
    st.sampled_from(
        ["a > 2", "a * b < 40", "a % b == 0", "t == 'x' or a < 3", "m != 6", "a * 2 ** 62 > b", "f <= 1.5"]
    ),
    max_size=3,
)
values = st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True)


@settings(deadline=None, max_examples=60)
@given(values, values, st.lists(st.sampled_from(["x", "y", 1, 2.5]), min_size=1, max_size=3, unique=True), conditions)
def test_small_and_large_sweeps_are_made_alike(a: list[int], b: list[int], t: list[Any], where: list[str]) -> None:
    """The way with plain lists and the way with arrays give the same shapes and columns, or fail at the same shape."""
    made = case(
        sweep={"a": a, "b": b, "t": t, "f": [0.5, 1.5]},
        derive={"m": "a * b", "huge": "a * 3 ** 50", "half": "a / b", "flag": "a > b"},
        where=where,
    )
    assert _outcome(made, few=0) == _outcome(made, few=10**9)


def _outcome(made: Case, few: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "_FEW", few)
        try:
            return repr(shapes.build_sweep(made))
        except UsageError as error:
            return error.message


def test_the_numbers_that_have_a_name_are_constants_of_the_sweep() -> None:
    target = kernel(define={"LEN": 4096, "ROWS": "{heads * 2}", "N1": "{n + 1}", "T": "float", "BAD": "{1 // zero}"})
    made = case(
        target=target,
        sweep={"n": [1, 2]},
        set={"heads": 64, "zero": 0, "dtype": "fp16", "fast": True},
        derive={"limit": "LEN // 2", "m": "n * 2"},
        emulator={"heads": 2},
    )
    assert made.sweep.constants == {"heads": 64, "zero": 0, "LEN": 4096, "ROWS": 128, "limit": 2048}
    assert made.on_device("emulator").sweep.constants["ROWS"] == 4
