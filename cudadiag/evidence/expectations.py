"""What was asked of a probe, as far as judging it needs to know."""

from __future__ import annotations

from dataclasses import dataclass

TOOLS = frozenset({"memcheck", "racecheck", "initcheck", "synccheck"})


@dataclass(frozen=True)
class Expectations:
    """`target` is the target's kind, `observer` the observer's name.

    `check`: outputs are compared with the reference; False where the check was switched off.
    `compared`: the target has a reference, so a finished probe without a comparison proves nothing.
    `success`: the case's pattern (its result is in the reading). `leaks`: leaks count.
    `unmet`: why the case's `requires` does not hold here, None where it does.
    `asked_bytes`: device memory the shape asks for by itself, where the case can tell.
    `on_device`: a CUDA device is in use (False for programs run as they are on a machine without one).
    """

    target: str = "command"
    observer: str = "blocking"
    check: bool = True
    compared: bool = False
    success: str | None = None
    leaks: bool = False
    unmet: str | None = None
    asked_bytes: int | None = None
    on_device: bool = True

    @property
    def tool(self) -> str | None:
        """The sanitizer's tool, None for the other observers."""
        return self.observer if self.observer in TOOLS else None

    @property
    def is_worker(self) -> bool:
        """True for targets that run inside our worker and announce their steps."""
        return self.target in ("kernel", "python")
