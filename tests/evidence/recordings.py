"""The recorded runs as the readers get them: files of a run, facts of its end. One archive, unpacked in memory once."""

from __future__ import annotations

import functools
import io
import tarfile
from pathlib import Path

from cudadiag.evidence import Expectations
from harness.records import ProbeFacts

ARCHIVE = Path(__file__).parent / "recorded" / "h200-driver580-cuda13.0.tar.xz"
OBSERVERS = {"core": "coredump", "lwcore": "coredump", "flagcore": "coredump", "memtext": "memcheck"}
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck", "memtext")
KEYS = {
    "stdout": "stdout",
    "stderr": "stderr",
    "report.xml": "sanitizer_xml",
    "report.txt": "sanitizer_log",
    "core.gpu": "core",
}


@functools.cache
def files() -> dict[str, bytes]:
    """Path inside the archive -> bytes."""
    with tarfile.open(fileobj=io.BytesIO(ARCHIVE.read_bytes()), mode="r:xz") as archive:
        return {
            member.name.removeprefix("./"): archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive.getmembers()
            if member.isfile()
        }


@functools.cache
def runs() -> tuple[tuple[str, str], ...]:
    """Every (fault, observer) recorded."""
    return tuple(sorted({tuple(name.split("/")[1:3]) for name in files() if name.startswith("runs/")}))  # type: ignore[misc]


def run_files(fault: str, observer: str) -> dict[str, bytes]:
    """What `evidence.read` is given for a run. A tool's text that went to stdout counts as its log."""
    prefix = f"runs/{fault}/{observer}/"
    found = {KEYS[name]: data for path, data in files().items() if (name := path.removeprefix(prefix)) in KEYS}
    if observer in TOOLS and "sanitizer_log" not in found:
        found["sanitizer_log"] = found["stdout"]
    return found


def run_facts(fault: str, observer: str) -> ProbeFacts:
    """How a run ended, as the harness would have told it. The recorder's shell turned signals into numbers."""
    status, wall = files()[f"runs/{fault}/{observer}/rc"].split()
    code = int(status)
    if code == 124:
        return ProbeFacts(signal=9, timed_out=True, wall_s=float(wall))
    signal = {134: 6, 139: 11, 137: 9}.get(code)
    if observer in TOOLS and code in (6, 9, 11):  # the tool's own word for a signal
        signal = code
    return ProbeFacts(exit_code=None if signal else code, signal=signal, wall_s=float(wall))


def expectations(observer: str) -> Expectations:
    return Expectations(observer=OBSERVERS.get(observer, observer))
