"""Shapes and counts in the gate's lines, without colour: they go into files."""

from __future__ import annotations

from collections.abc import Sequence

from cudadiag.model import Shape
from cudadiag.report.style import count_words, shape_words

SHOWN = 3

__all__ = ["clean", "count_words", "shape_list", "shape_words"]


def shape_list(shapes: Sequence[Shape]) -> str:
    """`n=5, n=6, n=7 and 9 other shapes`."""
    words = ", ".join(shape_words(shape) for shape in shapes[:SHOWN])
    more = len(shapes) - SHOWN
    return words if more <= 0 else f"{words} and {count_words(more, 'other shape')}"


def clean(text: str) -> str:
    """Text of a program as it may stand in XML and on a terminal: no control characters, no half characters."""
    return "".join(c if c in "\t\n" or (c.isprintable() and c != "\uffff") else _shown(c) for c in text)


def _shown(char: str) -> str:
    code = ord(char)
    if code >= 0xD800 and (code <= 0xDFFF or code in (0xFFFE, 0xFFFF)):
        return "\ufffd"
    return char if char == "\u00a0" else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
