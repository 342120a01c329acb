"""nvdisasm and cuobjdump around machine code: found like the other tools, run with a limit, what they print given
back."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness import tools

_LIMIT_S = 15.0
_IMAGE = re.compile(r"^(ELF|PTX) file +\d+: .*?\bsm_(\d+[af]?)\.", re.MULTILINE)


@dataclass(frozen=True)
class Listing:
    """What nvdisasm printed: the instructions, and what it complained of (an instruction that is none)."""

    text: str
    complaints: str


def built_for(program: Path) -> tuple[str, ...]:
    """The architectures a program holds code for: `sm_90` for machine code, `compute_90` for PTX, each once. () where
    it holds none, is no program, or there is no cuobjdump."""
    tool = tools.find("cuobjdump")
    if tool is None:
        return ()
    try:
        done = subprocess.run(
            [tool, "--list-elf", "--list-ptx", str(program)], capture_output=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    images = _IMAGE.findall(done.stdout.decode(errors="replace"))
    return tuple(dict.fromkeys(f"{'sm' if kind == 'ELF' else 'compute'}_{name}" for kind, name in images))


def disassemble(code: bytes) -> Listing | None:
    """The listing of a cubin; None where there is no nvdisasm, or it does not end within 15 s."""
    tool = tools.find("nvdisasm")
    if tool is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code.cubin"
        path.write_bytes(code)
        command = [tool, "--print-code", "--print-line-info-inline", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
    return Listing(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
