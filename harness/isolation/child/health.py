"""Is this process still fit to run the next test? Asked after every phase of every test, so it must be cheap.

Never imports a framework: libcuda is asked through ctypes, and only where something else has loaded it already.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .canaries import Canaries

_SONAME = "libcuda.so.1"
_HARMLESS = frozenset({3, 4, 100, 101, 201, 600, 709, 801, *range(900, 911)})
"""Codes that repeat and say nothing about later tests: no or ended driver, no device, a destroyed or foreign context,
not ready, a capture that is still open. 911 (a fault of an external device) and above do count."""

Fact = dict[str, Any]


def no_check() -> None:
    """The user's check where there is none."""


def users_check(path: str) -> Callable[[], object]:
    """The function `module:function` of the ini value `cuda_health`. Raises ValueError with what is wrong."""
    module_name, _, name = path.partition(":")
    if not name:
        raise ValueError(f"cuda_health = {path!r}: it must read `module:function`")
    try:
        found: object = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cuda_health = {path!r}: {error}") from error
    if not callable(found):
        raise ValueError(f"cuda_health = {path!r}: this is no function")
    return found


class Health:
    """`check()` gives None, or a fact: {"text", "source"} and for CUDA {"name", "number", "call"}."""

    def __init__(self, synchronising: ModuleType, users: Callable[[], object], canaries: Canaries | None) -> None:
        self._synchronising = synchronising
        self._users = users
        self._canaries = canaries
        self._library: ctypes.CDLL | None = None

    def check(self) -> Fact | None:
        return self._driver() or self._own() or self._memory()

    def _loaded(self) -> ctypes.CDLL | None:
        """libcuda if this process has it. RTLD_NOLOAD costs microseconds; reading the memory map does not."""
        if self._library is None:
            try:
                self._library = ctypes.CDLL(_SONAME, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
            except OSError:
                return None
        return self._library

    def _driver(self) -> Fact | None:
        """A sticky error: the code that one synchronise returns and the next one repeats."""
        if self._loaded() is None:
            return None
        first = self._synchronise()
        if first is None or first["number"] in _HARMLESS:
            return None
        again = self._synchronise()
        return first if again is not None and again["number"] == first["number"] else None

    def _synchronise(self) -> Fact | None:
        try:
            self._synchronising.synchronise_with(self._library)
        except self._synchronising.CudaCallError as error:
            return {
                "name": error.cuda_name, "number": error.number, "text": error.text, "call": error.call,
                "source": "driver",
            }  # fmt: skip
        return None

    def _own(self) -> Fact | None:
        try:
            said = self._users()
        except Exception as error:  # noqa: BLE001 - whatever the user's check raises is its answer
            return {"text": f"{type(error).__name__}: {error}", "source": "cuda_health"}
        return {"text": str(said), "source": "cuda_health"} if said else None

    def _memory(self) -> Fact | None:
        if self._canaries is None or self._library is None:
            return None
        damage = self._canaries.damage(self._library)
        return {"text": damage, "source": "canaries"} if damage else None
