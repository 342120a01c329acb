"""An exception as JSON facts. Loaded by path in the child; Python >= 3.8, standard library only."""

from __future__ import annotations

import re
import sys
import traceback

_CUDA_NAME = re.compile(r"\b(CUDA_ERROR_[A-Z0-9_]+|cudaError[A-Za-z0-9]+)\b")
_NUMBER_ATTRIBUTES = ("number", "error_code", "status", "code")
_TEXT_LIMIT = 20000


def describe(error: BaseException, step: str) -> dict:
    """{"step", "type", "text", "traceback"} and, where the exception carries them, "cuda_name", "number", "call", "log"."""
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "."
    text = str(error)[:_TEXT_LIMIT]
    facts = {
        "step": step,
        "type": module + kind.__qualname__,
        "text": text,
        "traceback": "".join(traceback.format_exception(kind, error, error.__traceback__))[-_TEXT_LIMIT:],
    }
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


def _number(error: BaseException) -> object:
    for attribute in _NUMBER_ATTRIBUTES:
        value = getattr(error, attribute, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
    return None


def show(error: BaseException) -> None:
    """The traceback on stderr, as Python itself would have printed it."""
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
