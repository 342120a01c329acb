"""A stream as blocks of bytes, whatever its encoding and packing. Memory stays that of a block."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

BLOCK_BYTES = 4 << 20
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
PACKED_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)


def blocks(stream: BinaryIO, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The stream's bytes, unpacked (gzip, bzip2, xz) and turned into UTF-8 where they were UTF-16 or UTF-32.

    A packed stream that is cut off gives what can be read of it.
    """
    head = _exactly(stream, 4096)
    stream = _Joined(head, stream)  # type: ignore[assignment]
    unpacked = _unpacked(head, stream)
    if unpacked is not stream:
        head = _first(unpacked)
        stream = _Joined(head, unpacked)  # type: ignore[assignment]
    encoding = _encoding(head)
    decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
    while True:
        try:
            block = stream.read(size)
        except PACKED_ERRORS:
            return
        if decoder is not None:
            block = decoder.decode(block, final=not block).lstrip("\ufeff").encode("utf-8", "replace")
        if not block:
            return
        yield block


class _Joined(io.RawIOBase):
    """Bytes already read, then the rest of the stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._head:
            taken, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
            if size < 0 or len(taken) < size:
                taken += self._rest.read(-1 if size < 0 else size - len(taken)) or b""
            return taken
        return self._rest.read(size) or b""


def _exactly(stream: BinaryIO, size: int) -> bytes:
    parts: list[bytes] = []
    left = size
    while left > 0:
        part = stream.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _first(stream: BinaryIO) -> bytes:
    try:
        return _exactly(stream, 4096)
    except PACKED_ERRORS:
        return b""


def _unpacked(head: bytes, stream: BinaryIO) -> BinaryIO:
    if head.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    if head.startswith(b"BZh"):
        return cast(BinaryIO, bz2.BZ2File(stream))
    if head.startswith(b"\xfd7zXZ\x00"):
        return cast(BinaryIO, lzma.LZMAFile(stream))
    return stream


def _encoding(head: bytes) -> str | None:
    """UTF-16 and UTF-32 by their mark, or by every second byte being zero (a redirect of PowerShell)."""
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    pairs = len(head) // 2
    if pairs >= 8 and head[1::2].count(0) > 0.6 * pairs and head[0::2].count(0) < 0.1 * pairs:
        return "utf-16-le"
    if pairs >= 8 and head[0::2].count(0) > 0.6 * pairs and head[1::2].count(0) < 0.1 * pairs:
        return "utf-16-be"
    return None
