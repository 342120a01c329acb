"""The file that holds a recording: one xz stream of a JSON header line and the bytes that it points into."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

FORMAT = 1


@dataclass(frozen=True)
class Recorded:
    """What one kernel gave: its PTX and the bits of every output, or why there are none."""

    fingerprint: str
    ptx: str = ""
    outputs: Sequence[np.ndarray] = ()
    error: str = ""


@dataclass
class Recording:
    about: dict[str, str] = field(default_factory=dict)  # device, driver, nvrtc, when
    cases: dict[str, Recorded] = field(default_factory=dict)


def save(recording: Recording, path: Path) -> None:
    blob = bytearray()

    def put(data: bytes) -> list[int]:
        blob.extend(data)
        return [len(blob) - len(data), len(data)]

    header: dict[str, object] = {}
    for name, case in sorted(recording.cases.items()):
        header[name] = {
            "fingerprint": case.fingerprint,
            "error": case.error,
            "ptx": put(case.ptx.encode()),
            "outputs": [[array.dtype.str, *put(planes(array))] for array in case.outputs],
        }
    first = json.dumps({"format": FORMAT, "about": recording.about, "cases": header}, sort_keys=True)
    path.write_bytes(lzma.compress(first.encode() + b"\n" + bytes(blob), preset=6))


def load(path: Path) -> Recording:
    first, _, blob = lzma.decompress(path.read_bytes()).partition(b"\n")
    header = json.loads(first)
    if header["format"] != FORMAT:
        raise ValueError(f"{path.name} has format {header['format']}, this code reads {FORMAT}")
    recording = Recording(about=header["about"])
    for name, entry in header["cases"].items():
        start, size = entry["ptx"]
        outputs = [unplaned(blob[at : at + length], dtype) for dtype, at, length in entry["outputs"]]
        recording.cases[name] = Recorded(
            entry["fingerprint"], blob[start : start + size].decode(), outputs, entry["error"]
        )
    return recording


def planes(array: np.ndarray) -> bytes:
    """All first bytes, then all second bytes, ...: exponents beside exponents compress far better."""
    return np.ascontiguousarray(array.view(np.uint8).reshape(-1, array.dtype.itemsize).T).tobytes()


def unplaned(data: bytes, dtype: str) -> np.ndarray:
    kind = np.dtype(dtype)
    flat = np.frombuffer(data, np.uint8).reshape(kind.itemsize, -1).T
    return np.ascontiguousarray(flat).view(kind).reshape(-1)


def find(folder: Path) -> Path | None:
    found = sorted(folder.glob("h200.*.xz"))
    return found[-1] if found else None
