"""One guardian process per run: it ends every probe's processes if the controller dies, even by SIGKILL.

The controller writes each probe's process group to the guardian's pipe; the kernel closes that pipe when the controller
is gone, however it went. `guardian_main.py` is the other end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from types import TracebackType

from harness.family import MARK


class Guardian:
    """Use as a context manager around a run, and give it to every `run_probe` of that run. Thread-safe.

    `token` is part of the environment mark of all its probes, so that the guardian also finds what left its group.
    """

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex[:16]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Guardian:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the process now (about 10 ms, not waited for); the first `watch` does it otherwise."""
        with self._lock:
            self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            script = Path(__file__).with_name("guardian_main.py")
            environment = {key: value for key, value in os.environ.items() if key != MARK}
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(script), self.token],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C at the terminal must not reach it
                env=environment,
                cwd="/",
            )
        return self._process

    def watch(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        with self._lock:
            pipe = self._start().stdin
            assert pipe is not None  # Popen was given PIPE
            try:
                pipe.write(line.encode())
                pipe.flush()
            except (BrokenPipeError, ValueError):  # the guardian was killed by someone: probes still end as usual
                return

    def close(self) -> None:
        """End the guardian; what still runs of its probes is killed by it."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                try:
                    self._process.stdin.close()
                except BrokenPipeError:
                    pass
                self._process.wait()
                self._process = None
