"""The real command line in a child process, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

COMMAND = [sys.executable, "-m", "cudadiag"]


def environment(**more: str) -> dict[str, str]:
    """Ours without what would change the output."""
    drop = ("NO_COLOR", "FORCE_COLOR", "CUDADIAG_STORE", "CUDA_VISIBLE_DEVICES", "COLUMNS")
    return {**{k: v for k, v in os.environ.items() if k not in drop}, **more}


@dataclass(frozen=True)
class Done:
    """How one call of cudadiag ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        data = json.loads(self.out)
        assert isinstance(data, dict)
        return data


Cli = Callable[..., Done]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """`cli("run", "--", "true")` in a temporary folder; `expect` is the exit code it must end with."""

    def call(*words: str, expect: int | None = None, cwd: Path | None = None, timeout: float = 60, **more: str) -> Done:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=cwd or tmp_path,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        result = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback (most recent call last)" not in result.err or expect == 70, result.err
        if expect is not None:
            assert result.code == expect, f"exit {result.code}\n{result.out}\n{result.err}"
        return result

    return call


def living(words: str) -> list[psutil.Process]:
    """Processes whose command line holds `words`."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        if words in line and process.info["status"] != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
            found.append(process)
    return found
