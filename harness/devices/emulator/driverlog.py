"""What the CUDA driver writes where CUDA_LOG_FILE says: plain words about a refused call, and every error returned."""

from __future__ import annotations

import os
import sys
import threading
import time

from .errors import CudaError


class DriverLog:
    """Writes to the file, or to stdout or stderr by those names; nowhere if CUDA_LOG_FILE is not set."""

    def __init__(self, target: str | None) -> None:
        self.target = target

    @classmethod
    def from_environment(cls) -> DriverLog:
        return cls(os.environ.get("CUDA_LOG_FILE") or None)

    def say(self, text: str) -> None:
        """One line with the driver's time stamp, thread and level."""
        if self.target is None:
            return
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:03d}"
        line = f"[{stamp}][{threading.get_ident()}][CUDA][E] {text}\n"
        if self.target in ("stdout", "stderr"):
            stream = sys.stdout if self.target == "stdout" else sys.stderr
            stream.write(line)
            stream.flush()
            return
        try:
            with open(self.target, "a", encoding="utf-8") as file:
                file.write(line)
        except OSError:
            self.target = None  # as the driver: a log that cannot be written is no error of the program

    def returned(self, error: CudaError, *, sticky: bool = False) -> None:
        """The line the driver writes whenever a call returns an error."""
        if sticky:
            self.say("Sticky error detected")
        call = {"cuCtxSynchronize": "cuCtxSynchronize_v2"}.get(error.call, error.call)
        self.say(f"Returning {error.number} ({error.cuda_name}) from {call}")
