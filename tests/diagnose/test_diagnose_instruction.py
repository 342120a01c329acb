"""The instruction at the pc of a core file, by nvdisasm from the wheel: no GPU is needed to read one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from diagnose_recorded import files

from cudadiag.diagnose.experiments import Experiment, Setting, is_ptx_for
from cudadiag.evidence import Reading, from_json, read, to_json
from cudadiag.session.disassembling import NO_INSTRUCTION, with_instructions
from harness import disassembly, tools

pytestmark = pytest.mark.skipif(tools.find("nvdisasm") is None, reason="nvdisasm is not here")


def seen(fault: str, folder: Path) -> Reading:
    core = folder / "core_1.nvcudmp"
    core.write_bytes(files()[f"runs/{fault}/coredump/core.gpu"])
    return with_instructions(read({"core": core.read_bytes()}), str(core))


@pytest.mark.parametrize(
    ("fault", "beginning"),
    [
        ("load_far", "LDG.E"),
        ("misaligned", "LDG.E.128"),
        ("bad_syncwarp", "WARPSYNC"),  # 715 at a sound instruction: a barrier with a wrong mask
        ("image_ff", NO_INSTRUCTION),
        ("image_00", NO_INSTRUCTION),
    ],
)
def test_the_instruction_at_an_exception_is_read_from_the_core_file(fault: str, beginning: str, tmp_path: Path) -> None:
    reading = seen(fault, tmp_path)
    assert reading.core is not None
    instruction = reading.core.exceptions[0].instruction
    assert instruction is not None
    assert instruction.startswith(beginning)
    assert from_json(to_json(reading)) == reading


def test_a_hanging_kernel_shows_where_it_stands(tmp_path: Path) -> None:
    core = seen("hang", tmp_path).core
    assert core is not None
    assert not core.exceptions
    assert core.running[0].instruction
    assert core.running[0].line == 32


def test_a_core_file_that_is_gone_or_broken_changes_nothing(tmp_path: Path) -> None:
    reading = read({"core": files()["runs/load_far/coredump/core.gpu"]})
    assert with_instructions(reading, str(tmp_path / "gone")) == reading
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    assert with_instructions(reading, str(broken)) == reading
    assert with_instructions(Reading(), None) == Reading()


@pytest.mark.parametrize(
    ("name", "capability", "fits"),
    [
        ("compute_80", 90, True),
        ("compute_120", 90, False),
        ("compute_90a", 90, True),
        ("compute_90a", 100, False),
        ("compute_100f", 103, True),
        ("compute_100f", 120, False),
        ("sm_90", 90, False),
    ],
)
def test_ptx_fits_newer_devices_its_family_or_one_architecture(name: str, capability: int, fits: bool) -> None:
    assert is_ptx_for(name, capability) is fits
    problem = Setting("cuda", "command", capability=capability, built_for=(name,)).problem(Experiment.BY_DRIVER)
    assert (problem is None) is fits


def test_a_program_without_device_code_is_built_for_nothing(tmp_path: Path) -> None:
    assert disassembly.built_for(Path("/bin/sh")) == ()
    assert disassembly.built_for(tmp_path / "gone") == ()


@pytest.mark.skipif(shutil.which("nvcc", path="/usr/local/cuda/bin") is None, reason="nvcc is not here")
def test_a_program_says_what_it_was_built_for(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.write_text("__global__ void k(int* p) { *p = 1; }\nint main() { k<<<1, 1>>>(nullptr); }\n")
    images = ["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=compute_90"]
    nvcc = "/usr/local/cuda/bin/nvcc"
    subprocess.run([nvcc, *images, "-o", str(tmp_path / "a"), str(source)], check=True, timeout=200)
    assert set(disassembly.built_for(tmp_path / "a")) == {"sm_80", "compute_90"}


def test_every_running_warp_has_the_instruction_at_its_pc(tmp_path: Path) -> None:
    for fault in ("bad_pc_low", "bad_pc_data"):
        core = seen(fault, tmp_path).core
        assert core is not None
        assert core.running
        assert all(warp.instruction for warp in core.running)
