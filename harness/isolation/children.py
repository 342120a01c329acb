"""The children of one session: started with the parent's command line, shared by tests or not, ended and replaced."""

from __future__ import annotations

import sys

import pytest

from harness.guardian import Guardian
from harness.isolation.child.wire import Message
from harness.isolation.items import RemoteItem
from harness.isolation.process import Child, Died, Start
from harness.isolation.settings import Settings
from harness.isolation.worker import Worker, collect
from harness.isolation.workerinput import workerinput

FINISH_S = 60.0  # for a sound child's session to end: fixtures are down by then
POISONED_FINISH_S = 5.0
_INTERRUPT_S = 5.0


class Children:
    """`shared` runs the tests that share a process; `afterwards` tells of children that died when no test ran."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._guardian = Guardian()
        self.shared: Worker | None = None
        self.bad_collectors: dict[str, str] = {}
        self.started = 0
        self.afterwards: list[str] = []
        self.last = "collection"  # what ran last, for the words about a child found dead

    def start(self, *, only: str | None = None, tool: str | None = None) -> Child:
        self.started += 1
        settings = self._settings
        start = Start(
            args=self._arguments(), workerinput=workerinput(self._config), health=settings.health,
            canaries=settings.canaries, sanitize=settings.tool, folder=str(self._config.invocation_params.dir),
            only=only, bad_collectors=self.bad_collectors,
        )  # fmt: skip
        if settings.inherit_output:
            sys.stdout.flush()
        return Child(start, self._guardian, inherit_output=settings.inherit_output, tool=tool)

    def _arguments(self) -> list[str]:
        """The command line again, with what one child must not share with the next."""
        ours: list[str] = []
        factory = getattr(self._config, "_tmp_path_factory", None)
        if factory is not None:
            ours.append(f"--basetemp={factory.getbasetemp() / f'isolated-{self.started}'}")
        if self._config.getoption("cov_source", None):
            ours.append("--cov-append")  # else the next child would erase what the last one measured
        words = [str(word) for word in self._config.invocation_params.args]
        at = words.index("--") if "--" in words else len(words)
        return [*words[:at], *ours, *words[at:]]

    def shared_for(self, item: RemoteItem) -> Worker:
        """The child of the unmarked tests, replaced where it is gone or keeps fixtures for another test."""
        worker, self.shared = self.shared, None
        if worker is not None and worker.ahead is None and not worker.child.alive:
            self._note_end(worker.child.ended(), f"after {self.last}")
            worker.child.close()
            worker = None
        if worker is not None and worker.promised not in (None, item.key):
            self.finish(worker)
            worker = None
        self.shared = worker or self._collect(self.start())
        return self.shared

    def _collect(self, child: Child) -> Worker:
        try:
            return collect(child, self._settings.collection_s, self._ignore)
        except BaseException:
            child.close()
            raise

    def _ignore(self, message: Message) -> None:
        """A later child's collection repeats what the first one told."""

    def own_for(self, item: RemoteItem, tool: str | None) -> Worker:
        """A child that collected this test only, or everything where the node id alone does not find it."""
        worker = self._collect(self.start(only=item.key[0], tool=tool))
        if item.key not in worker.index:
            worker.child.finish(POISONED_FINISH_S)
            worker = self._collect(self.start(tool=tool))
        return worker

    def finish(self, worker: Worker) -> None:
        end = worker.child.finish(FINISH_S)
        if end is None or end.signal is not None or end.exit_code:
            self._note_end(end, f"at its end, after {self.last}")

    def _note_end(self, end: Died | None, where: str) -> None:
        """A child that died when no test ran fails the session: without isolation it would have ended pytest."""
        how = f"died of {end}" if end is not None else f"did not end within {FINISH_S:.0f} s and was killed"
        self.afterwards.append(f"a test process {how} {where}")
        self._config.issue_config_time_warning(pytest.PytestWarning(f"cuda isolation: {self.afterwards[-1]}"), 2)

    def finish_shared(self) -> None:
        """The end of the session."""
        if self.shared is not None:
            self.finish(self.shared)
            self.shared = None

    def interrupt(self) -> None:
        """Ctrl-C."""
        if self.shared is not None:
            self.shared.child.interrupt(_INTERRUPT_S)
            self.shared = None

    def close(self) -> None:
        """Nothing may be left, however the session ended."""
        if self.shared is not None:
            self.shared.child.close()
            self.shared = None
        self._guardian.close()
