"""Explanation by an index that does not fit into 32 bits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.explanations.asked import absurd
from cudadiag.diagnose.explanations.words import BAD_ACCESS, left_open, numbers_words, place
from cudadiag.diagnose.interface import (
    Expects,
    Explanation,
    Finding,
    Status,
    before_the_kernel,
    clean_tool,
    refused_words,
    refuted,
    supported,
    untested,
)
from cudadiag.diagnose.witness import Witness
from cudadiag.evidence.allocations import Buffer, announced, buffers_of, is_null
from cudadiag.model import Caused, FaultKind, Outcome

BAD_ADDRESS_NUMBERS = (700, 717, 719)
"""719 has no number of its own: accesses between the blocks of a cluster end so."""
MODULUS = 1 << 32
"""What a 32-bit number loses when it wraps, signed or not."""
MOST = 1 << 31
"""The first value that a signed 32-bit number does not hold."""
SHOWN = 3
"""So many possible indices are named."""
ON_THE_WAY = "a number on the way to it may (a product that is divided again, a counter of 16 bits)"
NEAR_BYTES = 16 << 20
"""An address this near to a buffer was most likely reached by an index that is a little off."""


@dataclass(frozen=True)
class Wrap:
    """An access that is `unit` * 2^32 bytes away from a place in a buffer, as a wrapped 32-bit index is.

    `index` is what the index was taken for, `meant` what it should have been, in units from the start of the buffer; it
    may have wrapped up to `most` times, and then meant a place farther on.
    """

    buffer: Buffer
    unit: int
    index: int
    meant: int
    most: int = 1

    @property
    def words(self) -> str:
        what = "bytes" if self.unit == 1 else f"elements of {self.unit} bytes"
        if self.most > 1:
            times = f"{self.most} places in `{self.buffer.name}`, one of which was meant"
            return f"a multiple of 2^32 {what} before {times} (index {self._indices} wraps to {self.index})"
        at = f"byte {self.meant * self.unit} of `{self.buffer.name}`"
        return f"2^32 {what} before {at} (index {self.meant} wraps to {self.index})"

    @property
    def _indices(self) -> str:
        """The indices that it may have been: the first ones, and how many more."""
        shown = [str(self.index + k * MODULUS) for k in range(1, min(self.most, SHOWN) + 1)]
        more = [f"{self.most - SHOWN} larger ones"] if self.most > SHOWN else []
        return " or ".join([*shown, *more])


class IntegerOverflow(Explanation):
    """An index, or an offset in bytes, that does not fit into 32 bits."""

    name = "integer-overflow"
    title = "An index that overflows 32 bits"
    predicts = "the bad address lies 2^32 elements, or 2^32 bytes, before the place in a buffer that was meant"
    expects: ClassVar[Expects] = {Experiment.MEMCHECK: "an address 2^32 elements or bytes away"}
    advice = "compute the index in 64 bits: static_cast<size_t>(row) * columns"

    def weigh(self, evidence: Evidence) -> Finding:
        early = before_the_kernel(evidence)
        if early:
            return early
        recorded = [w for w in evidence.recorded(*BAD_ACCESS) if w.caused and w.caused.address is not None]
        return _by_address(recorded) if recorded else self._without_address(evidence)

    def _without_address(self, evidence: Evidence) -> Finding:
        """Where no bad address was recorded: by the sizes of the buffers, and by what the rule is about."""
        silent = evidence.hangs or evidence.outcomes & {Outcome.WRONG}
        refused = refused_words(evidence)
        if refused:
            large = absurd(evidence)
            return untested(f"{refused}{f'; {large}, as after an overflow' if large else ''}", evidence.failing)
        if evidence.with_kind(FaultKind.DEVICE_ASSERT):
            return untested("an assert may have caught an index that wrapped", evidence.failing)
        if evidence.with_kind(FaultKind.MISALIGNED_ADDRESS):
            return untested("716: a wrapped offset can be misaligned", evidence.failing)
        if unseen := left_open(evidence, *BAD_ADDRESS_NUMBERS, 716):
            return untested(unseen, evidence.failing)
        if evidence.failing and not silent and not evidence.with_number(*BAD_ADDRESS_NUMBERS):
            return refuted(f"{numbers_words(evidence)}; no bad address was reported", evidence.failing)
        crossing = _crossing(evidence)
        if crossing and evidence.failing:
            return supported(crossing, evidence.failing, suggested=True)
        largest = max(all_buffers(evidence), key=lambda buffer: buffer.size, default=None)
        if evidence.failing and largest is not None and largest.size < MOST:
            largely = f"the largest buffer, `{largest.name}`, has {largest.size} bytes"
            return untested(f"{largely}: no index into it wraps, but {ON_THE_WAY}", evidence.own[:1])
        finding = clean_tool(evidence, Experiment.MEMCHECK, "bad address")
        if finding.status is Status.REFUTED and evidence.failing and silent:
            inside = f"`{largest.name}`" if largest else "its buffer"
            why = f"{finding.why}; but an index that wraps to a place inside {inside} leaves no bad address"
            return untested(why, evidence.failing)
        return finding


def _by_address(recorded: Sequence[Witness]) -> Finding:
    """By the address that a checker recorded."""
    spaces = {w.caused.space for w in recorded if w.caused}
    if not spaces & {None, "global"}:
        where = " and ".join(sorted(map(str, spaces)))
        return untested(f"the bad address is in {where} memory: no index into it wraps, but {ON_THE_WAY}", recorded)
    if all(w.caused and is_null(w.caused.address) for w in recorded):
        return refuted("the bad address is next to zero: a null pointer", recorded)
    for witness in recorded:
        wrapped = next(wraps(witness.caused or Caused(), buffers_of(witness.result)), None)
        if wrapped and _is_near(witness.caused):
            near = f"the bad address is {_near_words(witness)}, and {wrapped.words} as well: which of both is not known"
            return untested(near, [witness])
        if wrapped:
            return supported(f"{place(witness.caused)}: the address is {wrapped.words}", [witness], suggested=True)
    if all(_is_near(w.caused) for w in recorded):
        near = _near_words(recorded[0])
        return untested(f"the bad address is {near}: no index into it wraps so, but {ON_THE_WAY}", recorded)
    return untested("the bad address is far from every buffer; which one was meant is not known", recorded)


def wrapped_words(evidence: Evidence) -> str:
    """Which index would have wrapped to the bad address, where one fits; "" elsewhere."""
    for witness in evidence.recorded(*BAD_ACCESS):
        caused = witness.caused
        if caused is None or caused.space not in (None, "global") or is_null(caused.address) or _is_near(caused):
            continue
        wrap = next(wraps(caused, buffers_of(witness.result)), None)
        if wrap:
            return wrap.words
    return ""


def wraps(caused: Caused, buffers: Sequence[Buffer]) -> Iterator[Wrap]:
    """The places that were meant, had a signed 32-bit index wrapped: in the case's buffers, else in the nearest
    allocation.

    The wrapped index is negative and fits into 32 bits, so that the access begins at most 2^31 units before the buffer.
    (An unsigned index that wraps stays inside a buffer that holds the right one: there is no bad address.) Elements are
    tried before bytes. A large index may have wrapped more than once.
    """
    near = caused.allocation
    known = buffers or ([Buffer(near.name or "the allocation", near.address, near.size)] if near else [])
    for buffer in known:
        sizes = {buffer.item_bytes or caused.size or 1, caused.size or 1}
        for unit in (*sorted(sizes - {1}), 1):
            index, rest = divmod((caused.address or 0) - buffer.address, unit)
            most = ((buffer.size - 1) // unit - index) // MODULUS
            if rest == 0 and -MOST <= index < 0 and most > 0:
                yield Wrap(buffer, unit, index, index + MODULUS, most)


def all_buffers(evidence: Evidence) -> tuple[Buffer, ...]:
    """Every buffer that a process of this shape made, or asked for and did not get (with address 0)."""
    found: dict[tuple[str, int], Buffer] = {}
    for witness in evidence.own:
        made = buffers_of(witness.result)
        asked = [entry for crumb in witness.judged.line.facts.breadcrumbs for entry in crumb.detail.get("buffers", ())]
        for buffer in (*made, *filter(None, map(announced, asked))):
            found.setdefault((buffer.name, buffer.size), buffer)
    return tuple(found.values())


def _near_words(witness: Witness) -> str:
    near = witness.caused.allocation if witness.caused else None
    if near is None or near.state != "freed":
        return "next to a buffer"
    return "inside a freed buffer" if near.side == "inside" else "next to a freed buffer"


def _is_near(caused: Caused | None) -> bool:
    near = caused.allocation if caused else None
    return near is not None and near.distance < NEAR_BYTES


def _crossing(evidence: Evidence) -> str | None:
    """A named quantity that this shape takes beyond 31 bits, where the rule names it."""
    text = " ".join(rule.expression for rule in evidence.subject.rules)
    for name, value in evidence.derived.items():
        if isinstance(value, int) and value >= MOST and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text):
            return f"{name} is {value} here, more than 31 bits hold, and the rule is about it"
    return None
