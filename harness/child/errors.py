"""An exception as JSON facts. Loaded by path in the child; Python >= 3.8, standard library only."""

from __future__ import annotations

import os
import re
import sys
import traceback

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_CUDA_NAME = re.compile(r"\b(CUDA_ERROR_[A-Z0-9_]+|cudaError[A-Za-z0-9]+)\b")
_NUMBER_ATTRIBUTES = ("number", "error_code", "status", "code")
_TEXT_LIMIT = 20000
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def describe(error: BaseException, step: str) -> dict[str, Any]:
    """{"step", "type", "text"}, "traceback" for an exception that is not our own class, and, where the exception
    carries them, "cuda_name", "number", "call", "log". The traceback begins in the user's code, our own frames before
    it are left out."""
    kind = type(error)
    ours = kind.__module__.startswith("cudadiag_")
    module = "" if ours or kind.__module__ in ("builtins", "__main__") else kind.__module__ + "."
    text = str(error)[:_TEXT_LIMIT]
    facts: dict[str, Any] = {
        "step": step,
        "type": module + kind.__qualname__,
        "text": text,
    }
    if not ours:
        facts["traceback"] = "".join(traceback.format_exception(kind, error, _users_part(error)))[-_TEXT_LIMIT:]
    name = getattr(error, "cuda_name", None)
    if name is None:
        found = _CUDA_NAME.search(text)
        name = found.group(1) if found else None
    if name is not None:
        facts["cuda_name"] = str(name)
        number = _number(error)
        if number is not None:
            facts["number"] = number
    for key in ("call", "log"):
        value = getattr(error, key, None)
        if isinstance(value, str):
            facts[key] = value[:_TEXT_LIMIT]
    return facts


def _number(error: BaseException) -> int | None:
    for attribute in _NUMBER_ATTRIBUTES:
        value = getattr(error, attribute, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def show(error: BaseException) -> None:
    """The traceback on stderr, as Python itself would have printed it for the user's own script."""
    traceback.print_exception(type(error), error, _users_part(error), file=sys.stderr)


def _users_part(error: BaseException) -> TracebackType | None:
    """The traceback from the first frame that is not ours; all of it when every frame is."""
    part = error.__traceback__
    while part is not None and part.tb_frame.f_code.co_filename.startswith(_OURS):
        part = part.tb_next
    return part or error.__traceback__
