"""Emitters: warp operations, barriers, fences. Each fills in the Thread and waits; the scheduler answers."""

from __future__ import annotations

from .function import FunctionBuilder
from .layout import Status, Wait
from .ptx import WIDTH, Instruction, Operand, Pair

_SHUFFLES = {"up": Wait.SHFL_UP, "down": Wait.SHFL_DOWN, "bfly": Wait.SHFL_BFLY, "idx": Wait.SHFL_IDX}
_VOTES = {"ballot": Wait.BALLOT, "any": Wait.ANY, "all": Wait.ALL, "uni": Wait.UNI}
_REDUCTIONS = {
    ("add", "u32"): Wait.REDUX_ADD,
    ("add", "s32"): Wait.REDUX_ADD,
    ("min", "u32"): Wait.REDUX_MIN,
    ("min", "s32"): Wait.REDUX_SMIN,
    ("max", "u32"): Wait.REDUX_MAX,
    ("max", "s32"): Wait.REDUX_SMAX,
    ("and", "b32"): Wait.REDUX_AND,
    ("or", "b32"): Wait.REDUX_OR,
    ("xor", "b32"): Wait.REDUX_XOR,
}
_BARRIERS = {"popc": Wait.BAR_POPC, "and": Wait.BAR_AND, "or": Wait.BAR_OR}


def _answer(b: FunctionBuilder, dest: Operand, kind: str) -> None:
    """The scheduler's result into a register: a predicate, or 32 bits."""
    value = b.thread_load("result")
    if kind == "pred":
        b.store(dest, kind, b.emit(f"icmp ne i64 {value}, 0"))
    else:
        b.store(dest, "b32", b.emit(f"trunc i64 {value} to i32"))


def _answer_and_flag(b: FunctionBuilder, x: Instruction) -> None:
    """The scheduler's result as 32 bits, and its predicate where the instruction names one."""
    first = x.operands[0]
    dest, flag = (first.first, first.second) if isinstance(first, Pair) else (first, None)
    _answer(b, dest, "b32")
    if flag is not None:
        b.store(flag, "pred", b.emit(f"icmp ne i32 {b.thread_load('flag')}, 0"))


def _bit(b: FunctionBuilder, op: Operand) -> str:
    return b.emit(f"zext i1 {b.operand(op, 'pred')} to i32")


def shuffle(b: FunctionBuilder, x: Instruction) -> None:
    """shfl.sync"""
    if "sync" not in x.mods:
        b.unsupported(x)
    op = next((_SHUFFLES[m] for m in x.mods if m in _SHUFFLES), None)
    if op is None:
        b.unsupported(x)
    value = b.emit(f"zext i32 {b.operand(x.operands[1], 'b32')} to i64")
    by, clamp, mask = (b.operand(x.operands[n], "b32") for n in (2, 3, 4))
    b.wait(op, Status.WARP, a=value, b=by, c=clamp, mask=mask)
    _answer_and_flag(b, x)


def vote(b: FunctionBuilder, x: Instruction) -> None:
    """vote.sync"""
    op = next((_VOTES[m] for m in x.mods if m in _VOTES), None)
    if op is None or "sync" not in x.mods:
        b.unsupported(x)
    b.wait(op, Status.WARP, b=_bit(b, x.operands[1]), mask=b.operand(x.operands[2], "b32"))
    _answer(b, x.operands[0], "b32" if op is Wait.BALLOT else "pred")


def match(b: FunctionBuilder, x: Instruction) -> None:
    """match.sync"""
    value = b.operand(x.operands[1], x.type)
    if WIDTH[x.type] == 32:
        value = b.emit(f"zext i32 {value} to i64")
    op = Wait.MATCH_ALL if "all" in x.mods else Wait.MATCH_ANY
    b.wait(op, Status.WARP, a=value, mask=b.operand(x.operands[2], "b32"))
    _answer_and_flag(b, x)


def reduce(b: FunctionBuilder, x: Instruction) -> None:
    """redux.sync"""
    op = next((_REDUCTIONS[m, x.type] for m in x.mods if (m, x.type) in _REDUCTIONS), None)
    if op is None:
        b.unsupported(x)
    b.wait(op, Status.WARP, b=b.operand(x.operands[1], "b32"), mask=b.operand(x.operands[2], "b32"))
    _answer(b, x.operands[0], "b32")


def active_mask(b: FunctionBuilder, x: Instruction) -> None:
    """activemask"""
    b.wait(Wait.ACTIVEMASK, Status.WARP, mask=0)
    _answer(b, x.operands[0], "b32")


def elect(b: FunctionBuilder, x: Instruction) -> None:
    """elect.sync"""
    b.wait(Wait.ELECT, Status.WARP, mask=b.operand(x.operands[1], "b32"))
    _answer_and_flag(b, x)


def barrier(b: FunctionBuilder, x: Instruction) -> None:
    """bar, barrier (of a block or of a warp)"""
    if "cluster" in x.mods:
        b.unsupported(x)
    if "warp" in x.mods:
        b.wait(Wait.SYNCWARP, Status.WARP, mask=b.operand(x.operands[0], "b32"))
        return
    operands = list(x.operands)
    dest = operands.pop(0) if "red" in x.mods else None
    vote_of = operands.pop() if dest is not None else None
    number = b.emit(f"and i32 {b.operand(operands[0], 'b32')}, 15")
    count = b.operand(operands[1], "b32") if len(operands) > 1 else "0"
    if "arrive" in x.mods:
        b.wait(Wait.BAR_ARRIVE, Status.BARRIER, mask=number, b=0, c=count)
    elif dest is None or vote_of is None:
        b.wait(Wait.BAR_SYNC, Status.BARRIER, mask=number, b=0, c=count)
    else:
        op = next(_BARRIERS[m] for m in x.mods if m in _BARRIERS)
        b.wait(op, Status.BARRIER, mask=number, b=_bit(b, vote_of), c=count)
        _answer(b, dest, "b32" if op is Wait.BAR_POPC else "pred")


def fence(b: FunctionBuilder, x: Instruction) -> None:
    """membar, fence"""
    if any(m in ("proxy", "mbarrier_init") or m.startswith("sync_restrict") for m in x.mods):
        b.unsupported(x)
    b.line("fence seq_cst")


def sleep(b: FunctionBuilder, x: Instruction) -> None:
    """nanosleep: others run meanwhile"""
    b.give_way()


EMITTERS = {
    "shfl": shuffle,
    "vote": vote,
    "match": match,
    "redux": reduce,
    "activemask": active_mask,
    "elect": elect,
    "bar": barrier,
    "barrier": barrier,
    "membar": fence,
    "fence": fence,
    "nanosleep": sleep,
}
