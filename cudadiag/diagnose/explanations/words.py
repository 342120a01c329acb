"""Words that several explanations use."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.witness import HOST_KINDS, Witness
from cudadiag.evidence.allocations import buffers_of
from cudadiag.evidence.allocations import words as allocation_words
from cudadiag.evidence.names import caller_name
from cudadiag.model import Caused


def place(caused: Caused | None) -> str:
    """`verify_attn at verify_attn.cu:108`; "an unnamed place" where nothing is known."""
    if caused is None:
        return "an unnamed place"
    line = f" at {os.path.basename(caused.file)}:{caused.line}" if caused.file and caused.line else ""
    return f"{caller_name(caused.kernel) or caused.kernel or 'an unnamed kernel'}{line}"


def access(witness: Witness) -> str:
    """`write of 4 bytes in verify_attn at verify_attn.cu:108, right at the end of `scores` (row 17)`.

    By the buffers of the probe itself: each process has addresses of its own.
    """
    caused = witness.caused or Caused()
    size = f" of {caused.size} bytes" if caused.size else ""
    what = f"{caused.access or 'access'}{size} in {place(caused)}"
    if caused.allocation is None:
        return f"{what}, to {caused.space} memory" if caused.space not in (None, "global") else what
    own = buffers_of(witness.result)
    near = allocation_words(caused.allocation, buffers=own, address=caused.address)
    return f"{what}, {near}"


def best(witnesses: Iterable[Witness]) -> Witness:
    """The one that knows most about the cause; there must be one."""
    rows = tuple(witnesses)
    known = [w for w in rows if w.caused is not None and w.caused.line is not None]
    return next(iter(known or rows))


def told_numbers(evidence: Evidence) -> list[int]:
    """The CUDA errors the shape ended with where no tool changed them (memcheck turns every one into 719)."""
    told = [w for w in evidence.failing if w.tool is None and w.kind not in HOST_KINDS]
    return sorted({w.error_number for w in told if w.error_number is not None})


def numbers_words(evidence: Evidence) -> str:
    """`700`, `700 and 719`, or how it ended instead."""
    found = told_numbers(evidence)
    if found:
        return "the device reported " + " and ".join(map(str, found))
    if evidence.failing and all(w.tool for w in evidence.failing):
        return f"it fails only under {', '.join(sorted({w.observer for w in evidence.failing}))}"
    kinds = sorted({w.outcome.value for w in evidence.failing if w.tool is None})
    return f"it ended as {' or '.join(kinds)}, without an error of CUDA's" if kinds else "nothing failed"
