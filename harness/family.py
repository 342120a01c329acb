"""The processes that belong to a probe, also those that left its process group: found by session and by a mark in their
environment. Linux only, straight from /proc: psutil would read every process of the machine for each probe.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass

MARK = "CUDADIAG_PROBE"
"""Environment variable that names the probe. A probe inside a probe appends to it, so the outer one still finds all."""


@dataclass(frozen=True)
class Member:
    """One process of a probe. `escaped`: it had left the probe's process group."""

    pid: int
    name: str
    escaped: bool


def mark_value(token: str) -> str:
    outer = os.environ.get(MARK)
    return f"{outer}/{token}" if outer else token


def members(leader: int, token: str) -> list[Member]:
    """Living processes of the probe whose first process was `leader`, itself included. Zombies are not counted."""
    found = []
    for pid in _candidates(leader):
        member = _member(pid, leader, token.encode())
        if member:
            found.append(member)
    return found


def _candidates(leader: int) -> Iterable[int]:
    """Pids that may have been given out since the probe began: all above the leader's, unless the numbers wrapped."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    newest = _newest_pid()
    wrapped = newest is None or newest < leader
    return [pid for pid in pids if (wrapped or pid >= leader) and pid != os.getpid()]


def _newest_pid() -> int | None:
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[4])
    except (OSError, ValueError, IndexError):
        return None


def _member(pid: int, leader: int, token: bytes) -> Member | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            name, state, group, session = _parse_stat(file.read())
        if state in ("Z", "X"):
            return None
        if session != leader and group != leader:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if token not in _mark_in(file.read()):
                    return None
    except (OSError, ValueError, IndexError):
        return None
    return Member(pid, name, group != leader)


def _parse_stat(text: bytes) -> tuple[str, str, int, int]:
    before, _, after = text.rpartition(b")")
    fields = after.split()
    return before.split(b"(", 1)[1].decode(errors="replace"), fields[0].decode(), int(fields[2]), int(fields[3])


def _mark_in(environ: bytes) -> bytes:
    prefix = MARK.encode() + b"="
    for entry in environ.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :]
    return b""


def signal_group(leader: int, number: signal.Signals) -> bool:
    """Signal the probe's whole process group; False if it is empty."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def signal_members(found: Iterable[Member], number: signal.Signals) -> None:
    for member in found:
        try:
            os.kill(member.pid, number)
        except (ProcessLookupError, PermissionError):
            continue
