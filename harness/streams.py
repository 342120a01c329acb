"""Capture of a child's output streams: head and tail within a cap, each read time-stamped.

The head goes to disk as it arrives, so that a killed controller has lost nothing of ordinary output; the tail of a
flood is kept in memory and written at the end. A line's time is that of the read that brought its first byte: lines of
the two streams that were read in the same round have equal times, their order is then not known (`TimelineLine.tied`).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from harness.records import ProbeFacts, StreamFacts

READ_BYTES = 1 << 20
_SLACK_BYTES = 4 << 20  # the tail is trimmed only when it has outgrown its cap by this much
_DENSE_STAMPS = 50_000  # so many time stamps are all kept; then one every _SPARSE_S, halved whenever there are too many
_SPARSE_S = 0.01


class Capture:
    """Keeps the first and the last half of `cap_bytes` of one stream in `folder`/`name`, its times in `name`.times.

    A disk that refuses a write (full, over quota) does not stop the capture: the child must not block on its pipe. What
    could not be written is held in memory (within the cap) and tried again at the end; what is lost then is told in
    `StreamFacts.error`.
    """

    def __init__(self, folder: Path, name: str, cap_bytes: int) -> None:
        self.path = folder / name
        self.times_path = folder / f"{name}.times"
        self.total_bytes = 0
        self._head_cap = max(1, cap_bytes // 2)
        self._tail_cap = max(1, cap_bytes - cap_bytes // 2)
        self._head_bytes = 0
        self._unwritten = bytearray()
        self._tail = bytearray()
        self._stamps: list[tuple[float, int]] = []
        self._at_line_start = True
        self._error: OSError | None = None
        self._fd = self._open()

    def feed(self, data: bytes, at_s: float) -> None:
        """One read's worth of the stream, `at_s` seconds after the child's start."""
        if self._at_line_start or 0 <= data.find(b"\n") < len(data) - 1:
            self._stamp(at_s)
        self._at_line_start = data.endswith(b"\n")
        self.total_bytes += len(data)
        room = self._head_cap - self._head_bytes
        if room:
            head, data = data[:room], data[room:]
            self._head_bytes += len(head)
            self._write(head)
        if data:
            self._tail += data
            if len(self._tail) > self._tail_cap + _SLACK_BYTES:
                del self._tail[: len(self._tail) - self._tail_cap]

    def finish(self) -> StreamFacts:
        """Write the tail and the times; say what was dropped and what could not be written."""
        self._trim_tail()
        dropped = self.total_bytes - self._head_bytes - len(self._tail)
        note = b"\n[cudadiag: %d bytes of this stream were dropped here]\n" % dropped if dropped else b""
        if self._fd < 0:
            self._fd = self._open()
        waiting, self._unwritten = self._unwritten, bytearray()
        self._write(waiting + note + self._tail)
        if self._fd >= 0:
            os.close(self._fd)
        self._write_times(dropped, len(note))
        lost = len(self._unwritten)
        error = f"{self._error}: {lost} bytes of this stream could not be kept" if lost else None
        return StreamFacts(str(self.path), str(self.times_path), self.total_bytes, dropped, error)

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            self._error = error
            return -1

    def _write(self, data: bytes | bytearray) -> None:
        if self._unwritten or self._fd < 0:
            self._unwritten += data
            return
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, memoryview(data)[done:])
        except OSError as error:
            self._error = error
            self._unwritten += data[done:]

    def _stamp(self, at_s: float) -> None:
        stamps = self._stamps
        if len(stamps) >= _DENSE_STAMPS:
            if at_s - stamps[-1][0] < _SPARSE_S:
                return
            if len(stamps) >= 2 * _DENSE_STAMPS:
                del stamps[_DENSE_STAMPS::2]
        stamps.append((at_s, self.total_bytes))

    def _trim_tail(self) -> None:
        """Cut the tail to its cap, at the start of a line where one is near."""
        excess = len(self._tail) - self._tail_cap
        if excess > 0:
            newline = self._tail.find(b"\n", excess, excess + 4096)
            del self._tail[: newline + 1 if newline >= 0 else excess]

    def _write_times(self, dropped: int, note_bytes: int) -> None:
        tail_start = self._head_bytes + dropped
        shift = note_bytes - dropped
        lines = []
        for at_s, offset in self._stamps:
            if offset < self._head_bytes:
                lines.append(f"{at_s:.6f} {offset}\n")
            elif offset >= tail_start:
                lines.append(f"{at_s:.6f} {offset + shift}\n")
            elif lines and lines[-1].endswith(f" {self._head_bytes}\n"):
                lines[-1] = f"{at_s:.6f} {self._head_bytes}\n"  # the last read before the tail dates its first line
            else:
                lines.append(f"{at_s:.6f} {self._head_bytes}\n")
        try:
            self.times_path.write_text("".join(lines))
        except OSError as error:
            self._error = self._error or error


@dataclass(frozen=True)
class TimelineLine:
    """One captured line. `tied`: a line of the other stream was read in the same round, their order is not known."""

    at_s: float
    stream: str  # "stdout" or "stderr"
    text: bytes
    tied: bool = False


def stream_lines(stream: StreamFacts) -> list[tuple[float, bytes]]:
    """(seconds after start, line without its newline) for every captured line. Raises OSError if the files are gone."""
    data = Path(stream.path).read_bytes()
    stamps = [line.split() for line in Path(stream.times_path).read_text().splitlines()]
    times = [float(at_s) for at_s, _ in stamps]
    offsets = [int(offset) for _, offset in stamps]
    lines = []
    start = 0
    for line in _split_newlines(data):
        index = bisect_right(offsets, start) - 1
        lines.append((times[max(index, 0)] if times else 0.0, line.rstrip(b"\n")))
        start += len(line)
    return lines


def _split_newlines(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def merged_timeline(facts: ProbeFacts) -> list[TimelineLine]:
    """Both streams' lines in the order in which they were read."""
    streams = [(name, stream) for name, stream in (("stdout", facts.stdout), ("stderr", facts.stderr)) if stream]
    found = {name: stream_lines(stream) for name, stream in streams}
    seen_at = {name: {at_s for at_s, _ in lines} for name, lines in found.items()}
    other = {"stdout": "stderr", "stderr": "stdout"}
    merged = [
        TimelineLine(at_s, name, text, at_s in seen_at.get(other[name], ()))
        for name, lines in found.items()
        for at_s, text in lines
    ]
    return sorted(merged, key=lambda line: line.at_s)
