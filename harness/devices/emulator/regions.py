"""Stretches of straight-line code whose memory accesses can be checked together.

NVRTC unrolls loops, so a basic block often holds many accesses at constant offsets from a few registers. Before such a
stretch one check per register asks whether everything between the lowest and the highest byte is accessible and
aligned. Where it is not, the accesses are looked at one by one, and the first that is wrong is the fault: nothing of
the stretch has run then, which nobody can see, since a fault ends the kernel and its context.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .liveness import definitions
from .ptx import WIDTH, Addr, Function, Instruction, Reg

MAX_SPAN = 60000
"""The tables of accessible bytes count up to 65535."""
_LEAST_SAVED = 2


@dataclass(frozen=True)
class Access:
    """One access: body index, space, address register and offset, bytes."""

    index: int
    space: str
    base: Reg
    offset: int
    size: int


@dataclass(frozen=True)
class Group:
    """Accesses in [base + low, base + low + span) of one space; base + low + `phase` must be a multiple of `align`."""

    space: str
    base: Reg
    low: int
    span: int
    align: int
    phase: int
    accesses: tuple[Access, ...]


@dataclass(frozen=True)
class Region:
    """Body indices `first` to `last`; `members` are the accesses that the groups' checks cover."""

    first: int
    last: int
    groups: tuple[Group, ...]
    members: frozenset[int]


def regions(function: Function, barriers: set[int]) -> dict[int, Region]:
    """First index -> region. `barriers` are body indices that end a stretch besides labels, branches and calls."""
    found: dict[int, Region] = {}
    for start, end in _stretches(function, barriers):
        at = start
        while at <= end:
            region = _region(function, at, end)
            if region is None:
                at += 1
            else:
                found[region.first] = region
                at = region.last + 1
    return found


def _stretches(function: Function, barriers: set[int]) -> Iterator[tuple[int, int]]:
    """(first, last) of runs of instructions that neither jump nor suspend."""
    start = None
    for index, item in enumerate(function.body or ()):
        ends = not isinstance(item, Instruction) or index in barriers
        ends = ends or (isinstance(item, Instruction) and item.opcode in ("bra", "brx", "ret", "exit", "call", "trap"))
        if ends:
            if start is not None:
                yield start, index - 1
            start = None
        elif start is None:
            start = index
    if start is not None:
        yield start, len(function.body or ()) - 1


def access_at(function: Function, index: int) -> Access | None:
    """The access at `index` if its address is register + constant in device or shared memory."""
    x = (function.body or ())[index]
    if not isinstance(x, Instruction) or x.guard is not None or x.opcode not in ("ld", "ldu", "st"):
        return None
    address = x.operands[0 if x.opcode == "st" else 1]
    spaces = [m for m in x.mods if m in ("global", "const", "shared", "shared::cta")]
    if not spaces or not isinstance(address, Addr) or not isinstance(address.base, Reg):
        return None
    lanes = next((int(m[1:]) for m in x.mods if m in ("v2", "v4", "v8")), 1)
    space = "shared" if spaces[0].startswith("shared") else "global"
    return Access(index, space, address.base, address.offset, max(WIDTH[x.type] // 8, 1) * lanes)


def _region(function: Function, first: int, end: int) -> Region | None:
    """The region that starts with the access at `first`, None if there is none worth it."""
    if access_at(function, first) is None:
        return None
    changed: set[str] = set()
    members: dict[tuple[str, Reg], list[Access]] = {}
    for index in range(first, end + 1):
        access = access_at(function, index)
        if access is not None and access.base.name not in changed:
            members.setdefault((access.space, access.base), []).append(access)
        item = (function.body or ())[index]
        if isinstance(item, Instruction):
            changed.update(definitions(item))
    groups = [g for g in (_group(accesses) for accesses in members.values()) if len(g.accesses) > 1]
    covered = {a.index for g in groups for a in g.accesses}
    if len(covered) - len(groups) < _LEAST_SAVED:
        return None
    return Region(first, max(covered), tuple(groups), frozenset(covered))


def _group(accesses: list[Access]) -> Group:
    """One check for these accesses, leaving out those that are far away or out of step with the alignment."""
    align = max(a.size for a in accesses)
    anchor = next(a for a in accesses if a.size == align).offset
    near = [a for a in accesses if (a.offset - anchor) % a.size == 0 and abs(a.offset - anchor) < MAX_SPAN // 2]
    low = min(a.offset for a in near)
    span = max(a.offset + a.size for a in near) - low
    return Group(near[0].space, near[0].base, low, span, align, (anchor - low) % align, tuple(near))
