"""One line of what `doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """`state`: "ok", "missing" (needed here; `advice` says what to do), "absent" (not needed) or "unknown"."""

    name: str
    state: str
    found: str
    advice: str | None = None
