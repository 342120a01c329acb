"""The recorded runs as the readers get them: files of a run, facts of its end. One archive, unpacked in memory once."""

from __future__ import annotations

import functools
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from cudadiag.evidence import Expectations
from harness.records import ProbeFacts

FOLDER = Path(__file__).parent / "recorded"
ARCHIVE = FOLDER / "h200-driver580-cuda13.0.tar.xz"
AGAIN = FOLDER / "h200-driver580-cuda13.0-faults2.tar.xz"
NEWER = FOLDER / "h200-driver580-sanitizer2026.4.tar.xz"
OBSERVERS = {
    "core": "coredump", "lwcore": "coredump", "flagcore": "coredump", "skipabort": "coredump", "memtext": "memcheck",
    "leakcheck": "memcheck", "filtered": "memcheck", "launches": "memcheck",
    "hazards": "racecheck", "unused": "initcheck", "allspaces": "initcheck",
}  # fmt: skip
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
KEYS = {
    "stdout": "stdout",
    "stderr": "stderr",
    "report.xml": "sanitizer_xml",
    "report.txt": "sanitizer_log",
    "core.gpu": "core",
    "driver.log": "driver_log",
}


def answers(expected: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, str], str]:
    """(fault, observer) -> the answer that the fault's source deserves."""
    return {
        (fault, observer): answer
        for fault, rows in expected.items()
        for observers, answer in rows.items()
        if observers != "truth"
        for observer in observers.split()
    }


def is_tool(observer: str) -> bool:
    return OBSERVERS.get(observer, observer) in TOOLS


@functools.cache
def files(archive: Path = ARCHIVE) -> dict[str, bytes]:
    """Path inside the archive -> bytes."""
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes()), mode="r:xz") as tar:
        return {
            member.name.removeprefix("./"): tar.extractfile(member).read()  # type: ignore[union-attr]
            for member in tar.getmembers()
            if member.isfile()
        }


@functools.cache
def runs(archive: Path = ARCHIVE) -> tuple[tuple[str, str], ...]:
    """Every (fault, observer) recorded."""
    names = {tuple(name.split("/")[1:3]) for name in files(archive) if name.startswith("runs/")}
    return tuple(sorted(names))  # type: ignore[arg-type]


def run_files(fault: str, observer: str, archive: Path = ARCHIVE) -> dict[str, bytes]:
    """What `evidence.read` is given for a run. A tool's text that went to stdout counts as its log."""
    prefix = f"runs/{fault}/{observer}/"
    found = {KEYS[name]: data for path, data in files(archive).items() if (name := path.removeprefix(prefix)) in KEYS}
    if is_tool(observer) and archive == ARCHIVE and "sanitizer_log" not in found:
        found["sanitizer_log"] = found["stdout"]
    return found


def run_facts(fault: str, observer: str, archive: Path = ARCHIVE) -> ProbeFacts:
    """How a run ended, as the harness would have told it. The recorder's shell turned signals into numbers."""
    status, wall = files(archive)[f"runs/{fault}/{observer}/rc"].split()
    code = int(status)
    if code == 124:
        return ProbeFacts(signal=9, timed_out=True, wall_s=float(wall))
    signal = {134: 6, 139: 11, 137: 9}.get(code)
    if is_tool(observer) and code in (6, 9, 11):  # the tool's own word for a signal
        signal = code
    return ProbeFacts(exit_code=None if signal else code, signal=signal, wall_s=float(wall))


def expectations(observer: str) -> Expectations:
    return Expectations(observer=OBSERVERS.get(observer, observer), leaks=observer == "leakcheck")
