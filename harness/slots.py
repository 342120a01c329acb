"""One lock file for each GPU, so that two runs never share one and blame each other's faults and memory.

Advisory (`flock`), kept by the kernel for as long as the run's process lives, gone however it ends.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

FOLDER_VARIABLE = "CUDADIAG_LOCK_DIR"
_POLL_S = 0.1


class DeviceBusy(Exception):
    """Another run holds a device; the text says which run, as far as it told."""


class DeviceClaim:
    """Holds the locks of some devices. A context manager; `release` may be called more than once."""

    def __init__(self, files: list[int]) -> None:
        self._files = files

    def __enter__(self) -> DeviceClaim:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        while self._files:
            os.close(self._files.pop())


def claim_devices(labels: Iterable[str], wait_s: float = 0.0) -> DeviceClaim:
    """Lock every "cuda:UUID" among the labels ("none" and "emulator" need no lock), in one order for all runs.

    Waits at most `wait_s` seconds in all. Raises DeviceBusy when another run holds one, OSError when the folder of
    the locks (`CUDADIAG_LOCK_DIR`, by default `cudadiag-locks` in the system's temporary folder, shared by all users)
    cannot be used.
    """
    until = time.monotonic() + wait_s
    files: list[int] = []
    try:
        for label in sorted({label for label in labels if label.startswith("cuda:")}):
            files.append(_lock(label, until))
    except BaseException:
        DeviceClaim(files).release()
        raise
    return DeviceClaim(files)


def lock_folder() -> Path:
    """The folder of the lock files, made if it is missing; every user may add to it, as to the temporary folder."""
    named = os.environ.get(FOLDER_VARIABLE)
    folder = Path(named) if named else Path(tempfile.gettempdir()) / "cudadiag-locks"
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)
    return folder


def _lock(label: str, until: float) -> int:
    uuid = label.partition(":")[2]
    safe = "".join(letter if letter.isalnum() or letter == "-" else "_" for letter in uuid)
    fd = _open(lock_folder() / f"{safe}.lock")
    try:
        while not _try(fd):
            if time.monotonic() >= until:
                holder = os.pread(fd, 500, 0).decode(errors="replace").strip()
                raise DeviceBusy(f"{label} is used by another run of cudadiag ({holder or 'it left no name'})")
            time.sleep(_POLL_S)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"pid {os.getpid()}: {' '.join(sys.argv)}\n".encode()[:500], 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open(path: Path) -> int:
    """Not with O_CREAT on a file that is there: Linux refuses that in a shared folder when another user made the
    file."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        fd = os.open(path, flags | os.O_CREAT, 0o666)
        os.fchmod(fd, 0o666)  # whatever the umask: the next run may be another user's
        return fd


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
