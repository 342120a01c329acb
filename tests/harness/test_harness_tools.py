"""nvdisasm over machine code taken out of a recorded core file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cudadiag.evidence.core.disassembly import cubin_at, instruction_at
from harness import tools
from harness.sanitizer import ToolMissing

sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))
import recordings


def test_the_instruction_at_the_pc_of_a_core_file_is_named_with_its_line() -> None:
    if tools.find("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed (nvidia-cuda-nvdisasm)")
    core = recordings.files()["runs/shared_oob_near/flagcore/core.gpu"]
    image = cubin_at(core, 0x7F79AB7A0BF0)
    assert image is not None
    found = instruction_at(tools.disassembly(image), 0x7F79AB7A0BF0)
    assert found is not None
    assert (found.text, found.function, found.frames[0].line) == ("STS [R4], R11", "_Z10shared_oobPfi", 21)


def test_what_is_no_machine_code_is_refused_with_the_tools_words() -> None:
    if tools.find("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed (nvidia-cuda-nvdisasm)")
    with pytest.raises(ToolMissing, match="nvdisasm"):
        tools.disassembly(b"no code")


def test_a_missing_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find", lambda name: None)
    with pytest.raises(ToolMissing, match="pip install"):
        tools.disassembly(b"")
    with pytest.raises(ToolMissing, match="conda"):
        tools.gdb_answer("core")
