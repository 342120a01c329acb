"""Tools of the toolkit that read files and need no GPU, run for the readers: nvdisasm over machine code, cuda-gdb
over a core."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.sanitizer import ToolMissing

_LIMIT_S = 60.0
_GDB_QUESTIONS = ("info cuda kernels", "info cuda threads", "print $errorpc", "x/2i $errorpc")


def find(name: str) -> str | None:
    """A tool's path: the pip wheels, conda, the toolkit, PATH, in this order; None where it is nowhere."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility

        found = find_nvidia_binary_utility(name)
    except (
        ImportError,
        AttributeError,
        ValueError,
        RuntimeError,
    ):  # an old pathfinder, none, or a tool it does not know
        found = None
    return str(found) if found else shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def disassembly(cubin: bytes) -> str:
    """nvdisasm's listing of machine code with source lines and inlined calls. Raises ToolMissing with what to
    install."""
    tool = find("nvdisasm")
    if tool is None:
        raise ToolMissing("nvdisasm was not found: pip install 'cudadiag[sanitizer]'")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.cubin"
        file.write_bytes(cubin)
        return _answer([tool, "-c", "-gi", str(file)])


def gdb_answer(core: str) -> str:
    """What cuda-gdb says of a GPU core file: exception, kernels, threads, the faulting instruction. Raises
    ToolMissing."""
    tool = find("cuda-gdb")
    if tool is None:
        raise ToolMissing("cuda-gdb was not found: it comes with a CUDA toolkit or conda, there is no wheel of it")
    questions = [word for line in _GDB_QUESTIONS for word in ("-ex", line)]
    return _answer([tool, "-batch", "-ex", f"target cudacore {core}", *questions])


def _answer(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolMissing(f"{command[0]}: {error}") from error
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0 and not text:
        raise ToolMissing(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')[:300]}")
    return text
