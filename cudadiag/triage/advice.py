"""What to do next, in order, with the exact command for the framework the log is of. The advice is data/advice.json."""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cudadiag.triage.sign import Role
from cudadiag.triage.story import Story

_MARKS = (
    ("kubernetes", re.compile(rb"CrashLoopBackOff|OOMKilled|kubelet|\bpod/")),
    ("vllm", re.compile(rb"\bvllm\b|VllmWorker|EngineCore")),
    ("jax", re.compile(rb"jaxlib|XlaRuntimeError|\bxla/|jax\._src")),
    ("triton", re.compile(rb"triton[./]|OutOfResources|tl\.\w+")),
    ("pytorch", re.compile(rb"\btorch\b|c10::|ProcessGroupNCCL|AcceleratorError|sglang")),
)


@dataclass(frozen=True)
class Step:
    """One thing to do. `command`: for the framework found; `commands`: for all that have one of their own."""

    do: str
    why: str
    command: str
    commands: dict[str, str]
    source: str


@functools.cache
def _table() -> dict[str, Any]:
    text = importlib.resources.files("cudadiag.data").joinpath("advice.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def frameworks(texts: Iterable[bytes]) -> tuple[str, ...]:
    """The frameworks a log is of, the most special first; C++ where none is named."""
    joined = b"\n".join(texts)
    return tuple(name for name, mark in _MARKS if mark.search(joined)) or ("cpp",)


def steps_for(story: Story, found: tuple[str, ...]) -> list[Step]:
    """The steps for a story's fault; none where nothing is wrong."""
    return [_step(_table()["steps"][name], found) for name in _names(story)]


def _names(story: Story) -> list[str]:
    table = _table()
    cause = "library" if story.primary is not None and story.primary.role is Role.LIBRARY else story.cause
    if story.fault is not None and story.fault.name == "SIGKILL":
        cause = "SIGKILL"
    if cause in table["causes"]:
        return list(table["causes"][cause])
    if story.fault is not None and story.verdict.value not in ("environment",):
        return list(table["kinds"][story.fault.kind.value])
    return list(table["verdicts"][story.verdict.value])


def _step(entry: dict[str, Any], found: tuple[str, ...]) -> Step:
    commands: dict[str, str] = entry["commands"]
    command = next((commands[name] for name in found if name in commands), commands["any"])
    return Step(entry["do"], entry["why"], command, commands, entry["source"])
