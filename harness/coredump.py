"""GPU core files of a probe: wait while one is being written, ask for one of a hung kernel, find it afterwards."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_QUIET_S = 2.0  # a core file that did not grow for this long is taken as finished
_LONGEST_WAIT_S = 120.0
_TRIGGER_WAIT_S = 10.0


class CoreWatch:
    """Watches the folder that CUDA_COREDUMP_FILE and CUDA_COREDUMP_PIPE point to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._size = 0
        self._grew_s: float | None = None
        self._triggered_s: float | None = None

    def look(self, at_s: float) -> None:
        """Notice growth; called at every tick."""
        size = sum(_size(path) for path in self._cores())
        if size > self._size:
            self._size, self._grew_s = size, at_s

    def busy(self, at_s: float, limit_s: float) -> bool:
        """Whether a core file is still being written, `at_s` seconds after the start with a wall limit of `limit_s`."""
        self.look(at_s)
        if at_s > limit_s + _LONGEST_WAIT_S:
            return False
        if self._grew_s is not None:
            return at_s - self._grew_s < _QUIET_S
        return self._triggered_s is not None and at_s - self._triggered_s < _TRIGGER_WAIT_S

    @property
    def triggered(self) -> bool:
        return self._triggered_s is not None

    def trigger(self, at_s: float) -> str | None:
        """Ask every CUDA process of the probe for a core of what runs now; what could not be done, None if all was.

        The pipes are opened without blocking: a driver thread that does not read must not hang us too.
        """
        if self._size:
            return None
        pipes = [path for path in self._folder.glob("corepipe_*") if stat.S_ISFIFO(path.stat().st_mode)]
        if not pipes:
            return "no core-dump pipe: the program had not reached CUDA, or its driver has no user-triggered core dumps"
        self._triggered_s = at_s
        problems = [problem for problem in map(_write_byte, pipes) if problem]
        return "; ".join(problems) or None

    def core(self) -> Path | None:
        """The largest core file, None when there is none."""
        cores = [path for path in self._cores() if _size(path)]
        return max(cores, key=_size) if cores else None

    def remove_pipes(self) -> None:
        for path in self._folder.glob("corepipe_*"):
            path.unlink(missing_ok=True)

    def _cores(self) -> list[Path]:
        return list(self._folder.glob("core_*"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _write_byte(path: Path) -> str | None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        reason = "nobody reads it" if error.errno == errno.ENXIO else error.strerror
        return f"core-dump pipe {path.name}: {reason}"
    try:
        os.write(fd, b"1")
    except OSError as error:
        return f"core-dump pipe {path.name}: {error.strerror}"
    finally:
        os.close(fd)
    return None
