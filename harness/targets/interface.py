"""What a target gives the launcher: the command line and environment that run it in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.records import ProbeRequest

WORKER = Path(__file__).parent.parent / "worker.py"


@dataclass(frozen=True)
class TargetLaunch:
    """A target's own command line, before an observer wraps it. `reports`: it writes to the result descriptor."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    reports: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultChannel:
    """Where the worker writes its breadcrumbs: a pipe by number (checked by inode, in case a tool between closed it),
    or else appended to a file. Times count from `started_s` on the system's monotonic clock."""

    fd: int
    inode: int
    file: str
    started_s: float


def worker_launch(request: ProbeRequest, channel: ResultChannel, environment: Mapping[str, str]) -> TargetLaunch:
    """Write the worker's request file into the probe's folder; the command line runs it in the user's interpreter."""
    path = Path(request.folder) / "request.json"
    body: dict[str, Any] = {
        "version": 1,
        "target": dict(request.target),
        "device": request.device,
        "memory_model": request.memory_model,
        "observer": request.observer,
        "leak_check": request.leak_check,
        "memory_bytes": request.limits.memory_bytes,
        "timeout_s": request.limits.timeout_s,
        "result": {
            "fd": channel.fd,
            "inode": channel.inode,
            "file": channel.file,
            "started_s": channel.started_s,
        },
    }
    path.write_text(json.dumps(body, indent=1))
    interpreter = request.interpreter or sys.executable
    return TargetLaunch((interpreter, "-u", str(WORKER), str(path)), environment, reports=True)
