"""The parent side of a probe: start it, watch it, end it, and record what was seen. Decides nothing about what it
means."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import family, observers, sanitizer
from harness.channel import Channel
from harness.coredump import CoreWatch
from harness.guardian import Guardian
from harness.kernellog import KernelLog
from harness.memory import MemoryWatch
from harness.records import ProbeFacts, ProbeRequest
from harness.running import Running
from harness.streams import Capture
from harness.targets import command, kernel, python
from harness.targets.interface import ResultChannel, TargetLaunch

_HELD_PIPE_S = 0.2  # how long a pipe is read on that is held by a process which could not be found


def run_probe(
    request: ProbeRequest, guardian: Guardian | None = None, cancelled: Callable[[], bool] | None = None
) -> ProbeFacts:
    """Run one probe to its end and return what it showed; never raises for what the program did.

    `request.folder` must exist; everything the probe leaves lies in it. `cancelled` is asked about every 50 ms: once
    true, the probe is ended and its facts say `killed_by_us="interrupted"`. Blocking; probes of several threads run
    side by side. What cannot be started (no such command, tool or folder) is `start_error`. Raises ValueError for a
    request that names no known target kind or observer, or an empty command.
    """
    _check(request)
    return _Probe(request, guardian, cancelled or (lambda: False)).run()


@dataclass(frozen=True)
class _Plan:
    """What will be started, and how its environment differs from ours."""

    observation: observers.Observation
    environment: dict[str, str]
    changed: dict[str, str]
    removed: tuple[str, ...]
    notes: tuple[str, ...]


class _Probe:
    """One probe from its plan to its facts."""

    def __init__(self, request: ProbeRequest, guardian: Guardian | None, cancelled: Callable[[], bool]) -> None:
        self.request = request
        self.guardian = guardian
        self.cancelled = cancelled
        self.folder = Path(request.folder)
        self.token = f"{guardian.token if guardian else ''}{uuid.uuid4().hex[:16]}"
        self.running = Running(self.token)
        self.out = Capture(self.folder, "stdout", request.limits.stream_bytes)
        self.err = Capture(self.folder, "stderr", request.limits.stream_bytes)
        self.channel = Channel(self.folder / "result.jsonl")
        self.core: CoreWatch | None = None
        self.facts: dict[str, Any] = {"folder": str(self.folder)}
        self.notes: list[str] = []

    def run(self) -> ProbeFacts:
        with KernelLog() as log:
            stdout, stderr = self.running.pipe_to(self.out.feed), self.running.pipe_to(self.err.feed)
            result_fd = None if self.request.target["kind"] == "command" else self.running.pipe_to(self.channel.feed)
            try:
                plan = self._plan(result_fd)
                self._start(plan, stdout, stderr, result_fd)
            except (OSError, sanitizer.ToolMissing, _NotStartable) as error:
                self.facts["start_error"] = _why_not_started(error)
            else:
                self._watch(plan)
                self.facts["xid"] = log.facts()
            finally:
                self.running.close()
        self.facts.update(stdout=self.out.finish(), stderr=self.err.finish())
        self.facts.setdefault("launch", {})["notes"] = self.notes
        return ProbeFacts(**self.facts)

    def _plan(self, result_fd: int | None) -> _Plan:
        request = self.request
        if observers.OBSERVERS[request.observer].tool and request.device != "emulator":
            sanitizer.find()  # the first one asks the tool for its options, which is not the probe's time
        self.running.started_s = time.monotonic()
        target = self._target(result_fd)
        observation = observers.observe(request, target.argv)
        ours = {**_device_environment(request.device), **observation.environment}
        ours[family.MARK] = family.mark_value(self.token)
        environment = {**os.environ, **target.environment, **request.env}
        removed = tuple(name for name in observers.SCRUBBED if environment.pop(name, None) is not None)
        environment.update(ours)
        notes = (*target.notes, *observation.notes)
        return _Plan(observation, environment, {**target.environment, **request.env, **ours}, removed, notes)

    def _target(self, result_fd: int | None) -> TargetLaunch:
        if result_fd is None:
            return command.launch(self.request)
        inode = os.fstat(result_fd).st_ino
        channel = ResultChannel(result_fd, inode, str(self.channel.file), self.running.started_s)
        return _WORKER_TARGETS[self.request.target["kind"]](self.request, channel)

    def _start(self, plan: _Plan, stdout: int, stderr: int, result_fd: int | None) -> None:
        self.notes.extend(plan.notes)
        argv = plan.observation.argv
        self.facts["launch"] = {
            "argv": list(argv),
            "env": plan.changed,
            "unset": list(plan.removed),
            "cwd": self.request.cwd or os.getcwd(),
        }
        try:
            self.running.start(
                argv,
                environment=plan.environment,
                cwd=self.request.cwd,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[] if result_fd is None else [result_fd],
                # The worker limits itself once it has read its request; its interpreter must be able to start.
                memory_bytes=self.request.limits.memory_bytes if result_fd is None else None,
            )
        except ValueError as error:  # a null byte in a word or in the environment
            raise _NotStartable(str(error)) from error
        self.facts["launch"]["pid"] = self.running.pid
        if self.guardian:
            self.guardian.watch(self.running.pid)

    def _watch(self, plan: _Plan) -> None:
        try:
            memory = self._supervise(plan)
        except BaseException:  # Ctrl-C in the thread that runs the probe: nothing may be left behind
            self.running.end(self.request.limits.grace_s)
            self.running.reap()
            raise
        self._record_end(memory)
        self._record_files(plan)

    def _supervise(self, plan: _Plan) -> MemoryWatch:
        """Until nothing of the probe runs any more."""
        running, limits = self.running, self.request.limits
        uuid_ = self.request.device.partition(":")[2] if self.request.device.startswith("cuda:") else None
        memory = MemoryWatch(running.pid, uuid_)
        if plan.observation.core_folder:
            self.core = CoreWatch(plan.observation.core_folder)
        running.on_tick = memory.sample_if_due
        running.pump(limits.timeout_s, self._over)
        if not running.exited and not self.cancelled():
            self.facts["timed_out"] = not self._finish_core(limits.timeout_s)
        if running.exited:
            self._end_stragglers()
        else:
            self.facts["killed_by_us"] = (
                "interrupted" if self.cancelled() else f"still running at the time limit of {limits.timeout_s:g} s"
            )
            self.facts["survivors"] = tuple(member.pid for member in running.end(limits.grace_s))
        if not running.drained and not running.settle(_HELD_PIPE_S):
            self.notes.append("an output pipe is still held by a process that could not be found; it is read no more")
        if self.guardian:
            self.guardian.release(running.pid)
        return memory

    def _over(self) -> bool:
        return self.running.exited or self.cancelled()

    def _finish_core(self, limit_s: float) -> bool:
        """At the wall limit: let a core file grow to its end, or ask a hung kernel for one. Whether the program then
        ended."""
        core, running = self.core, self.running
        if core is None:
            return False
        core.look(running.elapsed_s)
        if not core.busy(running.elapsed_s, limit_s):
            problem = core.trigger(running.elapsed_s)
            if problem:
                self.notes.append(problem)
        running.pump(float("inf"), lambda: self._over() or not core.busy(running.elapsed_s, limit_s))
        return running.exited and not core.triggered

    def _end_stragglers(self) -> None:
        """The program has ended: what it left running may finish within the grace period, then it is ended."""
        running, grace_s = self.running, self.request.limits.grace_s
        if running.settle(grace_s):
            return
        left = running.living()
        if left:
            self.facts["stragglers"] = tuple(vars(member) for member in left)
            self.facts["survivors"] = tuple(member.pid for member in running.end(grace_s))

    def _record_end(self, memory: MemoryWatch) -> None:
        running = self.running
        status = running.reap()
        self.facts["wall_s"] = running.elapsed_s if running.exited_s is None else running.exited_s
        if status is not None:
            self.facts["exit_code"] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
            self.facts["signal"] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        if running.usage is not None:
            memory.add_usage(running.usage)
        self.facts.update(peak_host_bytes=memory.peak_host_bytes, peak_device_bytes=memory.peak_device_bytes)

    def _record_files(self, plan: _Plan) -> None:
        seen, observation = self.channel.reports(), plan.observation
        if seen.broken_lines:
            self.notes.append(f"{seen.broken_lines} lines of the worker could not be read")
        self.facts.update(
            breadcrumbs=tuple(seen.breadcrumbs),
            result=seen.result,
            device_records=tuple(seen.records),
            device_facts=seen.device,
            driver_log=_existing(observation.driver_log),
            sanitizer_xml=_existing(observation.sanitizer_xml),
            sanitizer_log=_existing(observation.sanitizer_log),
            inner_exit=_read_json(observation.inner_exit),
        )
        if self.core:
            self.facts["core"] = _existing(self.core.core())
            self.core.remove_pipes()


class _NotStartable(Exception):
    """The command line cannot be given to the system at all."""


_WORKER_TARGETS: dict[str, Callable[[ProbeRequest, ResultChannel], TargetLaunch]] = {
    "python": python.launch,
    "kernel": kernel.launch,
}


def _check(request: ProbeRequest) -> None:
    """Raises ValueError for what no launch could make sense of."""
    kind = request.target["kind"]
    if kind != "command" and kind not in _WORKER_TARGETS:
        raise ValueError(f"unknown kind of target: {kind!r}")
    if kind == "command" and not request.target["argv"]:
        raise ValueError("the command is empty")
    if request.observer not in observers.OBSERVERS:
        raise ValueError(f"unknown observer: {request.observer!r}; known are {', '.join(observers.OBSERVERS)}")


def _device_environment(device: str) -> dict[str, str]:
    """A probe on a GPU sees that GPU (or MIG instance) only, as its device 0."""
    kind, _, device_uuid = device.partition(":")
    return {"CUDA_VISIBLE_DEVICES": device_uuid} if kind == "cuda" else {}


def _why_not_started(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _existing(path: Path | None) -> str | None:
    return str(path) if path is not None and path.exists() else None


def _read_json(path: Path | None) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text())) if path is not None else None
    except (OSError, ValueError):
        return None
