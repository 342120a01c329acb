"""Calling a user's function with the names it takes. Loaded by path in the child; Python >= 3.8, standard library
only."""

from __future__ import annotations

import inspect

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from typing import Any


def call_with(function: Any, offered: dict[str, Any]) -> object:
    """Call with those of the offered names that the function takes; all of them where it takes `**kwargs`.

    Raises TypeError naming what it wants and is not offered.
    """
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function(**offered)
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    missing = [p.name for p in named if p.default is p.empty and p.name not in offered]
    if missing:
        label = getattr(function, "__qualname__", "the function")
        raise TypeError(f"{label} wants {', '.join(missing)}; offered are {', '.join(sorted(offered))}")
    return function(**{p.name: offered[p.name] for p in named if p.name in offered})
