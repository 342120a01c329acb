"""Messages between parent and child: one JSON object a line, over two FIFOs in the child's folder.

FIFOs and not inherited pipes: compute-sanitizer closes descriptors it does not know.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

TO_CHILD = "to_child"
FROM_CHILD = "from_child"

Message = dict[str, Any]


def encode(message: Message) -> bytes:
    """One line. What JSON does not know (an object in a test's user properties) travels as its repr."""
    return json.dumps(message, default=repr, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Complete messages out of what a pipe gave so far. A line cut short by the child's death never becomes one."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines if line]


class Link:
    """The child's end. A process that the test forked must not speak for its parent, so it ends here."""

    def __init__(self, folder: Path) -> None:
        self._pid = os.getpid()
        self._out = os.open(folder / FROM_CHILD, os.O_WRONLY | os.O_CLOEXEC)
        self._in = os.open(folder / TO_CHILD, os.O_RDONLY | os.O_CLOEXEC)
        self._lines = Lines()
        self._waiting: list[Message] = []
        self._held = b""

    def hold(self, kind: str, **fields: Any) -> None:
        """Said with the next `send`: each write wakes the parent, which costs more than the message."""
        self._held += encode({"is": kind, **fields})

    def send(self, kind: str, **fields: Any) -> None:
        self._only_the_child()
        data = self._held + encode({"is": kind, **fields})
        self._held = b""
        while data:
            data = data[os.write(self._out, data) :]

    def receive(self) -> Message | None:
        """The next order; None when the parent is gone."""
        self._only_the_child()
        while not self._waiting:
            data = os.read(self._in, 1 << 16)
            if not data:
                return None
            self._waiting += self._lines.feed(data)
        return self._waiting.pop(0)

    def _only_the_child(self) -> None:
        if os.getpid() != self._pid:
            os._exit(1)
