"""Which registers are live at a suspension point: what a thread must save when it hands over, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .ptx import Addr, Function, Instruction, Label, Sym, registers_of

_NO_DESTINATION = frozenset(
    [
        "st",
        "red",
        "bra",
        "brx",
        "ret",
        "exit",
        "call",
        "membar",
        "fence",
        "cp",
        "prefetch",
        "prefetchu",
        "trap",
        "nanosleep",
        "brkpt",
        "discard",
        "applypriority",
        "pmevent",
        "stmatrix",
        "bar",
        "barrier",
    ]
)


def has_destination(x: Instruction) -> bool:
    """Whether the first operand is written."""
    if not x.operands or isinstance(x.operands[0], Addr):
        return False
    if x.opcode in ("bar", "barrier"):
        return "red" in x.mods
    return x.opcode not in _NO_DESTINATION


def definitions(x: Instruction) -> Iterator[str]:
    """Registers the instruction writes."""
    if has_destination(x):
        yield from registers_of(x.operands[0])


def uses(x: Instruction) -> Iterator[str]:
    """Registers the instruction reads. A guarded definition keeps the old value, so it reads what it writes."""
    for op in x.operands[1 if has_destination(x) else 0 :]:
        yield from registers_of(op)
    if x.guard is not None:
        yield x.guard.name
        yield from definitions(x)


@dataclass
class _Block:
    start: int
    end: int = 0
    successors: list[int] = field(default_factory=list)
    used: int = 0
    defined: int = 0
    live_in: int = 0
    live_out: int = 0


def live_after(function: Function, points: Iterable[int]) -> dict[int, list[str]]:
    """Body index of each suspension point -> names of the registers to save there: live after it and not set from the
    scheduler's answer. A load or atomic sets its destination before it gives way, so that one is saved.

    `points` are indices into `function.body`. A backward data flow over basic blocks with bit sets.
    """
    wanted = set(points)
    if not wanted:
        return {}
    return _Flow(function).at(wanted)


class _Flow:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.body = function.body or ()
        self.bits: dict[str, int] = {}
        self.masks = [self._masks(item) for item in self.body]
        self.blocks = self._cut()
        self._solve()

    def _mask(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            if self.function.width(name) is not None:
                mask |= 1 << self.bits.setdefault(name, len(self.bits))
        return mask

    def _masks(self, item: Instruction | Label) -> tuple[int, int]:
        """(defined, used) of one body item."""
        if isinstance(item, Label):
            return 0, 0
        return self._mask(definitions(item)), self._mask(uses(item))

    def _cut(self) -> list[_Block]:
        starts = {0}
        for index, item in enumerate(self.body):
            if isinstance(item, Label):
                starts.add(index)
            elif item.opcode in ("bra", "brx", "ret", "exit"):
                starts.add(index + 1)
        ordered = sorted(s for s in starts if s < len(self.body))
        number = {start: n for n, start in enumerate(ordered)}
        labels = {item.name: number[i] for i, item in enumerate(self.body) if isinstance(item, Label)}
        blocks = [_Block(start) for start in ordered]
        for n, block in enumerate(blocks):
            block.end = ordered[n + 1] if n + 1 < len(ordered) else len(self.body)
            block.successors = self._successors(block, labels, n + 1 if n + 1 < len(ordered) else None)
            for index in range(block.end - 1, block.start - 1, -1):
                defined, used = self.masks[index]
                block.used = used | block.used & ~defined
                block.defined |= defined
        return blocks

    def _successors(self, block: _Block, labels: dict[str, int], following: int | None) -> list[int]:
        last = self.body[block.end - 1]
        found: list[int] = []
        falls = True
        if isinstance(last, Instruction):
            falls = last.opcode not in ("bra", "brx", "ret", "exit") or last.guard is not None
            targets = branch_targets(self.function, last)
            found = [labels[t] for t in targets if t in labels]
        return [*found, following] if falls and following is not None else found

    def _solve(self) -> None:
        changed = True
        while changed:
            changed = False
            for block in reversed(self.blocks):
                out = 0
                for successor in block.successors:
                    out |= self.blocks[successor].live_in
                live = block.used | out & ~block.defined
                changed = changed or live != block.live_in
                block.live_in, block.live_out = live, out

    def at(self, wanted: set[int]) -> dict[int, list[str]]:
        names = list(self.bits)
        result: dict[int, list[str]] = {}
        for block in self.blocks:
            live = block.live_out
            for index in range(block.end - 1, block.start - 1, -1):
                defined, used = self.masks[index]
                if index in wanted:
                    item = self.body[index]
                    early = isinstance(item, Instruction) and (item.guard is not None or item.opcode in ("ld", "atom"))
                    kept = live if early else live & ~defined
                    result[index] = [name for n, name in enumerate(names) if kept >> n & 1]
                live = used | live & ~defined
        return result


def branch_targets(function: Function, x: Instruction) -> tuple[str, ...]:
    """Labels a branch may go to; empty for other instructions."""
    if x.opcode == "bra" and isinstance(x.operands[0], Sym):
        return (x.operands[0].name,)
    if x.opcode == "brx" and len(x.operands) == 2 and isinstance(x.operands[1], Sym):
        return function.tables.get(x.operands[1].name, ())
    return ()
