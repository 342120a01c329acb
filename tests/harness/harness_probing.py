"""What the harness tests share."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from harness.records import ProbeFacts

Run = Callable[..., ProbeFacts]


def stdout_of(facts: ProbeFacts) -> bytes:
    assert facts.stdout is not None
    return Path(facts.stdout.path).read_bytes()


def stderr_of(facts: ProbeFacts) -> bytes:
    assert facts.stderr is not None
    return Path(facts.stderr.path).read_bytes()


def alive(pid: int) -> bool:
    """A process that runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until_gone(pids: list[int], limit_s: float = 5.0) -> list[int]:
    """The processes that still run after `limit_s`."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until and any(map(alive, pids)):
        time.sleep(0.02)
    return [pid for pid in pids if alive(pid)]
