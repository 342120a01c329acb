"""What Python does for a waiting thread: printf, assert, malloc, free."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable

from .memory import Memory, OutOfMemory

_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|j|z|t|L)?([diouxXcsSpfFeEgGaA%n])")
Reader = Callable[[int, int], "bytes | None"]


def format_text(template: bytes, at: int, read: Reader, text: Callable[[int], bytes]) -> tuple[bytes, int]:
    """What device printf prints, and how many arguments it used.

    `at` is the address of the argument buffer: each argument aligned to its size, 4 bytes for int, 8 for the rest.
    `read(address, size)` gives its bytes (None: not readable), `text(address)` a string argument.
    """
    used = 0

    def argument(size: int) -> bytes:
        nonlocal at, used
        at = (at + size - 1) // size * size
        data = read(at, size)
        at += size
        used += 1
        return data if data is not None else bytes(size)

    def one(found: re.Match[str]) -> str:
        flags, width, precision, length, kind = found.groups()
        if kind == "%":
            return "%"
        if width == "*":
            width = str(struct.unpack("<i", argument(4))[0])
        if precision == "*":
            precision = str(struct.unpack("<i", argument(4))[0])
        head = f"%{flags}{width or ''}" + (f".{precision}" if precision is not None else "")
        return _one(head, kind, length or "", argument, text)

    return _SPEC.sub(one, template.decode("latin-1")).encode("latin-1", "replace"), used


def _one(head: str, kind: str, length: str, argument: Callable[[int], bytes], text: Callable[[int], bytes]) -> str:
    wide = length in ("l", "ll", "j", "z", "t")
    if kind in "di":
        value = struct.unpack("<q" if wide else "<i", argument(8 if wide else 4))[0]
        return (head + "d") % _narrow(value, length, signed=True)
    if kind in "ouxX":
        value = struct.unpack("<Q" if wide else "<I", argument(8 if wide else 4))[0]
        return (head + ("d" if kind == "u" else kind)) % _narrow(value, length, signed=False)
    if kind == "c":
        return (head + "c") % chr(argument(4)[0])
    if kind in "sS":
        return (head + "s") % text(struct.unpack("<Q", argument(8))[0]).decode("latin-1")
    if kind == "p":
        return f"0x{struct.unpack('<Q', argument(8))[0]:x}"
    if kind == "n":
        argument(8)
        return ""
    number = struct.unpack("<d", argument(8))[0]
    return float(number).hex() if kind in "aA" else (head + kind) % number


def _narrow(value: int, length: str, *, signed: bool) -> int:
    bits = {"hh": 8, "h": 16}.get(length)
    if bits is None:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


class HostCalls:
    """Serves the calls. `generic_read(address, size)` reads memory as the waiting thread sees it."""

    def __init__(self, memory: Memory, heap_bytes: int) -> None:
        self.memory = memory
        self.heap_bytes = heap_bytes
        self.heap_used = 0

    def printf(self, thread: dict[str, int], read: Reader) -> int:
        """vprintf(format, arguments)."""
        template = self._text(thread["arg0"], read)
        printed, used = format_text(template, thread["arg1"], read, lambda address: self._text(address, read))
        sys.stdout.write(printed.decode("utf-8", "backslashreplace"))
        sys.stdout.flush()
        return used

    def failed_assert(self, thread: dict[str, int], block: tuple[int, int, int], read: Reader) -> tuple[str, int, str]:
        """__assertfail(message, file, line, function): prints what CUDA prints; returns file, line and message."""
        message, file, function = (
            self._text(thread[a], read).decode("utf-8", "replace") for a in ("arg0", "arg1", "arg3")
        )
        line = thread["arg2"] & 0xFFFFFFFF
        place = "[{},{},{}]".format
        tid = place(thread["tid_x"], thread["tid_y"], thread["tid_z"])
        sys.stderr.write(
            f"{file}:{line}: {function}: block: {place(*block)}, thread: {tid} Assertion `{message}` failed.\n"
        )
        sys.stderr.flush()
        return file, line, message

    def malloc(self, nbytes: int) -> int:
        """Memory of the device heap, 0 where it has no room (CUDA's default heap is 8 MiB)."""
        if nbytes <= 0 or self.heap_used + nbytes > self.heap_bytes:
            return 0
        try:
            address = self.memory.allocate(nbytes, "device heap", kind="heap")
        except OutOfMemory:
            return 0
        self.heap_used += nbytes
        return address

    def free(self, address: int) -> bool:
        """False where a kernel frees what is no live block of its heap."""
        if address == 0:
            return True
        found = self.memory.containing(address)
        if found is None or found.kind != "heap" or found.address != address or not found.live:
            return False
        self.heap_used -= found.size
        return self.memory.free(address)

    def _text(self, address: int, read: Reader) -> bytes:
        data = bytearray()
        while len(data) < 1 << 16:
            byte = read(address + len(data), 1)
            if byte is None or byte == b"\0":
                break
            data += byte
        return bytes(data)
