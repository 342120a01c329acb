"""nvdisasm over machine code taken out of a recorded core file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cudadiag.evidence.core.disassembly import cubin_at, instruction_at
from harness import debugger, tools
from harness.disassembly import built_for, disassemble

sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))
import recordings

with_nvdisasm = pytest.mark.skipif(tools.find("nvdisasm") is None, reason="nvdisasm is not here (nvidia-cuda-nvdisasm)")


@with_nvdisasm
def test_the_instruction_at_the_pc_of_a_core_file_is_named_with_its_line() -> None:
    core = recordings.files()["runs/shared_oob_near/flagcore/core.gpu"]
    image = cubin_at(core, 0x7F79AB7A0BF0)
    assert image is not None
    listing = disassemble(image)
    assert listing is not None
    found = instruction_at(listing.text, 0x7F79AB7A0BF0)
    assert found is not None
    assert (found.text, found.function, found.frames[0].line) == ("STS [R4], R11", "_Z10shared_oobPfi", 21)


@with_nvdisasm
def test_of_what_is_no_machine_code_the_tools_complaint_is_given_back() -> None:
    listing = disassemble(b"no code")
    assert listing is not None
    assert not listing.text
    assert "nvdisasm" in listing.complaints


def test_without_the_tools_nothing_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find", lambda name: None)
    assert disassemble(b"") is None
    assert built_for(Path("/bin/sh")) == ()


def test_cuda_gdb_is_asked_about_a_core_file_and_none_means_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gdb = tmp_path / "cuda-gdb"
    gdb.write_text('#!/bin/sh\necho "asked: $*"\nexit 1\n')
    gdb.chmod(0o755)
    monkeypatch.setattr(tools, "find", lambda name: str(gdb) if name == "cuda-gdb" else None)
    answer = debugger.ask_core(tmp_path / "core")
    assert answer is not None
    assert f"target cudacore {tmp_path / 'core'}" in answer
    gdb.unlink()
    assert debugger.ask_core(tmp_path / "core") is None
    monkeypatch.setattr(tools, "find", lambda name: None)
    assert debugger.ask_core(tmp_path / "core") is None
