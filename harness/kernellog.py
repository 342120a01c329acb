"""The NVIDIA driver's lines in the kernel log (Xid) that appeared during a probe, or "not readable"."""

from __future__ import annotations

import errno
import os
from types import TracebackType

from harness.records import XidFacts

_PATH = "/dev/kmsg"
_RECORD_BYTES = 8192  # the kernel refuses a read that is smaller than the record
_MAX_LINES = 200


class KernelLog:
    """Opened before the child starts; `lines()` afterwards gives what was logged between."""

    def __init__(self, path: str = _PATH) -> None:
        self._fd = -1
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:  # no permission (dmesg_restrict), or no such device in a container
            self.close()

    def __enter__(self) -> KernelLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def facts(self) -> XidFacts:
        """Xid lines since this object was made."""
        if self._fd < 0:
            return XidFacts(readable=False)
        lines: list[str] = []
        while len(lines) < _MAX_LINES:
            try:
                record = os.read(self._fd, _RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.EPIPE:  # records were overwritten before they were read
                    continue
                return XidFacts(readable=False, lines=tuple(lines))
            if not record:
                break
            text = xid_text(record)
            if text is not None:
                lines.append(text)
        return XidFacts(readable=True, lines=tuple(lines))


def xid_text(record: bytes) -> str | None:
    """The message of a `/dev/kmsg` record (prefix;message, then indented fields) that tells of an Xid; None for
    others."""
    text = record.decode(errors="replace").partition(";")[2].partition("\n")[0]
    return text if "NVRM" in text and "Xid" in text else None
