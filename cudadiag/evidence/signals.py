"""Names of the signals a process can die of."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11; `signal 99` for one that has no name here."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
