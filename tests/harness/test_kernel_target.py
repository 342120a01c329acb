"""The `kernel` target in a real worker, on the emulated device: what it runs, what it compares, what it reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness_kernels import Bench, buffer
from harness_probing import stderr_of

from harness.records import ProbeFacts

pytest.importorskip("llvmlite", reason="the emulated device needs llvmlite")


@pytest.fixture
def bench(tmp_path: Path, folder: Callable[[], Path]) -> Bench:
    place = tmp_path / "case"
    place.mkdir()
    return Bench(place, folder)


def output(facts: ProbeFacts, name: str = "out") -> dict[str, Any]:
    assert "comparison" in facts.result, (facts.result, stderr_of(facts))
    compared: dict[str, Any] = facts.result["comparison"]["outputs"][name]
    return compared


def steps(facts: ProbeFacts) -> list[str]:
    return [crumb.step for crumb in facts.breadcrumbs]


def test_a_right_kernel_is_finished_and_equal(bench: Bench) -> None:
    facts = bench.run(bench.one(timing={"launches": 5}))
    assert facts.exit_code == 0, stderr_of(facts)
    assert steps(facts) == [
        "import", "context", "compile", "allocate", "launch", "synchronise", "check",
        "launch", "synchronise", "finished",
    ]  # fmt: skip
    compared = output(facts)
    assert (compared["elements"], compared["differing"], compared["first"]) == (200, 0, None)
    assert compared["poison_left"] == 0
    assert facts.result["comparison"]["changed_inputs"] == []
    assert len(facts.result["launch_us"]) == 5
    assert facts.result["us_per_call"] == sorted(facts.result["launch_us"])[2] > 0
    assert [(entry["name"], entry["size"]) for entry in facts.result["buffers"]] == [("inp", 800), ("out", 800)]
    assert facts.result["kernels"][0]["entry"] == "scale"
    assert facts.device_facts["compute_capability"] == [8, 0]
    assert facts.device_records == ()
    assert json.loads(json.dumps(facts.result, allow_nan=False)) == facts.result


def test_inputs_are_described_before_the_launch(bench: Bench) -> None:
    facts = bench.run(bench.one("past_the_end"))
    by_step = {crumb.step: crumb.detail for crumb in facts.breadcrumbs}
    assert facts.last_step == "launch"
    assert by_step["launch"]["args"][2] == {"scalar": 200, "dtype": "int32", "name": "n"}
    assert by_step["launch"]["grid"] == [4, 1, 1]
    described = by_step["allocate"]["buffers"][0]
    assert (described["name"], described["shape"], described["fill"]) == ("inp", [200], "normal")


def test_a_wrong_result_is_described_not_judged(bench: Bench) -> None:
    facts = bench.run(bench.one("nearly"))
    compared = output(facts)
    assert facts.exit_code == 0
    assert facts.result["finished"] is True
    assert (compared["differing"], compared["poison_left"], compared["first"]["index"]) == (4, 3, [7])
    assert compared["first"]["got"] == pytest.approx(compared["first"]["expected"] + 1, abs=1e-5)
    assert compared["nonfinite"] == 3, "the poison of a float is a NaN"
    assert compared["max_abs"] == pytest.approx(1.0, abs=1e-5)


def test_a_fault_is_an_error_with_cudas_name_and_the_named_buffer(bench: Bench) -> None:
    facts = bench.run(bench.one("past_the_end"))
    error = facts.result["error"]
    assert (error["type"], error["cuda_name"], error["number"]) == ("CudaError", "CUDA_ERROR_ILLEGAL_ADDRESS", 700)
    assert (error["step"], facts.exit_code) == ("launch", 1)
    assert stderr_of(facts).startswith(b"CUDA error 700 (CUDA_ERROR_ILLEGAL_ADDRESS) from cuLaunchKernel: ")
    (record,) = facts.device_records
    assert (record["kind"], record["allocation"]["name"]) == ("out-of-bounds", "out")
    assert facts.result["buffers"][1]["address"] == record["allocation"]["address"]
    assert "finished" not in facts.result


def test_a_fault_is_noticed_at_the_synchronise_when_launches_do_not_block(bench: Bench) -> None:
    facts = bench.run(bench.one("past_the_end"), observer="plain")
    assert (facts.result["error"]["step"], facts.last_step) == ("synchronise", "synchronise")


def test_an_input_that_the_kernel_changed_is_named(bench: Bench) -> None:
    facts = bench.run(bench.one("spoils_input"))
    assert output(facts)["differing"] == 0
    assert facts.result["comparison"]["changed_inputs"] == ["inp"]


def test_without_check_nothing_is_compared(bench: Bench) -> None:
    facts = bench.run(bench.one("nearly", check=False))
    assert facts.result["finished"] is True
    assert "comparison" not in facts.result
    assert "check" not in steps(facts)


def test_outputs_without_a_reference_are_unchecked_and_their_poison_counted(bench: Bench) -> None:
    facts = bench.run(bench.one("nearly", reference=None))
    assert facts.result["comparison"]["outputs"] == {}
    assert facts.result["comparison"]["unchecked"] == {"out": {"elements": 200, "poison_left": 3}}


def test_under_initcheck_outputs_are_not_written_before_the_run(bench: Bench) -> None:
    facts = bench.run(bench.one("scale"), observer="initcheck")
    assert output(facts)["differing"] == 0
    assert "poison_left" not in output(facts)


def test_kernels_run_in_order_over_shared_buffers(bench: Bench) -> None:
    n = {"scalar": 100, "dtype": "int32"}
    target = {
        "kind": "kernel",
        "params": {"extra": 11},
        "buffers": [buffer("data", 100, "inout", "int32", fill={"kind": "arange", "start": 5, "step": 2})],
        "kernels": [
            bench.kernel("add_one", ["data", n]),
            bench.kernel("add_one", ["data", n], define={"EXTRA": 10, "SHARED_FLOATS": 1}),
        ],
        "reference": bench.user("plus"),
        "timing": {"launches": 3},
    }
    facts = bench.run(target)
    assert output(facts, "data")["differing"] == 0
    launches = [crumb.detail.get("kernel") for crumb in facts.breadcrumbs if crumb.step == "launch"]
    assert launches == [0, 1, None]


def test_more_than_48_kb_of_dynamic_shared_memory_is_opted_in(bench: Bench) -> None:
    floats = 20_000
    target = bench.one("scale", 64, "reverse")
    target["kernels"] = [
        bench.kernel(
            "reverse_big",
            ["out", "inp", {"scalar": 64, "dtype": "int32"}],
            grid=[1, 1, 1],
            shared=floats * 4,
            define={"SHARED_FLOATS": floats, "EXTRA": 0},
        )
    ]
    facts = bench.run(target)
    assert output(facts)["differing"] == 0


def test_a_launch_over_a_limit_is_an_error_at_the_launch(bench: Bench) -> None:
    target = bench.one()
    target["kernels"][0]["block"] = [2048, 1, 1]
    error = bench.run(target).result["error"]
    assert (error["step"], error["number"], error["call"]) == ("launch", 1, "cuLaunchKernel")


def test_every_scalar_type_arrives(bench: Bench) -> None:
    values = {
        "int8": -5, "uint8": 250, "int16": -300, "uint16": 60000, "int32": -70000, "uint32": 4_000_000_000,
        "int64": -(1 << 40), "uint64": 1 << 50, "float32": 0.5, "float64": 0.1, "bool": True,
    }  # fmt: skip
    (bench.place / "want.py").write_text(f"def want():\n    return {[float(value) for value in values.values()]}\n")
    target = {
        "kind": "kernel",
        "buffers": [buffer("out", 11, "out", "float64")],
        "kernels": [
            bench.kernel(
                "scalars",
                ["out", *({"scalar": value, "dtype": dtype} for dtype, value in values.items())],
                grid=[1, 1, 1],
                block=[1, 1, 1],
            )
        ],
        "reference": {"file": str(bench.place / "want.py"), "function": "want"},
    }
    assert output(bench.run(target))["differing"] == 0


WIDTHS = {"float16": 2, "bfloat16": 2, "float64": 8, "int8": 1, "int16": 2, "int64": 8, "uint32": 4, "bool": 1}


def test_every_element_type_travels_unchanged(bench: Bench) -> None:
    """Through kernels that copy bits, compared with the inputs as the reference sees them."""
    bodies = []
    for dtype, width in WIDTHS.items():
        high = 2 if dtype == "bool" else 99
        fill = {"kind": "normal"} if "float" in dtype else {"kind": "randint", "low": 0, "high": high}
        bodies.append(
            {
                "shape": {"dtype": dtype},
                "buffers": [buffer("inp", 150, "in", dtype, fill=fill), buffer("out", 150, "out", dtype)],
                "kernels": [bench.kernel(f"copy{width}", ["out", "inp", {"scalar": 149, "dtype": "int32"}])],
                "reference": bench.user("same"),
                "tolerance": {"rel": 0, "abs": 0},
            }
        )
    facts = bench.run({"kind": "kernel", "steps": bodies})
    assert facts.result.get("finished") is True, stderr_of(facts)
    for dtype, step in zip(WIDTHS, facts.result["steps"], strict=True):
        compared = step["comparison"]["outputs"]["out"]
        assert (dtype, compared["differing"], compared["poison_left"]) == (dtype, 1, 1), "the last is not copied"
        assert compared["first"]["index"] == [149]


FILLS: list[tuple[Any, Any]] = [
    ("zeros", [0, 0, 0, 0]),
    ("ones", [1, 1, 1, 1]),
    ({"kind": "value", "value": -7}, [-7] * 4),
    ({"kind": "arange", "start": 10, "step": -3}, [10, 7, 4, 1]),
    ({"kind": "function", "function": "squares"}, [2, 3, 6, 11]),
    ({"kind": "file", "name": "rows"}, [4, 3, 2, 1]),
]


def test_fills(bench: Bench) -> None:
    np.savez(bench.place / "data.npz", rows=np.array([4, 3, 2, 1]))
    files = {"function": bench.reference, "file": bench.place / "data.npz"}
    (bench.place / "want.py").write_text("def want(values):\n    return values\n")
    bodies = [
        {
            "shape": {"fill": str(fill)},
            "params": {"power": 2, "values": expected},
            "buffers": [
                buffer("inp", 4, fill=placed(fill, files), dtype="int32", seed=2),
                buffer("out", 4, "out", "int32"),
            ],
            "kernels": [bench.kernel("copy4", ["out", "inp", {"scalar": 4, "dtype": "int32"}])],
            "reference": {"file": str(bench.place / "want.py"), "function": "want"},
        }
        for fill, expected in FILLS
    ]
    facts = bench.run({"kind": "kernel", "steps": bodies})
    assert facts.result.get("finished") is True, stderr_of(facts)
    differing = [step["comparison"]["outputs"]["out"]["differing"] for step in facts.result["steps"]]
    assert differing == [0] * len(FILLS)


def placed(fill: Any, files: dict[str, Path]) -> Any:
    """The fill with the path of the file it needs."""
    return {**fill, "file": str(files[fill["kind"]])} if isinstance(fill, dict) and fill["kind"] in files else fill


def test_a_reference_may_answer_by_name(bench: Bench) -> None:
    assert output(bench.run(bench.one(reference="scale_by_name")))["differing"] == 0


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("misfit", "the reference gives out shape (199,), the buffer has (200,)"),
        ("stranger", "the reference names nothing; outputs are out"),
        ("greedy", "greedy wants missing_name; offered are by, inp, n"),
        ("everything", "by,inp,n"),
        ("absent", "module 'reference' has no attribute 'absent'"),
    ],
)
def test_a_reference_that_does_not_fit_says_how(bench: Bench, reference: str, said: str) -> None:
    facts = bench.run(bench.one(reference=reference))
    assert (facts.result["error"]["step"], facts.exit_code) == ("check", 1)
    assert said in facts.result["error"]["text"]


def test_a_numpy_beside_the_reference_is_not_taken_for_the_library(bench: Bench) -> None:
    for name in ("numpy.py", "harness.py", "json.py"):
        (bench.place / name).write_text("raise RuntimeError('the wrong module')\n")
    facts = bench.run(bench.one(), cwd=str(bench.place))
    assert output(facts)["differing"] == 0, stderr_of(facts)


def test_a_compilers_refusal_is_an_error_with_its_log(bench: Bench) -> None:
    bench.source.write_text('extern "C" __global__ void scale(float* out) { out[0] = undeclared; }\n')
    facts = bench.run(bench.one())
    error = facts.result["error"]
    assert (error["type"], error["step"]) == ("CompileError", "compile")
    assert 'identifier "undeclared" is undefined' in error["log"]
    assert b"undeclared" in stderr_of(facts)


def test_a_missing_entry_is_an_error_at_compile(bench: Bench) -> None:
    error = bench.run(bench.one("no_such_kernel")).result["error"]
    assert (error["step"], error["cuda_name"]) == ("compile", "CUDA_ERROR_NOT_FOUND")


def test_a_plain_functions_name_finds_the_mangled_kernel(bench: Bench) -> None:
    assert output(bench.run(bench.one("mangled")))["differing"] == 0


def test_a_planted_instruction_faults_where_the_marker_is(bench: Bench) -> None:
    plant = {"kind": "illegal-instruction", "entry": "past_the_end", "marker": "// STORE"}
    facts = bench.run(bench.one("past_the_end", plant=plant))
    assert facts.result["error"]["number"] == 715
    line = next(i for i, text in enumerate(bench.source.read_text().splitlines(), 1) if "// STORE" in text)
    assert facts.device_records[0]["line"] == line
    facts = bench.run(bench.one("scale", plant=plant))
    assert output(facts)["differing"] == 0, "the other kernel of the source is as it was"


def test_a_marker_must_be_on_one_line(bench: Bench) -> None:
    plant = {"kind": "illegal-instruction", "entry": "scale", "marker": "blockIdx"}
    error = bench.run(bench.one("scale", plant=plant)).result["error"]
    assert "is on" in error["text"]
    assert error["step"] == "compile"


def sequence(bench: Bench, sizes: list[int], **changes: Any) -> dict[str, Any]:
    bodies = [{**bench.one("scale", n, **changes), "shape": {"n": n}} for n in sizes]
    return {"kind": "kernel", "steps": bodies}


def test_a_sequence_runs_in_one_process_with_crumbs_for_each_shape(bench: Bench) -> None:
    facts = bench.run(sequence(bench, [30, 200, 60]))
    assert facts.result["finished"] is True, stderr_of(facts)
    told = [(crumb.detail["step"], crumb.detail["shape"]) for crumb in facts.breadcrumbs if crumb.step == "launch"]
    assert told == [(0, {"n": 30}), (1, {"n": 200}), (2, {"n": 60})]
    compared = [step["comparison"]["outputs"]["out"]["elements"] for step in facts.result["steps"]]
    assert compared == [30, 200, 60]
    assert facts.result["comparison"]["outputs"]["out"]["elements"] == 60
    free = [step["memory"]["free_before"] for step in facts.result["steps"]]
    assert len(set(free)) == 1, "everything was freed between the shapes"


def test_a_sequence_that_faults_keeps_what_came_before(bench: Bench) -> None:
    target = sequence(bench, [30, 60, 90])
    target["steps"][1]["kernels"][0]["entry"] = "past_the_end"
    facts = bench.run(target)
    assert [step.get("synchronised") for step in facts.result["steps"]] == [True, None]
    assert facts.result["error"]["number"] == 700
    assert facts.breadcrumbs[-1].detail["shape"] == {"n": 60}


def test_buffers_that_are_never_freed_use_up_the_device(bench: Bench) -> None:
    target = sequence(bench, [30, 30, 30, 30])
    for body in target["steps"]:
        body["buffers"].append(buffer("hoard", 5 << 30, "scratch", "uint8", free=False))
    facts = bench.run(target)
    error = facts.result["error"]
    assert (error["cuda_name"], error["number"], error["step"]) == ("CUDA_ERROR_OUT_OF_MEMORY", 2, "allocate")
    assert facts.breadcrumbs[-1].detail["step"] == 3


def test_a_zero_size_buffer_is_address_zero(bench: Bench) -> None:
    target = bench.one("scale")
    target["buffers"].append(buffer("nothing", 0, "out"))
    facts = bench.run(target | {"reference": bench.user("scale_by_name")})
    assert facts.result["buffers"][2]["address"] == facts.result["buffers"][2]["size"] == 0
    assert facts.result["finished"] is True, stderr_of(facts)


def test_a_hang_is_ended_by_the_emulator_with_a_record(bench: Bench) -> None:
    facts = bench.run(bench.one("spin"), timeout_s=6.0)
    assert not facts.timed_out
    assert facts.result["error"]["number"] == 702
    assert facts.device_records[0]["kernel"] == "spin"


def test_a_kernel_without_a_device_is_not_supported(bench: Bench) -> None:
    error = bench.run(bench.one(), device="none").result["error"]
    assert (error["type"], error["step"]) == ("NotSupported", "context")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dtype": "float8"}, "unknown dtype 'float8'"),
        ({"fill": {"kind": "sparkles"}}, "unknown fill 'sparkles'"),
    ],
)
def test_what_a_buffer_cannot_be_is_said(bench: Bench, change: dict[str, Any], said: str) -> None:
    target = bench.one()
    target["buffers"][0].update(change)
    assert said in bench.run(target).result["error"]["text"]
