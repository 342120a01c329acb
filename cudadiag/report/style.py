"""Words with a colour. click strips the colour where the output is no terminal or NO_COLOR is set."""

from __future__ import annotations

import click

from cudadiag.model import Outcome, Scalar, Shape

OUTCOME_COLOURS = {
    Outcome.PASS: "green",
    Outcome.FAULT: "red",
    Outcome.HANG: "magenta",
    Outcome.WRONG: "yellow",
    Outcome.SKIPPED: "cyan",
    Outcome.UNRESOLVED: "white",
}


def outcome_word(outcome: Outcome, width: int = 0) -> str:
    """The outcome, padded before it is coloured."""
    dim = outcome is Outcome.UNRESOLVED
    return click.style(f"{outcome.value:<{width}}", fg=OUTCOME_COLOURS[outcome], bold=outcome.is_failure, dim=dim)


def strong(text: str) -> str:
    return click.style(text, bold=True)


def faint(text: str) -> str:
    return click.style(text, dim=True)


def shape_words(shape: Shape) -> str:
    """`streams=1 q_len=9 prefix=4096`: what can be given back with -P."""
    return " ".join(f"{name}={scalar_word(value)}" for name, value in shape.items()) or "(no parameters)"


def scalar_word(value: Scalar) -> str:
    """A value as a case file spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def count_words(count: int, one: str, many: str | None = None) -> str:
    """`1 probe`, `3 probes`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def bytes_words(count: int) -> str:
    """`36 B`, `16.0 KiB`, `1.5 GiB`."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def seconds_words(seconds: float) -> str:
    """`12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def us_words(us: float | None) -> str:
    """Microseconds with as many places as make sense; `-` for none."""
    if us is None:
        return "-"
    return f"{us:.1f}" if us < 100_000 else f"{us:.0f}"


def printable(text: str) -> str:
    """Text of a program's output, safe on a terminal: control characters are shown, not obeyed."""
    return "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in text)
