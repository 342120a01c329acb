"""A stream as blocks of bytes, whatever its encoding and packing. Memory stays that of a few blocks."""

from __future__ import annotations

import bz2
import codecs
import itertools
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

BLOCK_BYTES = 4 << 20
PACKED_BYTES = 16 << 10  # read at once of a packed stream: what it unpacks to is at most a thousand times more
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PACKINGS: tuple[tuple[bytes, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", lzma.LZMADecompressor),
)
_DAMAGED = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


class Readable(Protocol):
    """Anything with a `read` of bytes: a file, a pipe, stdin."""

    def read(self, size: int, /) -> bytes: ...


def blocks(stream: Readable, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The stream's bytes, unpacked (gzip, bzip2, xz) and turned into UTF-8 where they were UTF-16 or UTF-32.

    A packed stream that is cut off or damaged gives what can be read of it.
    """
    head = stream.read(PACKED_BYTES) or b""
    unpack = next((make for mark, make in _PACKINGS if head.startswith(mark)), None)
    raw = itertools.chain((head,), _rest(stream, PACKED_BYTES if unpack else size))
    return _utf8(_unpacked(raw, unpack) if unpack else raw)


def is_packed(head: bytes) -> bool:
    """Whether bytes begin a packed stream that `blocks` unpacks."""
    return any(head.startswith(mark) for mark, _ in _PACKINGS)


def _rest(stream: Readable, size: int) -> Iterator[bytes]:
    while block := stream.read(size):
        yield block


def _unpacked(packed: Iterable[bytes], make: Callable[[], Any]) -> Iterator[bytes]:
    """Everything that can be unpacked, also of several parts one after another."""
    unpacker = make()
    try:
        for block in packed:
            left = block
            while left:
                yield unpacker.decompress(left)
                left = unpacker.unused_data if unpacker.eof else b""
                unpacker = make() if unpacker.eof else unpacker
    except _DAMAGED:
        return


def _utf8(raw: Iterable[bytes]) -> Iterator[bytes]:
    found = iter(raw)
    first = next((block for block in found if block), b"")
    encoding = _encoding(first[:4096])
    whole = itertools.chain((first,), found)
    if encoding is None:
        yield from (block for block in whole if block)
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in whole:
        yield decoder.decode(block).lstrip("\ufeff").encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


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
