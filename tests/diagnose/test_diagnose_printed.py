"""What only a program's own text or exit status tells: suggested, in words that say so. Real processes, no device."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from test_diagnose_cli import document


def part(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(part for part in found["explanations"] if part["name"] == name)


def printing(folder: Path, script: str) -> dict[str, Any]:
    return document(folder, "diagnose", "--device", "none", "--", "sh", "-c", script, expect=1)


@pytest.mark.parametrize(
    ("text", "number", "name"),
    [
        ("CUDA out of memory", 2, "memory-exhausted"),
        ("no kernel image is available for execution on the device", 209, "miscompile"),
        ("device-side assert triggered", 710, "own-check"),
        ("an illegal instruction was encountered", 715, "miscompile"),
        ("CUDA error: invalid program counter", 718, "wild-jump"),
        ("CUDA error: hardware stack error", 714, "stack-overflow"),
        ("CUDA error: too many resources requested for launch", 701, "launch-limit"),
        ("CUDA error: uncorrectable ECC error encountered", 214, "hardware-or-chance"),
        ("CUDA error: misaligned address", 716, "misalignment"),
        ("CUDA error: an illegal memory access was encountered", 700, "out-of-bounds"),
        ("k.cu:7: void f(): block: [0,0,0], thread: [3,0,0] Assertion `n > 0` failed.", 710, "own-check"),
    ],
)
def test_a_text_alone_shows_nothing(text: str, number: int, name: str, tmp_path: Path) -> None:
    found = printing(tmp_path, f"echo {shlex.quote(text)} >&2; exit 1")
    told = part(found, name)
    if told["status"] == "supported":
        assert told["strength"] == "suggested"
        assert "the program printed" in told["why"]
    assert not [p["name"] for p in found["explanations"] if p["status"] == "supported" and p["strength"] == "shown"]
    if name not in ("misalignment", "out-of-bounds"):
        assert told["status"] == "supported"
        assert found["cause"] == name
    words = " ".join(p["why"] for p in found["explanations"])
    assert "the device reported" not in words
    assert "a CUDA call returned" not in words
    assert number == 710 or f"({number})" in words
    assert part(found, "host-program")["status"] == "untested"  # it may have died by itself: nobody else says


def test_a_name_that_was_printed_is_told_by_its_name(tmp_path: Path) -> None:
    found = printing(tmp_path, "echo 'CUDA error 2: cudaErrorMemoryAllocation' >&2; exit 1")
    assert "the program printed cudaErrorMemoryAllocation (2)" in part(found, "memory-exhausted")["why"]
    found = printing(tmp_path, "echo 'CUDA out of memory' >&2; exit 1")
    assert 'the program printed "out of memory" (2)' in part(found, "memory-exhausted")["why"]


KERNEL_FAULTS = (
    "integer-overflow", "out-of-bounds", "miscompile", "barrier-misuse", "race", "uninitialised", "buffer-mismatch",
)  # fmt: skip


@pytest.mark.parametrize("text", ["CUDA out of memory", "CUDA error: too many resources requested for launch"])
def test_a_refused_call_of_a_program_says_nothing_of_the_kernels_before_it(text: str, tmp_path: Path) -> None:
    found = printing(tmp_path, f"echo 'step 500 done'; echo '{text}' >&2; exit 1")
    for name in KERNEL_FAULTS:
        assert part(found, name)["status"] == "untested", name
        assert "was refused; what ran before is not known" in part(found, name)["why"]


JOB = """
def work(gib):
    raise RuntimeError(
        f"CUDA out of memory. Tried to allocate {gib}.00 GiB. GPU 0 has a total capacity of 139.80 GiB "
    )
"""


@pytest.mark.parametrize(("gib", "absurd"), [(4096, True), (100, False)])
def test_a_size_larger_than_the_device_points_to_how_it_was_computed(gib: int, absurd: bool, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "job.yaml").write_text("case: job\ntarget:\n  python: job.py:work\nsweep:\n  gib: [1, 100, 4096]\n")
    found = document(tmp_path, "diagnose", "job.yaml", "--device", "none", "--shape", f"gib={gib}", expect=1)
    why = part(found, "memory-exhausted")["why"]
    assert f" for {gib}.0 GiB" in why
    larger = "4096.0 GiB is more than the device has (139.8 GiB)"
    for name in ("memory-exhausted", "integer-overflow", "uninitialised"):
        assert (larger in part(found, name)["why"]) == absurd, name
    assert found["next_step"].startswith("look at how that size is computed") == absurd


# -- an exit status ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [("sh", "-c", "exit 139"), (sys.executable, "-c", "import os; os._exit(139)")],
    ids=["shell", "python"],
)
def test_a_status_above_128_is_no_signal_that_anybody_saw(command: tuple[str, ...], tmp_path: Path) -> None:
    found = document(tmp_path, "diagnose", "--device", "none", "--", *command, expect=1)
    told = part(found, "host-program")
    assert (told["status"], told["strength"]) == ("supported", "suggested")
    assert told["why"] == "exit status 139 (as after SIGSEGV)"
    assert found["sureness"].startswith("suggested")


def test_a_signal_that_ended_the_program_is_shown(tmp_path: Path) -> None:
    told = part(printing(tmp_path, "kill -SEGV $$"), "host-program")
    assert (told["status"], told["strength"]) == ("supported", "shown")
    assert told["why"] == "died of SIGSEGV"


def test_an_assert_whose_line_is_not_known_sends_to_its_text(tmp_path: Path) -> None:
    found = printing(tmp_path, "echo 'CUDA error: device-side assert triggered' >&2; exit 1")
    assert found["next_step"].startswith("find the assert's own text")
    text = "k.cu:7: void f(): block: [0,0,0], thread: [3,0,0] Assertion `n > 0` failed."
    found = printing(tmp_path, f"echo {shlex.quote(text)} >&2; exit 1")
    assert found["next_step"].startswith("the condition at that line")
