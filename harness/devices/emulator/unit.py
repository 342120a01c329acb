"""What is to be translated for one kernel: the functions it can reach, which of them suspend or recurse, and where
their frames, shared variables and module variables lie. Pure analysis of the PTX; no IR is made here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from .builder import Unsupported
from .layout import THREAD_SIZE, aligned
from .liveness import branch_targets, live_after
from .ptx import Addr, Function, Group, Instruction, Label, Module, Operand, Reg, Sym, Variable, Vec

HOST_FUNCTIONS = frozenset(("vprintf", "__assertfail", "malloc", "free"))
"""Functions of the CUDA device runtime that Python serves while the thread waits."""
FUNCTION_BASE = 1 << 36
FUNCTION_STEP = 16
"""The n-th function of a module has the address FUNCTION_BASE + n * FUNCTION_STEP."""
RECURSION_BYTES = 1024
"""Local stack that recursion may use beyond the static need: CUDA's default stack limit per thread."""
_WARP_OPS = frozenset(("shfl", "vote", "match", "redux", "activemask", "bar", "barrier", "elect", "nanosleep"))


@dataclass(frozen=True)
class Options:
    """How to translate. `exact`: red zones between shared variables. `count`: count executed instructions. `host`: for
    the scheduler itself: real pointers, nothing checked."""

    exact: bool = True
    count: bool = False
    host: bool = False


@dataclass(frozen=True)
class CallSite:
    """A call instruction taken apart. `target` is a function name, or the register of an indirect call."""

    target: str | Reg
    results: tuple[str, ...]
    arguments: tuple[str, ...]
    prototype: str | None = None


@dataclass
class Frame:
    """Where a function keeps things: `slots` and `params` are offsets in the save frame, `locals` in the local."""

    save_size: int = 16
    local_size: int = 0
    slots: dict[str, int] = field(default_factory=dict)
    params: dict[str, int] = field(default_factory=dict)
    locals: dict[str, int] = field(default_factory=dict)
    live: dict[int, list[str]] = field(default_factory=dict)


@dataclass
class SharedLayout:
    """Shared variables of a kernel. `regions` are (name, offset, size) of the sized ones in address order; `dynamic` is
    the offset of dynamic shared memory, `real` the bytes a GPU would use for the sized ones. `checked_by_table`: more
    than one region, so a plain limit is not exact."""

    offsets: dict[str, int] = field(default_factory=dict)
    regions: list[tuple[str, int, int]] = field(default_factory=list)
    dynamic: int = 0
    dynamic_name: str | None = None
    real: int = 0
    checked_by_table: bool = False


def call_site(x: Instruction) -> CallSite:
    """The parts of a `call`. Raises Unsupported for a form that is not known."""
    rest = list(x.operands)
    results: tuple[str, ...] = ()
    if rest and isinstance(rest[0], Group):
        results = _names(rest.pop(0))
    target = rest.pop(0) if rest else None
    if not isinstance(target, (Sym, Reg)):
        raise Unsupported(x.name)
    arguments = _names(rest.pop(0)) if rest and isinstance(rest[0], Group) else ()
    prototype = rest[0].name if rest and isinstance(rest[0], Sym) else None
    return CallSite(target.name if isinstance(target, Sym) else target, results, arguments, prototype)


def _names(op: Operand) -> tuple[str, ...]:
    assert isinstance(op, Group)
    return tuple(item.name for item in op.items if isinstance(item, (Sym, Reg)))


def instructions(function: Function) -> Iterator[Instruction]:
    """The instructions of a body, labels left out."""
    return (item for item in function.body or () if isinstance(item, Instruction))


def symbols_of(op: Operand) -> Iterator[str]:
    """Names an operand mentions that are no registers."""
    if isinstance(op, Sym):
        yield op.name
    elif isinstance(op, Addr):
        yield from symbols_of(op.base)
    elif isinstance(op, (Vec, Group)):
        for item in op.items:
            yield from symbols_of(item)


