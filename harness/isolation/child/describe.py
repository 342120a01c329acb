"""What the parent needs to know of collected items and recorded warnings, as JSON values."""

from __future__ import annotations

import warnings
from typing import Any

import pytest


def collected(item: pytest.Item, tool: str | None) -> dict[str, Any]:
    """{"nodeid", "location", "mode", "timeout", "tool", "xfail", "group"} of one item; None where nothing is said."""
    mark = item.get_closest_marker("cuda_isolate")
    return {
        "nodeid": item.nodeid,
        "location": item.location,
        "mode": _mode(mark),
        "timeout": mark.kwargs.get("timeout") if mark else None,
        "tool": tool if tool and _wants(item, tool) else None,
        "xfail": _xfail(item),
        "group": _group(item),
    }


def _mode(mark: pytest.Mark | None) -> str | None:
    return next((str(word) for word in mark.args if word in ("auto", "each", "none")), None) if mark else None


def _wants(item: pytest.Item, tool: str) -> bool:
    """Marked `cuda_sanitize`, for every tool or for this one."""
    mark = item.get_closest_marker("cuda_sanitize")
    return mark is not None and (not mark.args or tool in mark.args)


def _xfail(item: pytest.Item) -> str | None:
    """The reason of an unconditional xfail mark. It matters where the test dies and pytest itself cannot judge any
    more; a mark with `raises` expects an exception, not a death, and a condition in a string cannot be asked here."""
    for mark in item.iter_markers("xfail"):
        condition = mark.args[0] if mark.args else mark.kwargs.get("condition", True)
        if condition is True and mark.kwargs.get("raises") is None:
            return str(mark.kwargs.get("reason", ""))
    return None


def _group(item: pytest.Item) -> str | None:
    """pytest-xdist's group, the way its own workers spell it."""
    names = {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in
             item.iter_markers("xdist_group")}  # fmt: skip
    return "_".join(sorted(names)) or None


def warning(message: warnings.WarningMessage) -> dict[str, Any]:
    """A recorded warning: its text, its category's name and module, its place."""
    return {
        "text": str(message.message),
        "category": message.category.__name__,
        "module": message.category.__module__,
        "filename": message.filename,
        "lineno": message.lineno,
    }
