"""Compiled code on disk, keyed by everything it depends on. A damaged entry is a miss, never an error."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_MAGIC = b"cudadiag-emulator 1\n"


def default_folder() -> Path:
    """CUDADIAG_CACHE, else cudadiag under XDG_CACHE_HOME, else ~/.cache/cudadiag."""
    override = os.environ.get("CUDADIAG_CACHE")
    if override:
        return Path(override)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cudadiag"


def key_of(*parts: str | bytes) -> str:
    """A file name for the parts; their order and their borders count."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class Cache:
    """Bytes by key in a folder. `folder` None: nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, key: str) -> bytes | None:
        """The entry, None if it is not there or damaged."""
        if self.folder is None:
            return None
        try:
            data = (self.folder / key[:2] / key).read_bytes()
        except OSError:
            return None
        head = len(_MAGIC) + 32
        if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(data[head:]).digest() != data[len(_MAGIC) : head]:
            return None
        return data[head:]

    def put(self, key: str, data: bytes) -> None:
        """Keep an entry; a folder that cannot be written is no error, only slower next time."""
        if self.folder is None:
            return
        folder = self.folder / key[:2]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=folder, prefix=".new")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(data).digest() + data)
                os.replace(name, folder / key)
            except OSError:
                os.unlink(name)
        except OSError:
            return
