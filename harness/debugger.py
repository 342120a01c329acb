"""cuda-gdb over a GPU core file: found like the other tools, run with a limit, what it prints given back."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness import tools

_LIMIT_S = 20.0
_QUESTIONS = ("info cuda kernels", "print $errorpc")


def ask_core(core: Path) -> str | None:
    """What cuda-gdb says of a core file; None where there is no cuda-gdb, or it does not end within 20 s. It may crash
    on a file (then the text ends early)."""
    tool = tools.find("cuda-gdb")
    if tool is None:
        return None
    questions = [word for line in _QUESTIONS for word in ("-ex", line)]
    command = [tool, "-nx", "-batch", "-ex", f"target cudacore {core}", *questions]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace")
