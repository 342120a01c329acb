"""One child process as the parent sees it: started, given orders, listened to, its end told apart, replaced."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import family, sanitizer
from harness.guardian import Guardian
from harness.isolation.child.wire import FROM_CHILD, TO_CHILD, Lines, Message, encode
from harness.running import Running

DUMP_SIGNAL = int(signal.SIGRTMAX) - 2
_MAIN = Path(__file__).parent / "child" / "main.py"
_DUMP_LIMIT_S = 1.0
_DRAIN_S = 0.05
_KILL_GRACE_S = 0.5
_MACHINERY = re.compile(rb'\s*File ".*/(?:_pytest|pluggy|harness/isolation/child)/')  # below every test's own frames
_FILES = (("stdout", "stdout"), ("stderr", "stderr"), ("driver_log", "driver.log"))
_TEXT_BYTES = 1 << 20  # kept of each stream of a test that ended its process


class Died(Exception):
    """The child is gone: exactly one of `exit_code` and `signal` is set."""

    def __init__(self, exit_code: int | None, number: int | None) -> None:
        super().__init__(f"signal {number}" if number is not None else f"exit status {exit_code}")
        self.exit_code = exit_code
        self.signal = number


class Hung(Exception):
    """The child said nothing for as long as it may."""


@dataclass(frozen=True)
class Start:
    """What a child is told before it runs, all of it JSON: see `child/main.py`.

    `args` are pytest's, to be read in `folder`; `only` is one node id to be collected in place of them.
    """

    args: list[str]
    workerinput: Mapping[str, Any]
    health: str | None
    canaries: bool
    sanitize: str | None
    folder: str
    only: str | None = None
    bad_collectors: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> str:
        values = {**self.__dict__, "sys_path": sys.path, "argv": sys.argv, "dump_signal": DUMP_SIGNAL}
        values["outputs"] = [file for _, file in _FILES]
        return json.dumps(values)


class Child:
    """A child pytest. `tool`: run it under this tool of compute-sanitizer (raises sanitizer.ToolMissing)."""

    def __init__(self, start: Start, guardian: Guardian, *, inherit_output: bool, tool: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cudadiag-isolation-"))
        self._running = Running(f"{guardian.token}{uuid.uuid4().hex[:16]}")
        self._guardian = guardian
        self._inherit = inherit_output
        self._lines = Lines()
        self._messages: deque[Message] = deque()
        self._captured: list[int] = []
        self._seen: dict[str, int] = {}
        self._pid: int | None = None  # of the test process itself, once it has said so
        self._end: Died | None = None
        self.wrapped: sanitizer.Wrapped | None = None
        (self.folder / "start.json").write_text(start.as_json())
        for name in ("stacks", "stdout", "stderr"):
            (self.folder / name).touch()
        argv: tuple[str, ...] = (sys.executable, *_interpreter_flags(), str(_MAIN), str(self.folder))
        try:
            if tool is not None:
                self.wrapped = sanitizer.wrap(tool, argv, self.folder)
                argv = self.wrapped.argv
            self._launch(argv, start.folder)
        except BaseException:
            self._forget()
            raise

    def _launch(self, argv: tuple[str, ...], cwd: str) -> None:
        for name in (TO_CHILD, FROM_CHILD):
            os.mkfifo(self.folder / name, 0o600)
        reader = os.open(self.folder / FROM_CHILD, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(reader, True)
        self._running.read_from(reader, self._feed)
        # For reading too, so that opening does not wait for the child. The child sees the end when this process ends.
        self._orders = os.open(self.folder / TO_CHILD, os.O_RDWR | os.O_CLOEXEC)
        outputs = [self._output(number, name) for number, name in ((1, "stdout"), (2, "stderr"))]
        try:
            self._running.start(
                argv, environment=self._environment(), cwd=cwd, stdout=outputs[0], stderr=outputs[1], pass_fds=(),
                memory_bytes=None,
            )  # fmt: skip
        finally:
            for output in outputs:
                os.close(output)
        self._guardian.watch(self._running.pid)

    def _output(self, number: int, name: str) -> int:
        if self._inherit:
            return os.dup(number)
        return os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def _environment(self) -> dict[str, str]:
        """The parent's, with the driver's own log where nobody asked for another place for it."""
        ours = {**os.environ, family.MARK: family.mark_value(self._running.token)}
        ours.setdefault("CUDA_LOG_FILE", str(self.folder / "driver.log"))
        if self.wrapped is not None:
            ours.update(self.wrapped.environment)
        return ours

    def _feed(self, data: bytes, _at_s: float) -> None:
        for message in self._lines.feed(data):
            if message["is"] == "process":
                self._pid = message["pid"]
            elif message["is"] == "capture":
                self._open_capture(message["descriptors"])
            else:
                self._messages.append(message)

    def _open_capture(self, descriptors: Sequence[int]) -> None:
        try:
            for number in descriptors:
                self._captured.append(os.open(f"/proc/{self._pid}/fd/{number}", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:  # a hardened /proc: what a dying test printed is then not known
            self._close_captured()

    # -- talking

    def send(self, kind: str, **fields: Any) -> None:
        os.write(self._orders, encode({"is": kind, **fields}))

    def receive(self, limit_s: float | None) -> Message:
        """The next message. Raises Died, or Hung after `limit_s` seconds without one."""
        if not self._messages:
            until_s = self._running.elapsed_s + limit_s if limit_s else float("inf")
            self._running.pump(until_s, lambda: bool(self._messages) or self._running.exited)
            if self._running.exited:
                self._running.pump(self._running.elapsed_s + _DRAIN_S, lambda: self._running.drained)
        if self._messages:
            return self._messages.popleft()
        if self._running.exited:
            raise self.ended()
        raise Hung

    @property
    def alive(self) -> bool:
        return os.waitid(os.P_PID, self._running.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    # -- endings

    def finish(self, limit_s: float) -> Died | None:
        """Ask the child to end itself; its end, None where it had to be killed."""
        try:
            return self.wait_end(limit_s)
        finally:
            self.close()

    def wait_end(self, limit_s: float) -> Died | None:
        """The same, but its files stay until `close`, and so does the child where it does not end."""
        self.send("finish")
        until_s = self._running.elapsed_s + limit_s
        self._running.pump(until_s, lambda: self._running.exited)
        return self.ended() if self._running.exited else None

    def interrupt(self, limit_s: float) -> None:
        """Ctrl-C: let fixtures end in the child, for a moment."""
        family.signal_group(self._running.pid, signal.SIGINT)
        self._running.pump(self._running.elapsed_s + limit_s, lambda: self._running.exited)
        self.close()

    def ended(self) -> Died:
        if self._end is None:
            status = self._running.reap()
            code = 0 if status is None else os.waitstatus_to_exitcode(status)
            self._end = Died(None, -code) if code < 0 else Died(code, None)
        return self._end

    def close(self) -> None:
        """End whatever still runs of it, children included, and remove its folder."""
        if self._running.pid > 0:
            if not self._running.exited:
                self._running.end(_KILL_GRACE_S)
            elif self._end is not None and (self._end.signal is not None or self._end.exit_code):
                family.signal_members(self._running.living(), signal.SIGKILL)  # they may still hold the device
            if self._end is None and self._running.exited:
                self.ended()
            self._guardian.release(self._running.pid)
        self._forget()

    def _forget(self) -> None:
        self._close_captured()
        self._running.close()
        if hasattr(self, "_orders"):
            os.close(self._orders)
            del self._orders
        shutil.rmtree(self.folder, ignore_errors=True)

    def _close_captured(self) -> None:
        for number in self._captured:
            os.close(number)
        self._captured.clear()

    # -- what it left

    def mark(self, sizes: Sequence[int]) -> None:
        """What its own files (`_FILES`, in order) held when a test began is none of that test's."""
        self._seen = {name: size for (name, _), size in zip(_FILES, sizes, strict=True)}

    def stacks(self) -> list[str]:
        """Where every Python thread of a child that still runs is; works with the main thread stuck in C code."""
        path = self.folder / "stacks"
        if self._pid is None:  # under a tool the process we started is the tool: the signal would end it
            return []
        try:
            os.kill(self._pid, DUMP_SIGNAL)
        except (ProcessLookupError, PermissionError):
            return []
        until_s = time.monotonic() + _DUMP_LIMIT_S
        size = -1
        while time.monotonic() < until_s and (size <= 0 or path.stat().st_size != size):
            size = path.stat().st_size
            time.sleep(0.02)
        return _users_frames(path.read_bytes()).decode("utf-8", "replace").splitlines()

    def texts(self) -> dict[str, bytes]:
        """What the running phase printed so far: pytest's capture files, then what went past them (Python's fatal
        error, the C library's last words), and the driver's log."""
        found = {}
        for name, file in (*_FILES, ("sanitizer_xml", "sanitizer.xml"), ("sanitizer_log", "sanitizer.log")):
            path = self.folder / file
            if path.exists():
                found[name] = path.read_bytes()[self._seen.get(name, 0) :]
        for position, name in enumerate(("stdout", "stderr")):
            captured = os.pread(self._captured[position], _TEXT_BYTES, 0) if self._captured else b""
            found[name] = captured + _users_frames(found.get(name, b"")[-_TEXT_BYTES:])
        return found

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def inner_exit(self) -> Any:
        """How the test's process itself ended under a tool, as its own parent saw it."""
        path = self.folder / "inner_exit.json"
        return json.loads(path.read_text()) if path.exists() else None


def _users_frames(text: bytes) -> bytes:
    """A stack as Python's faulthandler prints it, without the frames below every test."""
    return b"".join(line for line in text.splitlines(keepends=True) if not _MACHINERY.match(line))


def _interpreter_flags() -> list[str]:
    """-X, -W, -O and their kin, as multiprocessing passes them on."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags
