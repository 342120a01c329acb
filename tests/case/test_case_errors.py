"""The messages of wrong case files, each beside the file that causes it: tests/case/wrong/*.yaml and *.txt.

Set CUDADIAG_UPDATE_SNAPSHOTS=1 to write the .txt files anew, then read the difference.
"""

from __future__ import annotations

import copy
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.case import Case, CaseError, load, load_text
from cudadiag.errors import CudadiagError, UsageError

HERE = Path(__file__).parent
WRONG = sorted((HERE / "wrong").glob("*.yaml"))
MATERIAL = HERE / "material"


def _use(path: Path) -> None:
    """Everything that can find a mistake: loading, the sweep, a request."""
    case = load(path)
    case.request(case.sweep.shape(0), folder="out")


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_case_says_what_is_wrong_and_what_would_be_right(path: Path) -> None:
    with pytest.raises(CudadiagError) as caught:
        _use(path)
    assert caught.value.exit_code == 2
    message = caught.value.message.replace(f"{path}:", f"{path.name}:").replace(str(path.parent), "FOLDER") + "\n"
    snapshot = path.with_suffix(".txt")
    if os.environ.get("CUDADIAG_UPDATE_SNAPSHOTS"):
        snapshot.write_text(message, encoding="utf-8")
    assert message == snapshot.read_text(encoding="utf-8")


def test_every_message_has_the_form_file_line_column() -> None:
    assert len(WRONG) >= 15
    for path in WRONG:
        for line in path.with_suffix(".txt").read_text(encoding="utf-8").splitlines():
            assert line.startswith(f"{path.name}:"), line
            _, row, column, message = line.split(":", 3)
            assert int(row) >= 1
            assert int(column) >= 1
            assert len(message) > 10


def test_problems_come_in_the_order_of_the_file_and_one_per_place() -> None:
    with pytest.raises(CaseError) as caught:
        load(HERE / "wrong" / "everything.yaml")
    marks = [problem.mark for problem in caught.value.problems]
    assert marks == sorted(set(marks))
    assert len(marks) > 20


KERNEL: dict[str, Any] = {
    "case": "scale",
    "title": "t",
    "target": {
        "kernel": {
            "source": "kernel.cu",
            "entry": "scale",
            "define": {"A": 4, "T": "float", "N2": "{n * 2}"},
            "grid": ["n", 2],
            "block": 128,
            "shared": "4 * n",
            "args": [
                {"in": "x", "dtype": "float32", "shape": ["n", "A"], "fill": {"kind": "randint", "high": "n"}},
                {"out": "y", "dtype": "float32", "shape": ["n"]},
                {"scalar": "n", "dtype": "int32"},
            ],
            "reference": "reference.py:scale",
            "tolerance": {"y": {"rel": 0.1}},
        }
    },
    "sweep": {"n": [1, {"around": [8]}, {"from": 16, "to": 64, "times": 2}], "mode": ["a", True]},
    "set": {"k": 3, "h": 2.5},
    "derive": {"m": "n * k", "o": "m - A"},
    "where": ["m < 100", "x.bytes > 0"],
    "emulator": {"k": 2},
    "limits": {"timeout": "5m", "memory": "1GiB"},
    "timing": {"launches": 3},
    "build": ["make", "{build_dir}"],
    "success": "^ok$",
    "env": {"A": "{n}", "B": 3},
    "requires": {"device": "cuda", "arch": ">=90", "memory": "1GiB"},
    "plant": {"kind": "illegal-instruction", "entry": "scale", "marker": "PLANT HERE"},
    "gate": {"smoke": [{"n": 8}, "n > 2"], "boundaries": "m > 6", "repeat": 2},
}


def test_the_case_that_is_mutated_below_is_right() -> None:
    case = load_text(json.dumps(KERNEL).encode(), MATERIAL / "x.yaml")
    assert len(case.sweep) == 12
    assert case.request(case.sweep.shape(0), folder="out", build_dir="b").target["kind"] == "kernel"


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, item in items for below in _paths(item, (*path, key)))]


words = st.sampled_from(
    [
        "n",
        "m",
        "x",
        "in",
        "out",
        "args",
        "case",
        "shape",
        "no",
        "1e3",
        "{n}",
        "{",
        "}",
        "+",
        "1//0",
        "2**n**n",
        "min(n",
        "kernel",
        "kernels",
        "python",
        "service",
        "script.py:some",
        "reference.py:mask",
        "x.npz:q",
        "é",
    ]
) | st.sampled_from(["", "a b", "n +", "missing.py:f"])
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.integers() | st.floats() | words | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(_paths(KERNEL)[1:]), junk, st.sampled_from(["replace", "remove", "add"]), words)
def test_a_case_with_anything_anywhere_is_a_case_or_an_error(
    path: tuple[Any, ...], put: Any, how: str, key: str
) -> None:
    data = copy.deepcopy(KERNEL)
    parent = data
    for part in path[:-1]:
        parent = parent[part]
    if how == "replace":
        parent[path[-1]] = put
    elif how == "remove":
        del parent[path[-1]]
    elif isinstance(parent, dict):
        parent[key] = put
    else:
        parent.append(put)
    with suppress(UsageError):  # anything else is a bug: it would be a traceback, or exit code 3
        case = load_text(json.dumps(data).encode(), MATERIAL / "x.yaml")
        assert isinstance(case, Case)
        shape = case.sweep.shape(0)
        json.dumps(dict(case.request(shape, folder="out", build_dir="b", device="emulator").target), allow_nan=False)
