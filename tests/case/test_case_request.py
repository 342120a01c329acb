"""Requests: every expression evaluated, as the docstrings of harness/targets ask for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cudadiag.case import Case, all_cases, from_command, load, load_text
from cudadiag.errors import CudadiagError, UsageError
from harness.records import Limits, to_json

HERE = Path(__file__).parent / "material"


def case(**keys: Any) -> Case:
    return load_text(json.dumps({"case": "c", "target": {"command": "true"}, **keys}).encode(), HERE / "x.yaml")


def target(made: Case, folder: str = "out", **shape: Any) -> dict[str, Any]:
    return dict(made.request(shape, folder=folder, build_dir="/b").target)


def test_the_words_of_a_command() -> None:
    words = ["./b", "--q={q * 2}", "{mode}", "{{literal}}", "{flag}", 7, "{case_dir}/x", "{build_dir}/y", "{q / 2}"]
    made = case(target={"command": words}, sweep={"q": [9], "mode": ["a b"], "flag": [True]}, build="make")
    assert target(made) == {
        "kind": "command",
        "argv": ["./b", "--q=18", "a b", "{literal}", "true", "7", f"{HERE}/x", "/b/y", "4.5"],
    }


def test_a_command_as_one_text_is_split_before_values_are_put_in() -> None:
    made = case(target={"command": "./b --q {q * 2} '{mode}' \"two words\" {{x}}"}, sweep={"q": [9], "mode": ["a b"]})
    assert target(made)["argv"] == ["./b", "--q", "18", "a b", "two words", "{x}"]


def test_what_a_request_carries_besides_its_target() -> None:
    made = case(
        sweep={"n": [1]},
        env={"A": "{n + 1}", "B": 3, "C": "x"},
        observer="memcheck",
        limits={"timeout": "2m", "grace": 0.5, "output": "1MiB", "memory": "1GB"},
    )
    request = made.request({"n": 5}, folder="/f", device="cuda:GPU-1", memory_model="hardware", env={"C": "y"})
    assert request.env == {"A": "6", "B": "3", "C": "y"}
    assert request.limits == Limits(timeout_s=120.0, grace_s=0.5, stream_bytes=1 << 20, memory_bytes=10**9)
    assert (request.observer, request.device, request.memory_model) == ("memcheck", "cuda:GPU-1", "hardware")
    assert (request.folder, request.cwd) == ("/f", str(HERE))
    assert made.request({"n": 5}, folder="/f", observer="plain", timeout_s=3).observer == "plain"
    assert made.request({"n": 5}, folder="/f", timeout_s=3).limits.timeout_s == 3


@pytest.mark.parametrize(
    ("function", "kwargs"),
    [
        ("some", {"n": 4, "mode": "y", "other": 2}),
        ("everything", {"n": 4, "mode": "y", "other": 2, "k": 1.5}),
        ("imported", {"n": 4, "mode": "y", "other": 2, "k": 1.5}),
    ],
)
def test_a_python_function_gets_the_parameters_that_it_takes(function: str, kwargs: dict[str, Any]) -> None:
    made = case(target={"python": f"script.py:{function}"}, sweep={"n": [4], "mode": ["y"]}, set={"other": 2, "k": 1.5})
    shape = {"n": 4, "mode": "y"}
    expected = {
        "kind": "python",
        "file": str(HERE / "script.py"),
        "function": function,
        "shape": shape,
        "kwargs": kwargs,
    }
    assert target(made) == expected


def test_arguments_of_a_python_function_may_be_expressions() -> None:
    python = {"function": "script.py:everything", "args": {"m": "n * 2", "on": True}, "interpreter": "/opt/python"}
    made = case(target={"python": python}, sweep={"n": [4]})
    assert target(made)["kwargs"] == {"m": 8, "on": True}
    assert made.request({"n": 4}, folder="f").interpreter == "/opt/python"
    assert made.request({"n": 4}, folder="f", interpreter="/mine").interpreter == "/mine"


KERNEL: dict[str, Any] = {
    "source": "kernel.cu",
    "entry": "scale",
    "define": {"LEN": 4096, "T": "float", "ROWS": "{n * 2}", "FAST": True, "NAME": "v{n}", "n": "{n}"},
    "options": "-O3",
    "grid": ["n", "ROWS"],
    "block": 128,
    "cluster": [2],
    "shared": "4 * ROWS",
    "args": [
        {"in": "x", "dtype": "float32", "shape": ["n", "LEN"], "fill": "normal", "seed": 3},
        {"in": "i", "dtype": "int32", "shape": ["n"], "fill": {"kind": "randint", "low": 1, "high": "n * k"}},
        {"inout": "m", "dtype": "uint8", "shape": [], "fill": "reference.py:mask"},
        {"in": "d", "dtype": "float64", "shape": [2], "fill": 2.5},
        {"in": "z", "dtype": "bool", "shape": [2]},
        {"scratch": "w", "dtype": "float16", "shape": ["n - 1"], "free": False},
        {"out": "y", "dtype": "float32", "shape": ["n"]},
        {"scalar": "n", "dtype": "int32"},
        {"scalar": "s", "dtype": "float32", "value": "k / 2"},
        {"scalar": "b", "dtype": "bool", "value": "n > 0"},
    ],
    "reference": "reference.py:scale",
    "tolerance": {"y": {"rel": 0.1}},
}


def kernel_request() -> dict[str, Any]:
    made = case(
        target={"kernel": KERNEL}, sweep={"n": [1, 2]}, set={"k": 5}, derive={"area": "n * k"}, timing={"launches": 3}
    )
    return dict(made.request({"n": 1}, folder="f", timing=True).target)


def test_the_buffers_of_a_kernel() -> None:
    assert {buffer["name"]: buffer for buffer in kernel_request()["buffers"]} == {
        "x": {"name": "x", "role": "in", "dtype": "float32", "shape": [1, 4096], "fill": {"kind": "normal"}, "seed": 3},
        "i": _buffer("i", "int32", [1], {"kind": "randint", "low": 1, "high": 5}),
        "m": _buffer(
            "m", "uint8", [], {"kind": "function", "file": str(HERE / "reference.py"), "function": "mask"}, "inout"
        ),
        "d": _buffer("d", "float64", [2], {"kind": "value", "value": 2.5}),
        "z": _buffer("z", "bool", [2], {"kind": "zeros"}),
        "w": {"name": "w", "role": "scratch", "dtype": "float16", "shape": [0], "free": False},
        "y": {"name": "y", "role": "out", "dtype": "float32", "shape": [1]},
    }


def test_a_kernel() -> None:
    request = kernel_request()
    del request["buffers"]
    assert request.pop("kernels") == [
        {
            "source": str(HERE / "kernel.cu"),
            "entry": "scale",
            "define": {"LEN": 4096, "T": "float", "ROWS": 2, "FAST": 1, "NAME": "v1", "n": 1},
            "options": ["-O3"],
            "grid": [1, 2, 1],
            "block": [128, 1, 1],
            "cluster": [2, 1, 1],
            "shared": 8,
            "args": [
                *("x", "i", "m", "d", "z", "w", "y"),
                {"scalar": 1, "dtype": "int32", "name": "n"},
                {"scalar": 2.5, "dtype": "float32", "name": "s"},
                {"scalar": True, "dtype": "bool", "name": "b"},
            ],
        }
    ]
    assert request.pop("params") == {"n": 1, "k": 5, "area": 5, "LEN": 4096, "ROWS": 2, "FAST": 1}
    assert request == {
        "kind": "kernel",
        "check": True,
        "timing": {"launches": 3},
        "plant": None,
        "shape": {"n": 1},
        "reference": {"file": str(HERE / "reference.py"), "function": "scale"},
        "tolerance": {"y": {"rel": 0.1, "abs": 0.0}},
    }


def _buffer(name: str, dtype: str, shape: list[int], fill: dict[str, Any], role: str = "in") -> dict[str, Any]:
    return {"name": name, "role": role, "dtype": dtype, "shape": shape, "fill": fill, "seed": 0}


def test_check_and_timing_are_asked_for() -> None:
    made = case(target={"kernel": KERNEL}, sweep={"n": [1, 2]}, set={"k": 5})
    off = made.request({"n": 1}, folder="f", check=False).target
    assert (off["check"], off["timing"]) == (False, None)
    without = case(target={"kernel": {**KERNEL, "reference": None, "tolerance": None}}, sweep={"n": [1]}, set={"k": 5})
    assert without.request({"n": 1}, folder="f").target["check"] is False


def test_several_kernels_share_their_buffers() -> None:
    first = {"source": "kernel.cu", "entry": "scale", "grid": 1, "block": 1}
    first["args"] = [{"out": "y", "dtype": "int8", "shape": [4]}]
    second = {
        **first,
        "entry": "twice",
        "args": ["y", {"buffer": "y"}, {"scratch": "z", "dtype": "int8", "shape": [1]}],
    }
    made = case(target={"kernels": [first, second], "reference": "reference.py:scale", "tolerance": {"abs": 1}})
    request = target(made)
    assert [buffer["name"] for buffer in request["buffers"]] == ["y", "z"]
    assert [kernel["args"] for kernel in request["kernels"]] == [["y"], ["y", "y", "z"]]
    assert request["tolerance"] == {"rel": 0.0, "abs": 1.0}


def test_a_plant() -> None:
    plant = {"kind": "illegal-instruction", "entry": "scale", "marker": "PLANT HERE", "source": "kernel.cu"}
    made = case(target={"kernel": KERNEL}, sweep={"n": [1, 2]}, set={"k": 5}, plant=plant)
    assert target(made, n=1)["plant"] == {**plant, "source": str(HERE / "kernel.cu")}


def test_several_shapes_run_in_one_process() -> None:
    made = case(target={"kernel": KERNEL}, sweep={"n": [1, 2]}, set={"k": 5}, isolation="sequence")
    request = made.request([{"n": 1}, {"n": 2}], folder="f").target
    assert [step["shape"] for step in request["steps"]] == [{"n": 1}, {"n": 2}]
    assert [step["buffers"][0]["shape"] for step in request["steps"]] == [[1, 4096], [2, 4096]]
    assert "buffers" not in request
    assert len(made.request({"n": 2}, folder="f").target["steps"]) == 1
    python = case(target={"python": "script.py:some"}, sweep={"n": [1, 2]})
    steps = python.request([{"n": 1}, {"n": 2}], folder="f").target["steps"]
    assert steps == [{"shape": {"n": 1}, "kwargs": {"n": 1}}, {"shape": {"n": 2}, "kwargs": {"n": 2}}]
    with pytest.raises(UsageError, match="a command runs one shape"):
        case(sweep={"n": [1, 2]}).request([{"n": 1}, {"n": 2}], folder="f")


def test_fixed_parameters_of_the_emulated_device() -> None:
    made = case(target={"command": "x {n} {k}"}, sweep={"n": [1]}, set={"k": 64}, emulator={"k": 2})
    assert made.request({"n": 1}, folder="f", device="cuda:0").target["argv"] == ["x", "1", "64"]
    assert made.request({"n": 1}, folder="f", device="emulator").target["argv"] == ["x", "1", "2"]


def test_the_build_runs_in_the_cases_folder() -> None:
    made = case(build={"argv": ["nvcc", "-o", "{build_dir}/b", "-DK={k}"], "timeout": "3m"}, set={"k": 7})
    assert made.build_command("/out") == (["nvcc", "-o", "/out/b", "-DK=7"], HERE, 180.0)
    assert case().build_command("/out") is None


def test_hashes_follow_includes_and_name_every_file() -> None:
    made = case(target={"kernel": KERNEL}, sweep={"n": [1]}, set={"k": 5})
    assert set(made.hashes()) == {"kernel.cu", "shared.h", "reference.py"}  # x.yaml is not on the disk here
    assert all(len(value) == 64 for value in made.hashes().values())
    scripted = case(target={"command": ["python3", "script.py", "{n}"]}, sweep={"n": [1]})
    assert set(scripted.hashes()) == {"script.py", "reference.py"}  # which it imports


def test_a_changed_source_changes_its_hash(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("case: c\ntarget: {python: run.py:f}\n")
    (tmp_path / "run.py").write_text("def f(): pass\n")
    before = load(tmp_path / "c.yaml").hashes()
    (tmp_path / "run.py").write_text("def f(): return 1\n")
    after = load(tmp_path / "c.yaml").hashes()
    assert before.keys() == after.keys() == {"c.yaml", "run.py"}
    assert before["c.yaml"] == after["c.yaml"]
    assert before["run.py"] != after["run.py"]


def test_what_a_device_lacks() -> None:
    needs = case(requires={"device": "cuda", "arch": ">=90,<100", "memory": "1KiB"}).requires
    assert needs.unmet(device="cuda:GPU-1", capability=90, free_bytes=4096) is None
    assert needs.unmet(device="cuda:GPU-1") is None
    assert needs.unmet(device="emulator") == "the case needs a cuda device, this is emulator"
    assert "compute capability >=90" in str(needs.unmet(device="cuda:0", capability=80))
    assert "compute capability <100" in str(needs.unmet(device="cuda:0", capability=100))
    assert "1024 bytes" in str(needs.unmet(device="cuda:0", capability=90, free_bytes=1000))
    exact = case(requires={"arch": "90"}).requires
    assert "==90" in str(exact.unmet(device="cuda:0", capability=80))


def test_a_case_without_a_file() -> None:
    made = from_command(["q=9,17", "n=256..1024:x2"], ["./bench", "--q={q}", "{n * q}", "{{"], where=["n > 256"])
    assert made.sweep.shapes == ((9, 512), (9, 1024), (17, 512), (17, 1024))
    request = made.request(made.sweep.shape(1), folder="f")
    assert request.target == {"kind": "command", "argv": ["./bench", "--q=9", "9216", "{"]}
    assert request.cwd == str(Path.cwd())
    assert (made.name, made.path, made.title) == ("bench", None, "./bench --q={q} {n * q} {{")
    assert made.record()["axes"] == {"q": [9, 17], "n": [256, 512, 1024]}


def test_a_command_without_parameters_is_taken_as_it_is() -> None:
    made = from_command([], ["awk", "{print $1}", "}"])
    assert made.request({}, folder="f").target["argv"] == ["awk", "{print $1}", "}"]


def test_derived_quantities_without_a_file() -> None:
    made = from_command(["n=1,2"], ["x", "{m}"], derive={"m": "n * 10"}, success="ok", timeout_s=3, env={"A": "{"})
    assert made.sweep.derived == {"m": (10, 20)}
    request = made.request({"n": 2}, folder="f")
    assert (request.target["argv"], request.env, request.limits.timeout_s) == (["x", "20"], {"A": "{"}, 3)


@pytest.mark.parametrize(
    ("params", "argv", "options", "message"),
    [
        (["q=9"], [], {}, "no command: write it after --"),
        (["q=9", "q=8"], ["x"], {}, "-P q is given twice"),
        (["q=9"], ["x", "{qq}"], {}, "the command: unknown name 'qq': did you mean 'q'?\n    {qq}\n     ^"),
        (
            ["q=9"],
            ["x", "{q +}"],
            {},
            "the command: the expression ends where a value was expected\n    {q +}\n        ^",
        ),
        (["q=9"], ["x", "{q"], {}, "the command: a { without its }, write {{ for the character itself"),
        (["q=9"], ["x"], {"where": ["q >"]}, "--where: the expression ends"),
        (["q=9"], ["x"], {"where": ["z > 1"]}, "--where: unknown name 'z'"),
        (["q=9"], ["x"], {"derive": {"q": "1"}}, "--derive q: q is a parameter too"),
        (["q=9"], ["x"], {"derive": {"m": "mm"}}, "--derive m: unknown name 'mm'"),
    ],
)
def test_a_wrong_command_line_says_what_would_be_right(
    params: list[str], argv: list[str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        from_command(params, argv, **options)
    assert caught.value.message.startswith(message)
    assert caught.value.exit_code == 2


def test_a_failure_at_one_shape_names_it_without_a_file_too() -> None:
    made = from_command(["n=0,1"], ["x", "{8 // n}"])
    with pytest.raises(CudadiagError, match="division by zero at n=0"):
        made.request({"n": 0}, folder="f")


@pytest.mark.parametrize("found", all_cases(Path(__file__).parent), ids=lambda found: found.name)
def test_every_bundled_case_loads_and_its_requests_are_json(found: Any) -> None:
    made = load(found.path)
    assert made.name == found.name
    assert made.title
    assert made.title == found.title
    for device in ("cuda:0", "emulator"):
        sweep = made.on_device(device).sweep
        for index in {0, len(sweep) // 2, len(sweep) - 1}:
            request = made.request(sweep.shape(index), folder="f", device=device, build_dir="b", timing=True)
            assert json.loads(json.dumps(to_json(request), allow_nan=False))["target"]["kind"] == made.target.kind
