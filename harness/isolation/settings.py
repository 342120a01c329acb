"""What was asked for, checked before anything is started."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

_COLLECTION_S = 600.0


@dataclass(frozen=True)
class Settings:
    """`timeout_s` bounds one test with its fixtures, 0 means no bound. `tool` is the sanitizer's for marked tests."""

    mode: str
    timeout_s: float
    tool: str | None
    health: str | None
    canaries: bool
    inherit_output: bool  # -s: the child writes where the parent does

    @property
    def collection_s(self) -> float | None:
        """The longest silence while a child collects: importing a framework takes longer than a test may."""
        return max(self.timeout_s, _COLLECTION_S) if self.timeout_s else None


_REFUSED = (
    ("usepdb", "--pdb", "a debugger needs the test in the process that holds the terminal"),
    ("trace", "--trace", "a debugger needs the test in the process that holds the terminal"),
    ("setupshow", "--setup-show", "it prints from inside the test's process"),
    ("setuponly", "--setup-only", "it prints from inside the test's process"),
    ("setupplan", "--setup-plan", "it prints from inside the test's process"),
    ("forked", "--forked", "a process forked after CUDA was used has no working CUDA; use --cuda-isolate=each"),
)


def check(config: pytest.Config) -> None:
    """Raises UsageError for an option that cannot work together with isolation, with the reason."""
    if not sys.platform.startswith("linux"):
        raise pytest.UsageError("--cuda-isolate needs Linux: it looks after its processes through /proc")
    for name, option, reason in _REFUSED:
        if config.getoption(name, False):
            raise pytest.UsageError(f"{option} does not work with --cuda-isolate: {reason}. Add --cuda-isolate=none")


def is_distributing(config: pytest.Config) -> bool:
    """Whether this is pytest-xdist's controller: its workers isolate, each with a child of its own."""
    return not hasattr(config, "workerinput") and (
        config.getoption("dist", "no") != "no" or bool(config.getoption("tx", None))
    )
