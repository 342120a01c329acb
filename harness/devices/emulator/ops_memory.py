"""Emitters: moves, loads, stores, address conversions, asynchronous copies."""

from __future__ import annotations

from .function import INVARIANT, FunctionBuilder
from .layout import QUEUE_ENTRIES, QUEUE_ENTRY, WINDOW_SIZE, WINDOWS
from .ptx import WIDTH, Addr, Imm, Instruction, Operand, Reg, Vec
from .unit import yields as may_yield

_SPACES = ("global", "shared", "local", "param", "const")


def space_of(b: FunctionBuilder, x: Instruction) -> str:
    """The state space an instruction names, "generic" for none."""
    for mod in x.mods:
        stem, _, detail = mod.partition("::")
        if stem in _SPACES:
            if detail == "cluster":
                b.unsupported(x)
            return stem
    return "generic"


def lanes_of(x: Instruction) -> int:
    """Elements of a vector access."""
    return next((int(m[1:]) for m in x.mods if m in ("v2", "v4", "v8")), 1)


def address_of(b: FunctionBuilder, x: Instruction, position: int) -> Addr:
    """The address operand at `position`."""
    op = x.operands[position]
    if not isinstance(op, Addr):
        b.unsupported(x)
    return op


def _elements(op: Operand) -> tuple[Operand, ...]:
    return op.items if isinstance(op, Vec) else (op,)