class Unit:
    """One kernel (or, in host mode, the scheduler's entry function) with everything it reaches.

    `sites` numbers every instruction of the reachable functions, in order: the number a fault stores.
    """

    def __init__(self, module: Module, entry: str, options: Options = Options()) -> None:
        self.module, self.options, self.host = module, options, options.host
        self.entry = module.functions[entry]
        self.globals = {v.name: n for n, v in enumerate(self._globals())}
        self.addresses = {name: FUNCTION_BASE + n * FUNCTION_STEP for n, name in enumerate(module.functions)}
        self.taken = set() if self.host else self._address_taken()
        self.calls: dict[str, set[str]] = {}
        self.functions = self._reach(entry)
        self.suspending = self._suspending()
        self.recursive = {name for name in self.functions if name in self._reachable_from(name)}
        self.sites = [(f, x) for f in self.functions.values() for x in instructions(f)]
        self.first_site = self._first_sites()
        self.shared = self._shared()
        self.frames = {f.name: self._frame(f) for f in self.functions.values()}

    def _globals(self) -> Iterator[Variable]:
        return (v for v in self.module.variables.values() if v.space in ("global", "const"))

    def _address_taken(self) -> set[str]:
        functions = self.module.functions
        taken = {i.name for v in self._globals() for i in v.init if isinstance(i, Sym) and i.name in functions}
        for function in functions.values():
            for x in instructions(function):
                if x.opcode != "call":
                    taken |= {s for op in x.operands for s in symbols_of(op) if s in functions}
        return {name for name in taken if functions[name].body is not None and not functions[name].entry}

    def callees(self, function: Function) -> set[str]:
        """Names of the functions `function` may call; all whose address is taken for an indirect call."""
        found: set[str] = set()
        for x in instructions(function):
            if x.opcode == "call":
                target = call_site(x).target
                found |= self.taken if isinstance(target, Reg) else {target}
        return found

    def _reach(self, entry: str) -> dict[str, Function]:
        reached: dict[str, Function] = {}
        todo = [entry]
        while todo:
            function = self.module.functions.get(todo.pop())
            if function is None or function.body is None or function.name in reached:
                continue
            reached[function.name] = function
            self.calls[function.name] = self.callees(function)
            todo += sorted(self.calls[function.name])
        return reached

    def _reachable_from(self, name: str) -> set[str]:
        seen: set[str] = set()
        todo = list(self.calls.get(name, ()))
        while todo:
            callee = todo.pop()
            if callee not in seen:
                seen.add(callee)
                todo += self.calls.get(callee, ())
        return seen

    def _suspending(self) -> set[str]:
        """Functions that hand over to the scheduler, or call one that does."""
        if self.host:
            return set()
        found = {name for name, f in self.functions.items() if any(True for _ in self.points(f))}
        while True:
            more = {n for n in self.functions if n not in found and self.calls[n] & (found | HOST_FUNCTIONS)}
            if not more:
                return found
            found |= more

    def points(self, function: Function) -> Iterator[int]:
        """Body indices of instructions that themselves hand over to the scheduler (calls not counted)."""
        if self.host:
            return
        loops = loop_spans(function)
        for index, x in enumerate(function.body or ()):
            if isinstance(x, Instruction) and (x.opcode in _WARP_OPS or yields(x, index, loops)):
                yield index

    def _first_sites(self) -> dict[str, int]:
        first: dict[str, int] = {}
        for number, (function, _) in enumerate(self.sites):
            first.setdefault(function.name, number)
        return first

    def _shared(self) -> SharedLayout:
        """Sized variables first, then dynamic shared memory; apart from one another where the model is exact."""
        layout = SharedLayout()
        mentioned = {
            s for f in self.functions.values() for x in instructions(f) for o in x.operands for s in symbols_of(o)
        }
        own = [v for f in self.functions.values() for v in f.variables.values() if v.space == "shared"]
        used = [v for v in self.module.variables.values() if v.space == "shared" and v.name in mentioned] + own
        at = 0
        for v in (v for v in used if v.size):
            layout.real = aligned(layout.real, v.align) + v.size
            if self.options.exact:
                at = aligned(at, max(16, v.align))
                layout.regions.append((v.name, at, v.size))
                layout.offsets[v.name] = at
                at += v.size + max(1024, v.size)
            else:
                layout.offsets[v.name] = layout.real - v.size
                layout.regions.append((v.name, layout.real - v.size, v.size))
        unsized = [v for v in used if not v.size]
        layout.dynamic = aligned(at, 16) if self.options.exact else aligned(layout.real, 16)
        layout.dynamic_name = unsized[0].name if unsized else None
        layout.offsets.update({v.name: layout.dynamic for v in unsized})
        layout.checked_by_table = len(layout.regions) + bool(unsized) > 1
        return layout

    def _frame(self, function: Function) -> Frame:
        frame = Frame()
        suspends = function.name in self.suspending
        for v in function.variables.values():
            if v.space == "local":
                frame.local_size = aligned(frame.local_size, v.align)
                frame.locals[v.name] = frame.local_size
                frame.local_size += v.size
            elif v.space == "param" and suspends:
                frame.params[v.name] = frame.save_size
                frame.save_size = aligned(frame.save_size + v.size, 16)
        frame.local_size = aligned(frame.local_size, 16)
        if function.name in self.recursive:
            frame.local_size += 32  # what a call costs at least, so that endless recursion ends
        if suspends:
            frame.live = self._live(function)
            for register in sorted({r for live in frame.live.values() for r in live}):
                frame.slots[register] = frame.save_size
                frame.save_size += 8
            frame.save_size = aligned(frame.save_size, 16)
        return frame

    def call_suspends(self, x: Instruction) -> bool:
        """Whether a `call` may come back with the callee waiting."""
        target = call_site(x).target
        if isinstance(target, Reg):
            return bool(self.taken & self.suspending)
        return target in self.suspending or target in HOST_FUNCTIONS

    def _live(self, function: Function) -> dict[int, list[str]]:
        """Registers to save at each suspension point; a call is made again on resumption, so its target stays live."""
        body = function.body or ()
        calls = {n: x for n, x in enumerate(body) if isinstance(x, Instruction) and x.opcode == "call"}
        calls = {n: x for n, x in calls.items() if self.call_suspends(x)}
        live = live_after(function, {*self.points(function), *calls})
        for index, x in calls.items():
            target = call_site(x).target
            if isinstance(target, Reg) and target.name not in live[index]:
                live[index].append(target.name)
        return live

    def _depth(self, name: str, size_of: dict[str, int], below: frozenset[str] = frozenset()) -> int:
        deeper = [
            self._depth(c, size_of, below | {name})
            for c in self.calls[name]
            if c in size_of and c not in below | {name}
        ]
        return size_of[name] + max(deeper, default=0)

    def local_bytes(self, recursion_bytes: int = RECURSION_BYTES) -> int:
        """Local memory of a thread: the deepest chain of frames, and room for recursion where there is any."""
        sizes = {name: frame.local_size for name, frame in self.frames.items()}
        return self._depth(self.entry.name, sizes) + (recursion_bytes if self.recursive else 0)

    def state_bytes(self, recursion_bytes: int = RECURSION_BYTES) -> int:
        """Bytes of a Thread with its save frames."""
        sizes = {name: frame.save_size for name, frame in self.frames.items()}
        deepest = THREAD_SIZE + self._depth(self.entry.name, sizes)
        if self.recursive & self.suspending:  # one save frame per recursion; a frame costs at least 32 local bytes
            deepest += (recursion_bytes // 32 + 1) * max(sizes[n] for n in self.recursive)
        return aligned(deepest, 64)


def loop_spans(function: Function) -> list[tuple[int, int]]:
    """(first, last) body indices of the stretches that a backward branch repeats."""
    body = function.body or ()
    labels = {item.name: index for index, item in enumerate(body) if isinstance(item, Label)}
    spans = []
    for index, item in enumerate(body):
        if isinstance(item, Instruction):
            for target in branch_targets(function, item):
                if labels.get(target, index + 1) <= index:
                    spans.append((labels[target], index))
    return spans


def yields(x: Instruction, index: int, loops: Iterable[tuple[int, int]]) -> bool:
    """Whether a thread hands over after this access, so that spinning on memory lets others run: loads that may see
    another thread's store, compare-and-swap and exchange; other atomics whose result a loop may be waiting for."""
    if x.opcode == "ld":
        return any(m in ("volatile", "relaxed", "acquire") for m in x.mods)
    if x.opcode != "atom":
        return False
    return "cas" in x.mods or "exch" in x.mods or any(first <= index <= last for first, last in loops)


def planted(function: Function, line: int | None, index: int | None) -> Function:
    """`function` with one instruction made illegal: the first whose source position or inlining chain has `line`, or
    the `index`-th. Raises ValueError where there is none."""
    body = list(function.body or ())
    numbered = [(n, x) for n, x in enumerate(body) if isinstance(x, Instruction)]
    for count, (n, x) in enumerate(numbered):
        lines = []
        place = x.loc
        while place is not None:
            lines.append(place.line)
            place = place.parent
        if line in lines if line is not None else count == index:
            body[n] = replace(x, opcode="illegal", mods=(), operands=(), guard=None)
            return replace(function, body=tuple(body))
    raise ValueError(f"no instruction of {function.name} at line {line}" if line else f"no instruction {index}")
