"""compute-sanitizer around a command line: found, asked once what it knows, its options built from the answer.

Options differ between 12.9 and 13.5 and an unknown one ends the tool, so only what `--help` lists is used.
"""

from __future__ import annotations

import functools
import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import tools

_HELP_LIMIT_S = 20.0
_PORTS = range(50_000, 60_000, 16)  # an own base port for each run; the tool takes up to 10 ports from its base
_PADDING_BYTES = 256  # guard after each allocation: what overruns by less is found even where a neighbour follows
_PRINT_LIMIT = 10_000  # without one initcheck prints millions of records, for minutes; the summary counts all of them
_CONNECT_LIMIT_S = 60  # to connect to the target, not to run it
_OPTION = re.compile(r"^\s+(?:-\w \[ )?--([a-z0-9][a-z0-9-]*)", re.MULTILINE)
_VERSION = re.compile(r"^Version (\S+)", re.MULTILINE)
_API_REPORTS = re.compile(r"--report-api-errors.*?\n(?:.*\n){0,6}?\s+explicit\s*:")


class ToolMissing(Exception):
    """compute-sanitizer is not there or does not answer; the text says what to install."""


@dataclass(frozen=True)
class Tool:
    """One compute-sanitizer: its path, version, and the names of the options it lists."""

    path: str
    version: str
    options: frozenset[str]
    explicit_api_reports: bool


@dataclass(frozen=True)
class Wrapped:
    """A command line under the tool, and the files it will write."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    xml: Path
    log: Path
    inner_exit: Path
    notes: tuple[str, ...]


def find() -> Tool:
    """The compute-sanitizer of the pip wheel, of conda, of the toolkit, or on PATH, in this order. Raises
    ToolMissing."""
    path = _locate()
    if path is None:
        raise ToolMissing(
            "compute-sanitizer was not found: pip install 'cudadiag[sanitizer]', or put a CUDA toolkit on PATH"
        )
    return _ask(path, os.stat(path).st_mtime_ns)


def _locate() -> str | None:
    return tools.find("compute-sanitizer")


@functools.cache
def _ask(path: str, _mtime_ns: int) -> Tool:
    try:
        answer = subprocess.run([path, "--help"], capture_output=True, timeout=_HELP_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolMissing(f"{path} --help: {error}") from error
    text = answer.stdout.decode(errors="replace")
    options = frozenset(_OPTION.findall(text))
    if "tool" not in options:
        said = (text + answer.stderr.decode(errors="replace")).strip()
        raise ToolMissing(
            f"{path} --help does not look like compute-sanitizer (exit {answer.returncode}): {said[:300]}"
        )
    version = _VERSION.search(text)
    return Tool(path, version.group(1) if version else "unknown", options, bool(_API_REPORTS.search(text)))


def wrap(tool_name: str, argv: tuple[str, ...], folder: Path, *, leak_check: bool = False) -> Wrapped:
    """`argv` under compute-sanitizer's `tool_name`, every report in `folder`. Raises ToolMissing. `leak_check`:
    memcheck also reports what was never freed.

    The program is started by `inner.py`, which records how the program itself ended: the tool's own exit status mixes
    the two. No `--error-exitcode` for the same reason: the records and the summary line are the evidence.
    """
    tool = find()
    xml, log, inner_exit = folder / "sanitizer.xml", folder / "sanitizer.log", folder / "inner_exit.json"
    inner = (sys.executable, "-I", "-S", str(Path(__file__).with_name("inner.py")), str(inner_exit), *argv)
    wanted = _wanted(tool_name, xml, log, leak_check)
    options = _options(tool, wanted)
    missing = sorted(name for name, _ in wanted if name not in tool.options)
    notes = [f"compute-sanitizer {tool.version} at {tool.path}"]
    if missing:
        notes.append("this compute-sanitizer lacks: " + ", ".join(f"--{name}" for name in missing))
    environment = {"NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE": "uds"}
    return Wrapped((tool.path, *options, *inner), environment, xml, log, inner_exit, tuple(notes))


def _options(tool: Tool, wanted: list[tuple[str, str | None]]) -> list[str]:
    words: list[str] = []
    for name, value in wanted:
        if name not in tool.options or (name == "report-api-errors" and not tool.explicit_api_reports):
            continue
        words.append(f"--{name}")
        if value is not None:
            words.append(value)
    return words


def _wanted(tool_name: str, xml: Path, log: Path, leak_check: bool) -> list[tuple[str, str | None]]:
    """The options asked for, in order; None where there is no value. `%` starts an escape in the tool's file names."""
    wanted: list[tuple[str, str | None]] = [
        ("tool", tool_name),
        ("log-file", str(log).replace("%", "%%")),
        ("save", str(xml).replace("%", "%%")),
        ("xml", None),
        ("print-limit", str(_PRINT_LIMIT)),
        ("strip-paths", "no"),
        ("target-processes", "all"),
        ("launch-timeout", str(_CONNECT_LIMIT_S)),
        ("port", str(_free_port())),
    ]
    if tool_name == "memcheck":
        # API errors the program did not ask about are reported by default since 2026.1, on sound programs too
        wanted += [("padding", str(_PADDING_BYTES)), ("report-api-errors", "explicit")]
        # memory of cudaMallocAsync used by a stream that does not wait for it; by default only since 2025.4
        wanted += [("track-stream-ordered-races", "all")]
        wanted += [("leak-check", "full")] if leak_check else []
    if tool_name == "initcheck":
        wanted += [("initcheck-address-space", "all")]  # shared memory too, since 2025.4
    return wanted


def _free_port() -> int:
    """A base port that nothing listens on now; a race is possible, hence the random choice and the socket override."""
    for port in random.sample(_PORTS, k=8):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    return _PORTS[0]
