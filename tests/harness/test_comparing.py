"""Packing, filling and comparing of buffers, against numpy and against element-by-element definitions."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
import pytest
from harness_kernels import buffer
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.child import compare, dtypes, fills

NUMPY = {name: name for name in dtypes._TABLE if name != "bfloat16"}


@given(st.integers(0, 2**32 - 1))
def test_bfloat16_is_the_nearest_by_both_ways(bits: int) -> None:
    value = np.array([bits], "uint32").view("float32")
    by_numpy = dtypes.from_numpy(np, "bfloat16", value)
    assert by_numpy == struct.pack("<H", dtypes.bfloat16_bits(bits))
    back = dtypes.to_numpy(np, "bfloat16", by_numpy, (1,))
    assert math.isnan(back[0]) == math.isnan(value[0])
    if np.isfinite(value[0]) and np.isfinite(back[0]):
        step = 2.0 ** (max(math.frexp(float(value[0]))[1], -125) - 8)
        assert abs(float(back[0]) - float(value[0])) <= step / 2


@pytest.mark.parametrize("dtype", NUMPY)
@given(value=st.integers(-(2**70), 2**70))
def test_packing_integers_wraps_as_c_does(dtype: str, value: int) -> None:
    if dtype in dtypes.FLOATS or dtype == "bool":
        return
    width = np.dtype(dtype).itemsize * 8
    wrapped = value % (1 << width)
    assert np.frombuffer(dtypes.pack(dtype, value), f"uint{width}")[0] == wrapped


@pytest.mark.parametrize("dtype", dtypes._TABLE)
def test_poison_is_counted_exactly(dtype: str) -> None:
    zero = dtypes.pack(dtype, 0)
    data = zero * 3 + dtypes.poison(dtype) * 2 + zero
    assert dtypes.count_poison(dtype, data) == 2
    assert dtypes.poison_mask(np, dtype, data, (2, 3)).tolist() == [[False] * 3, [True, True, False]]
    if dtype in dtypes.FLOATS:
        assert np.isnan(dtypes.to_numpy(np, dtype, dtypes.poison(dtype), (1,)))[0]


def content(spec: dict[str, Any], name: str = "x", dtype: str = "float32", count: int = 4000, seed: int = 0) -> Any:
    filler = fills.Filler(dtypes, np, lambda spec, offered: None)
    data = filler.contents(buffer(name, count, fill=spec, dtype=dtype, seed=seed), {})
    return dtypes.to_numpy(np, dtype, data, (count,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_drawn_values_have_the_asked_distribution(dtype: str) -> None:
    normal = content({"kind": "normal", "mean": 3, "std": 2}, dtype=dtype).astype("float64")
    assert abs(normal.mean() - 3) < 0.2
    assert abs(normal.std() - 2) < 0.2
    uniform = content({"kind": "uniform", "low": -1, "high": 5}, dtype=dtype).astype("float64")
    assert -1 <= uniform.min() < -0.9
    assert 4.9 < uniform.max() <= 5
    whole = content({"kind": "randint", "low": 2, "high": 5}, dtype="int32")
    assert set(whole.tolist()) == {2, 3, 4}


def test_draws_depend_on_seed_and_name_only() -> None:
    spec = {"kind": "normal"}
    assert (content(spec) == content(spec)).all()
    assert (content(spec) != content(spec, seed=1)).any()
    assert (content(spec) != content(spec, name="y")).any()


@given(
    pair=hnp.arrays("float32", st.tuples(st.just(2), st.integers(1, 12)), elements=st.floats(width=32)),
    rel=st.sampled_from([0.0, 1e-3, 0.5]),
    absolute=st.sampled_from([0.0, 1e-3, 2.0]),
)
def test_compare_is_its_definition_element_by_element(pair: Any, rel: float, absolute: float) -> None:
    got, expected = pair

    def differs(a: float, b: float) -> bool:
        if a == b or (math.isnan(a) and math.isnan(b)):
            return False
        if rel == absolute == 0.0:
            return True
        return not abs(a - b) <= absolute + rel * abs(b)

    wanted = [differs(float(a), float(b)) for a, b in zip(got, expected, strict=True)]
    facts = compare.compare(np, got, expected, None, {"rel": rel, "abs": absolute})
    assert facts["differing"] == sum(wanted)
    assert facts["first"] is None if not any(wanted) else facts["first"]["index"] == [wanted.index(True)]
    assert facts["nonfinite"] == sum(not math.isfinite(a) for a in got)
    json.dumps(facts, allow_nan=False)


@given(st.sampled_from(["int64", "uint64", "int8", "uint8"]), st.data())
def test_integers_are_compared_exactly_at_any_size(dtype: str, data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    a, b = (data.draw(st.integers(int(info.min), int(info.max))) for _ in range(2))
    facts = compare.compare(np, np.array([a], dtype), np.array([b], dtype), None, compare.EXACT)
    assert facts["differing"] == int(a != b)
    assert facts["max_abs"] == pytest.approx(float(abs(a - b)))


def test_poison_counts_only_where_something_else_was_expected() -> None:
    got = np.array([0xA5, 0xA5, 7], "uint8")
    expected = np.array([0xA5, 1, 7], "uint8")
    facts = compare.compare(np, got, expected, got == 0xA5, compare.EXACT)
    assert (facts["differing"], facts["poison_left"]) == (1, 1)


def test_tolerances_are_chosen_by_name_then_type() -> None:
    exact, given_one = {"rel": 0.0, "abs": 0.0}, {"rel": 0.1, "abs": 0.2}
    assert compare.tolerance_for("out", "int32", given_one) == exact
    assert compare.tolerance_for("out", "int32", {"out": given_one}) == given_one
    assert compare.tolerance_for("out", "float32", given_one) == given_one
    assert compare.tolerance_for("out", "float32", {"rel": 0.1}) == {"rel": 0.1, "abs": 0.0}
    assert compare.tolerance_for("out", "float32", None) == compare.DEFAULT_TOLERANCE["float32"]
    assert compare.tolerance_for("out", "float32", {"other": given_one}) == compare.DEFAULT_TOLERANCE["float32"]
