"""nvdisasm around a piece of machine code: found like the other tools, run with a limit, its text given back."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_LIMIT_S = 15.0


@dataclass(frozen=True)
class Listing:
    """What nvdisasm printed: the instructions, and what it complained of (an instruction that is none)."""

    text: str
    complaints: str


def find() -> str | None:
    """The nvdisasm of the pip wheel, of conda, of the toolkit, or on PATH; None where there is none."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility

        found = find_nvidia_binary_utility("nvdisasm")
    except (ImportError, AttributeError, ValueError, RuntimeError):  # an old pathfinder, or none
        found = None
    return str(found) if found else shutil.which("nvdisasm") or shutil.which("nvdisasm", path="/usr/local/cuda/bin")


def disassemble(code: bytes) -> Listing | None:
    """The listing of a cubin; None where there is no nvdisasm, or it does not end within 15 s."""
    tool = find()
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
