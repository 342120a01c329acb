"""One started child: its pipes drained and time-stamped, its end awaited, its whole family ended when it must be."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from harness import family
from harness.streams import READ_BYTES

Sink = Callable[[bytes, float], None]

_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
_TICK_S = 0.05  # how often cancellation and memory are looked at
_NO_PIDFD_TICK_S = 0.01
_SECOND_LOOK_S = 0.005
_AFTER_KILL_S = 10.0  # a process that holds a GPU can take seconds to go after SIGKILL


class Running:
    """A child in a session of its own. `token` marks it and everything it starts.

    Nothing is reaped before the family is gone: until then the zombie keeps the group's number from being given out
    again.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.pid = -1
        self.started_s = time.monotonic()
        self.exited_s: float | None = None
        self.usage: resource.struct_rusage | None = None
        self.on_tick: Callable[[float], None] = lambda at_s: None
        self._popen: subprocess.Popen[bytes] | None = None
        self._poll = select.poll()
        self._sinks: dict[int, Sink] = {}
        self._child_ends: list[int] = []
        self._pidfd = -1

    def pipe_to(self, sink: Sink) -> int:
        """A pipe whose reader feeds `sink`; returns the end for the child."""
        reader, writer = os.pipe()
        try:
            fcntl.fcntl(writer, _F_SETPIPE_SZ, _PIPE_BYTES)  # a flood needs fewer wake-ups; refused over a user's limit
        except OSError:
            pass
        self.read_from(reader, sink)
        self._child_ends.append(writer)
        return writer

    def read_from(self, reader: int, sink: Sink) -> None:
        """Feed `sink` from a descriptor that is open for reading already, and close it at its end."""
        self._sinks[reader] = sink
        self._poll.register(reader, select.POLLIN)

    def start(
        self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: str | None, stdout: int, stderr: int,
        pass_fds: Sequence[int], memory_bytes: int | None,
    ) -> None:  # fmt: skip
        """Start the program. Raises OSError or ValueError (a null byte in a word) when it cannot be."""
        try:
            self._popen = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, pass_fds=tuple(pass_fds),
                env=dict(environment), cwd=cwd, start_new_session=True,
            )  # fmt: skip
        finally:
            for writer in self._child_ends:
                os.close(writer)
            self._child_ends.clear()
        self.pid = self._popen.pid
        self._limit(resource.RLIMIT_CORE, 0)  # a host core file of gigabytes in the user's folder helps nobody
        if memory_bytes is not None:
            self._limit(resource.RLIMIT_AS, memory_bytes)
        try:
            self._pidfd = os.pidfd_open(self.pid)
            self._poll.register(self._pidfd, select.POLLIN)
        except OSError:  # a kernel or sandbox without pidfd: the tick asks instead
            self._pidfd = -1

    def _limit(self, what: int, value: int) -> None:
        try:
            _, hard = resource.prlimit(self.pid, what)
            allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(self.pid, what, (allowed, hard))
        except (OSError, ValueError):  # already gone
            return

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    @property
    def exited(self) -> bool:
        return self.exited_s is not None

    @property
    def drained(self) -> bool:
        """Every pipe has reached its end: nobody holds the other one."""
        return not self._sinks

    def pump(self, until_s: float, done: Callable[[], bool]) -> bool:
        """Drain and wait until `done()` or `until_s` seconds after the start; whether it was done. `done` is asked
        after every round, so it must be cheap."""
        while not done():
            left_s = until_s - self.elapsed_s
            if left_s <= 0:
                return False
            self._round(min(left_s, _TICK_S if self._pidfd >= 0 else _NO_PIDFD_TICK_S))
        return True

    def _round(self, timeout_s: float) -> None:
        events = self._poll.poll(max(1, timeout_s * 1000))
        now_s = self.elapsed_s
        for fd, _ in events:
            if fd == self._pidfd:
                self._note_exit(now_s)
            else:
                self._read(fd, now_s)
        if not self.exited:
            self.on_tick(now_s)
            if self._pidfd < 0:
                self._note_exit(now_s)

    def _read(self, fd: int, now_s: float) -> None:
        data = os.read(fd, READ_BYTES)
        if data:
            self._sinks[fd](data, now_s)
        else:
            self._forget(fd)

    def _forget(self, fd: int) -> None:
        self._poll.unregister(fd)
        os.close(fd)
        self._sinks.pop(fd, None)

    def _note_exit(self, now_s: float) -> None:
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return
        self.exited_s = now_s
        if self._pidfd >= 0:
            self._forget(self._pidfd)
            self._pidfd = -1

    def living(self) -> list[family.Member]:
        """Living processes of the probe, the child itself included."""
        return family.members(self.pid, self.token)

    def settle(self, limit_s: float) -> bool:
        """After the child's end: wait until its pipes are closed and its family is gone, at most `limit_s`; whether
        so."""
        until_s = self.elapsed_s + limit_s
        while True:
            self.pump(until_s, lambda: self.drained)
            if self.drained and not self.living():
                return True
            if self.elapsed_s >= until_s:
                return False
            self.pump(min(until_s, self.elapsed_s + _TICK_S), lambda: False)

    def end(self, grace_s: float) -> list[family.Member]:
        """SIGTERM, `grace_s`, SIGKILL, to the group and to all that left it; returns what outlived even that."""
        self._signal(signal.SIGTERM)
        if self.pump(self.elapsed_s + grace_s, self._all_gone):
            return []
        until_s = self.elapsed_s + _AFTER_KILL_S
        while self.elapsed_s < until_s:
            self._signal(signal.SIGKILL)
            if self.pump(min(until_s, self.elapsed_s + 0.2), self._all_gone):
                return []
        return self.living()

    def _signal(self, number: signal.Signals) -> None:
        found = self.living()
        family.signal_group(self.pid, number)
        family.signal_members([member for member in found if member.escaped], number)

    def _all_gone(self) -> bool:
        """Looked at twice: a process in the middle of an exec shows no environment for a moment, and so no mark."""
        if not self.exited or self.living():
            return False
        time.sleep(_SECOND_LOOK_S)
        return not self.living()

    def reap(self) -> int | None:
        """The wait status (None: not ended) and, in `usage`, the resources used."""
        pid, status, self.usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        assert self._popen is not None
        self._popen.returncode = os.waitstatus_to_exitcode(status)  # or Popen would wait for a pid that is gone
        return status

    def close(self) -> None:
        """Close what is still open of the pipes."""
        for writer in self._child_ends:
            os.close(writer)
        self._child_ends.clear()
        for fd in [*self._sinks, *([self._pidfd] if self._pidfd >= 0 else [])]:
            self._forget(fd)
        self._pidfd = -1
