"""Peak memory of a probe: host memory of its process tree, device memory by NVML's process list."""

from __future__ import annotations

import resource
from collections.abc import Iterable

from harness import nvml

_FIRST_SAMPLE_S = 0.02
_LAST_GAP_S = 0.5
_KIB = 1024


class MemoryWatch:
    """Samples a process tree at growing intervals (20 ms to half a second, so that short probes cost nothing).

    What happens between two samples is missed, except the largest resident size of single processes, which the kernel
    keeps.
    """

    def __init__(self, leader: int, device_uuid: str | None) -> None:
        self.peak_host_bytes: int | None = None
        self.peak_device_bytes: int | None = None
        self._leader = leader
        self._device_uuid = device_uuid
        self._gap_s = _FIRST_SAMPLE_S
        self._next_s = _FIRST_SAMPLE_S

    def sample_if_due(self, at_s: float) -> None:
        """`at_s`: seconds after the child's start."""
        if at_s < self._next_s:
            return
        self._gap_s = min(self._gap_s * 1.5, _LAST_GAP_S)
        self._next_s = at_s + self._gap_s
        tree = _tree(self._leader)
        self._raise_host(sum(_resident_bytes(pid) for pid in tree))
        self._raise_host(_high_water_bytes(self._leader))
        if self._device_uuid is not None:
            used = nvml.process_bytes(self._device_uuid, tree)
            if used is not None:
                self.peak_device_bytes = max(self.peak_device_bytes or 0, used)

    def add_usage(self, usage: resource.struct_rusage) -> None:
        """Take the kernel's own maximum for the ended child, unless it may be this process's: a child starts out as a
        copy of its parent, and that copy's size is counted too."""
        peak = usage.ru_maxrss * _KIB
        if peak > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB:
            self._raise_host(peak)

    def _raise_host(self, used: int) -> None:
        if used:
            self.peak_host_bytes = max(self.peak_host_bytes or 0, used)


def _tree(leader: int) -> list[int]:
    import psutil

    try:
        return [leader, *(child.pid for child in psutil.Process(leader).children(recursive=True))]
    except psutil.Error:
        return [leader]


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def _high_water_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status") as file:
            return _field_kib(file, "VmHWM:") * _KIB
    except (OSError, ValueError):
        return 0


def _field_kib(lines: Iterable[str], name: str) -> int:
    for line in lines:
        if line.startswith(name):
            return int(line.split()[1])
    return 0