def _element_pointer(b: FunctionBuilder, base: str, offset: int) -> str:
    return b.emit(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base


def _is_strong(x: Instruction) -> bool:
    return any(m in ("volatile", "relaxed", "acquire", "release", "mmio") for m in x.mods)


def load(b: FunctionBuilder, x: Instruction) -> None:
    """ld, ldu"""
    kind, lanes, space = x.type, lanes_of(x), space_of(b, x)
    size = max(WIDTH[kind] // 8, 1)
    base = b.access(x, address_of(b, x, 1), space, size * lanes)
    strong = " volatile" if _is_strong(x) else ""
    tail = INVARIANT if b.is_kernel_parameter(x.operands[1]) else ""
    for n, element in enumerate(_elements(x.operands[0])):
        pointer = _element_pointer(b, base, n * size)
        value = b.emit(f"load{strong} i{8 * size}, ptr {pointer}, align {size}{tail}")
        b.store(element, kind if kind[0] in "su" else f"b{8 * size}", value)
    if not b.host and may_yield(x, b.index, ()):
        b.give_way()


def store(b: FunctionBuilder, x: Instruction) -> None:
    """st"""
    kind, lanes, space = x.type, lanes_of(x), space_of(b, x)
    size = max(WIDTH[kind] // 8, 1)
    base = b.access(x, address_of(b, x, 0), space, size * lanes)
    strong = " volatile" if _is_strong(x) else ""
    for n, element in enumerate(_elements(x.operands[1])):
        pointer = _element_pointer(b, base, n * size)
        value = b.operand(element, f"b{8 * size}" if kind[0] != "f" else kind)
        b.line(f"store{strong} i{8 * size} {value}, ptr {pointer}, align {size}")


def move(b: FunctionBuilder, x: Instruction) -> None:
    """mov, with packing and unpacking"""
    kind = x.type
    dest, source = x.operands[0], x.operands[1]
    bits = WIDTH[kind]
    if isinstance(dest, Vec):
        part = bits // len(dest.items)
        value = b.operand(source, kind)
        for n, element in enumerate(dest.items):
            piece = b.emit(f"lshr i{bits} {value}, {n * part}") if n else value
            b.store(element, f"b{part}", b.emit(f"trunc i{bits} {piece} to i{part}"))
    elif isinstance(source, Vec):
        b.store(dest, kind, pack(b, [b.operand(e, f"b{bits // len(source.items)}") for e in source.items], bits))
    else:
        read = b.raw if isinstance(dest, Reg) and dest.name in b.loose else b.operand
        b.store(dest, kind, read(source, kind))


def pack(b: FunctionBuilder, parts: list[str], bits: int) -> str:
    """Equal parts, lowest first, as one `i{bits}`."""
    width = bits // len(parts)
    total = b.emit(f"zext i{width} {parts[0]} to i{bits}")
    for n, part in enumerate(parts[1:], 1):
        wide = b.emit(f"shl i{bits} {b.emit(f'zext i{width} {part} to i{bits}')}, {n * width}")
        total = b.emit(f"or i{bits} {total}, {wide}")
    return total


def convert_address(b: FunctionBuilder, x: Instruction) -> None:
    """cvta, cvta.to"""
    kind = x.type
    value = b.operand(x.operands[1], kind)
    window = 0 if b.host else WINDOWS.get(space_of(b, x), 0)
    if window:
        value = b.emit(f"{'sub' if x.mods[0] == 'to' else 'add'} i{WIDTH[kind]} {value}, {window}")
    b.store(x.operands[0], kind, value)


def is_in_space(b: FunctionBuilder, x: Instruction) -> None:
    """isspacep"""
    space = space_of(b, x)
    address = b.operand(x.operands[1], "b64")
    if space in WINDOWS:
        offset = b.emit(f"sub i64 {address}, {WINDOWS[space]}")
        answer = b.emit(f"icmp ult i64 {offset}, {WINDOW_SIZE}")
    elif space == "global":
        offset = b.emit(f"sub i64 {address}, {WINDOWS['shared']}")
        answer = b.emit(f"icmp uge i64 {offset}, {3 * WINDOW_SIZE}")
    else:
        b.unsupported(x)
    b.store(x.operands[0], "pred", answer)


def nothing(b: FunctionBuilder, x: Instruction) -> None:
    """Hints to caches and profilers: prefetch, discard, applypriority, pmevent."""


def create_policy(b: FunctionBuilder, x: Instruction) -> None:
    """createpolicy: an opaque cache hint"""
    b.store(x.operands[0], "b64", "0")


def copy_async(b: FunctionBuilder, x: Instruction) -> None:
    """cp.async and its groups. A copy is checked when it is issued and done only when it is waited for, so that a
    missing wait shows."""
    if x.mods[:1] != ("async",) or "bulk" in x.mods or "mbarrier" in x.mods:
        b.unsupported(x)
    if "commit_group" in x.mods:
        group = b.emit(f"add i32 {b.thread_load('queue_group')}, 1")
        b.thread_store("queue_group", group)
    elif "wait_group" in x.mods or "wait_all" in x.mods:
        _wait_copies(b, x)
    else:
        _issue_copy(b, x)


def _issue_copy(b: FunctionBuilder, x: Instruction) -> None:
    operands = list(x.operands)
    if any("cache_hint" in m for m in x.mods):
        operands.pop()
    size = operands[2]
    if not isinstance(size, Imm):
        b.unsupported(x)
    count = b.operand(operands[3], "b32") if len(operands) > 3 else str(size.value)
    if len(operands) > 3 and isinstance(operands[3], Reg) and b.width(operands[3].name) == 1:
        ignored = b.operand(operands[3], "pred")
        count = b.emit(f"select i1 {ignored}, i32 0, i32 {size.value}")
    target = b.access(x, address_of(b, x, 0), "shared", size.value)
    source = b.access(x, address_of(b, x, 1), "global", size.value)
    number, first = b.thread_load("queue_next"), b.thread_load("queue_first")
    full = b.emit(f"icmp uge i32 {b.emit(f'sub i32 {number}, {first}')}, {QUEUE_ENTRIES}")
    drain, put = b.split(full, "queue")
    b.label(drain)
    b.ended = False
    b.need("emu.copy")  # no room: the oldest copy is done early
    b.line(f"call void @emu.copy(ptr %st, i64 {b.context('stride')}, i32 {b.emit(f'add i32 {first}, 1')})")
    b.begin(put)
    entry = queue_entry(b, number)
    group = b.thread_load("queue_group")
    fields = [("ptr", target), ("ptr", source), ("i32", str(size.value)), ("i32", count), ("i32", group)]
    at = 0
    for kind, value in fields:
        b.line(f"store {kind} {value}, ptr {_element_pointer(b, entry, at)}")
        at += 8 if kind == "ptr" else 4
    b.thread_store("queue_next", b.emit(f"add i32 {number}, 1"))


def queue_entry(b: FunctionBuilder, number: str) -> str:
    """Host pointer of the queue entry `number` (an i32 that counts up): the queue ends the Thread."""
    slot = b.emit(f"zext i32 {b.emit(f'and i32 {number}, {QUEUE_ENTRIES - 1}')} to i64")
    start = b.emit(f"sub i64 {b.context('stride')}, {QUEUE_ENTRIES * QUEUE_ENTRY}")
    offset = b.emit(f"add i64 {start}, {b.emit(f'mul i64 {slot}, {QUEUE_ENTRY}')}")
    return b.emit(f"getelementptr i8, ptr %st, i64 {offset}")


def _wait_copies(b: FunctionBuilder, x: Instruction) -> None:
    """Do the copies of all groups but the latest N; wait_all: every copy, committed or not."""
    b.need("emu.drain")
    if "wait_all" in x.mods:
        limit = "-1"
    else:
        keep = x.operands[0]
        if not isinstance(keep, Imm):
            b.unsupported(x)
        limit = b.emit(f"call i32 @llvm.usub.sat.i32(i32 {b.thread_load('queue_group')}, i32 {keep.value})")
        b.declared.add("declare i32 @llvm.usub.sat.i32(i32, i32)")
    b.line(f"call void @emu.drain(ptr %st, i64 {b.context('stride')}, i32 {limit})")


EMITTERS = {
    "ld": load,
    "ldu": load,
    "st": store,
    "mov": move,
    "cvta": convert_address,
    "isspacep": is_in_space,
    "cp": copy_async,
    "prefetch": nothing,
    "prefetchu": nothing,
    "discard": nothing,
    "applypriority": nothing,
    "pmevent": nothing,
    "createpolicy": create_policy,
}
