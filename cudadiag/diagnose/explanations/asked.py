"""How much memory an allocation that failed asked for, where somebody says so: the worker's table, or a message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.allocations import Buffer, announced
from cudadiag.model import FaultKind
from cudadiag.report.style import bytes_words

_SIZE = r"([\d.,]*\d)\s*(bytes|[KMGTPE]?i?B)\b"
_ASKED = re.compile(rf"(?i:tried to allocate|trying to allocate|out of memory allocating)\s+{_SIZE}")
_TOTAL = re.compile(rf"(?i:total capacity of)\s+{_SIZE}")
"""As PyTorch, CuPy and JAX say it."""
_POWERS = " KMGTPE"


def next_buffer(witness: Witness) -> Buffer | None:
    """The buffer whose allocation failed: the first one announced and not made. Its size is 0 where it is not known."""
    made = witness.result.get("buffers") or ()
    crumbs = [c for c in witness.judged.line.facts.breadcrumbs if c.step == "allocate"]
    asked = crumbs[-1].detail.get("buffers", ()) if crumbs else ()
    if len(asked) <= len(made):
        return None
    return announced(asked[len(made)]) or Buffer(str(asked[len(made)].get("name")), 0, 0)


def asked_bytes(witness: Witness) -> int | None:
    """What the allocation that failed asked for; None where nobody says."""
    buffer = next_buffer(witness)
    if buffer and buffer.size:
        return buffer.size
    return _first(_ASKED, witness)


def device_bytes(witness: Witness) -> int | None:
    """How much memory the device has; None where nobody says."""
    memory = witness.result.get("memory")
    total = memory.get("total") if isinstance(memory, Mapping) else None
    total = total or witness.judged.line.facts.device_facts.get("total_memory")
    return total if isinstance(total, int) else _first(_TOTAL, witness)


def absurd(evidence: Evidence) -> str:
    """`4096.0 GiB is more than the device has (139.8 GiB)`; "" where it could be there, or is not known."""
    for witness in evidence.with_kind(FaultKind.OUT_OF_MEMORY):
        asked, total = asked_bytes(witness), device_bytes(witness)
        if witness.tool is None and asked and total and asked > total:
            return f"{bytes_words(asked)} is more than the device has ({bytes_words(total)})"
    return ""


def _first(pattern: re.Pattern[str], witness: Witness) -> int | None:
    found = next((m for text in _texts(witness) if (m := pattern.search(text))), None)
    return _bytes(found[1], found[2]) if found else None


def _texts(witness: Witness) -> Iterator[str]:
    """Messages about the failure."""
    error = witness.result.get("error")
    if isinstance(error, Mapping):
        yield str(error.get("text") or error.get("message") or "")
    host = witness.reading.host_error
    yield (host.message or "") if host else ""
    yield from (line.raw for line in (*witness.reading.stderr, *witness.reading.stdout))


def _bytes(number: str, unit: str) -> int | None:
    try:
        value = float(number.replace(",", ""))
    except ValueError:
        return None
    power = _POWERS.index(unit[0].upper()) if unit not in ("bytes", "B") else 0
    return int(value * (1024 if "i" in unit else 1000) ** power)
