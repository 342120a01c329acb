"""CUDA's error codes and the driver's Xid numbers as tables, read from cudadiag/data on first use (about 2 ms)."""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from dataclasses import dataclass
from typing import Any

from cudadiag.model import FaultKind


@dataclass(frozen=True)
class CudaCode:
    """One CUDA error. `kind` is None for codes that are no fault (not ready). `sticky`: "yes", "no" or "treat as
    yes"."""

    number: int
    runtime: str | None
    driver: str | None
    text: str | None
    kind: FaultKind | None
    group: str  # kernel, launch, memory, build, environment, hardware, usage, capture, status
    sticky: str
    meaning: str
    causes: tuple[str, ...] = ()
    old: int | None = None  # the runtime's number before CUDA 10.1, where it was another

    @property
    def is_sticky(self) -> bool:
        """True where the context is dead after it: every later call repeats the code."""
        return self.sticky != "no"

    @property
    def name(self) -> str:
        """The runtime's name, else the driver's."""
        return self.runtime or self.driver or f"CUDA error {self.number}"


@dataclass(frozen=True)
class Xid:
    """One Xid of the driver's kernel log. `blame`: application, hardware, driver, consequence or information."""

    number: int
    meaning: str
    blame: str
    action: str
    read: str
    kind: FaultKind | None = None


def _entries(file: str) -> list[dict[str, Any]]:
    text = importlib.resources.files("cudadiag.data").joinpath(file).read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = json.loads(text)["entries"]
    return entries


def _kind(value: str | None) -> FaultKind | None:
    return FaultKind(value) if value else None


@functools.cache
def cuda_codes() -> dict[int, CudaCode]:
    """Every known CUDA error by its number (since CUDA 10.1 runtime and driver share them)."""
    codes = (
        CudaCode(**{**entry, "kind": _kind(entry["kind"]), "causes": tuple(entry.get("causes", ()))})
        for entry in _entries("cuda_errors.json")
    )
    return {code.number: code for code in codes}


@functools.cache
def xids() -> dict[int, Xid]:
    """Every known Xid by its number."""
    return {entry["number"]: Xid(**{**entry, "kind": _kind(entry["kind"])}) for entry in _entries("xids.json")}


@functools.cache
def codes_by_name() -> dict[str, CudaCode]:
    """Codes by runtime name and by driver name."""
    return {name: code for code in cuda_codes().values() for name in (code.runtime, code.driver) if name}


@functools.cache
def codes_by_text() -> dict[str, CudaCode]:
    """Codes by what cudaGetErrorString says, in lower case; of two with one text the first."""
    found: dict[str, CudaCode] = {}
    for code in cuda_codes().values():
        if code.text:
            found.setdefault(code.text.lower(), code)
    return found


@functools.cache
def codes_by_old_number() -> dict[int, CudaCode]:
    """Codes by the number the runtime gave them before CUDA 10.1, where it differs."""
    return {code.old: code for code in cuda_codes().values() if code.old is not None}


def code_for_number(number: int) -> CudaCode | None:
    """The code of a bare number: today's meaning first, else the one it had before CUDA 10.1 (77 is 700)."""
    return cuda_codes().get(number) or codes_by_old_number().get(number)


def kind_of(number: int | None) -> FaultKind:
    """The fault kind a CUDA error number stands for; `other-cuda` for what the table does not know."""
    code = cuda_codes().get(number) if number is not None else None
    return (code.kind if code else None) or FaultKind.OTHER_CUDA


def is_sticky(number: int | None) -> bool:
    code = cuda_codes().get(number) if number is not None else None
    return code is not None and code.is_sticky


def lookup(query: str) -> tuple[CudaCode | Xid, ...]:
    """Every entry a query may mean, best first: a number (today's, then the old one), "Xid 31", a name of either API
    (whole, or a part of it in any case), or words of CUDA's text. An empty tuple where nothing fits."""
    wanted = query.strip()
    xid = re.fullmatch(r"(?i)xid[\s:#]*(\d{1,6})", wanted)
    if xid:
        entry = xids().get(int(xid[1]))
        return (entry,) if entry else ()
    number = re.fullmatch(r"(?i)(?:cuda\s*)?(?:error|code)?[\s:=#]*(\d{1,6})", wanted)
    if number:
        return _by_number(int(number[1]))
    exact = codes_by_name().get(wanted) or codes_by_text().get(wanted.lower())
    return (exact,) if exact else _by_part(wanted)


def _by_number(number: int) -> tuple[CudaCode | Xid, ...]:
    found = (cuda_codes().get(number), codes_by_old_number().get(number), xids().get(number))
    return tuple(entry for entry in found if entry is not None)


def _by_part(wanted: str) -> tuple[CudaCode | Xid, ...]:
    squeezed = re.sub(r"[\s_]+", "", wanted).lower()
    if len(squeezed) < 3:
        return ()
    codes = [c for c in cuda_codes().values() if squeezed in re.sub(r"[\s_]+", "", _words(c)).lower()]
    numbers = [x for x in xids().values() if squeezed in re.sub(r"[\s_]+", "", x.meaning).lower()]
    return (*codes, *numbers)


def _words(code: CudaCode) -> str:
    return f"{code.runtime}|{code.driver}|{code.text}"
