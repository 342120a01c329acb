"""Special registers: each maps to a maker of (IR value, bits)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .function import FunctionBuilder

Maker = Callable[["FunctionBuilder"], "tuple[str, int]"]

MULTIPROCESSORS = 108


def _context(field: str) -> Maker:
    return lambda b: (b.context(field), 32)


def _thread(field: str) -> Maker:
    return lambda b: (b.thread(field), 32)


def _constant(value: int, bits: int = 32) -> Maker:
    return lambda b: (str(value), bits)


def _lane(b: FunctionBuilder) -> tuple[str, int]:
    return b.emit(f"and i32 {b.thread('linear')}, 31"), 32


def _warp(b: FunctionBuilder) -> tuple[str, int]:
    return b.emit(f"lshr i32 {b.thread('linear')}, 5"), 32


def _warps(b: FunctionBuilder) -> tuple[str, int]:
    rounded = b.emit(f"add i32 {b.context('threads')}, 31")
    return b.emit(f"lshr i32 {rounded}, 5"), 32


def _mask(comparison: str) -> Maker:
    """%lanemask_*: the lanes at, before or after this one."""

    def make(b: FunctionBuilder) -> tuple[str, int]:
        bit = b.emit(f"shl i32 1, {_lane(b)[0]}")
        below = b.emit(f"sub i32 {bit}, 1")
        if comparison == "lt":
            return below, 32
        upto = b.emit(f"or i32 {bit}, {below}")
        if comparison == "le":
            return upto, 32
        if comparison == "eq":
            return bit, 32
        return b.emit(f"xor i32 {upto if comparison == 'gt' else below}, -1"), 32

    return make


def _clock(bits: int, shift: int = 0) -> Maker:
    """Time in nanoseconds: %clock counts at 1 GHz here."""

    def make(b: FunctionBuilder) -> tuple[str, int]:
        now = b.call("emu.now", "i64", [])
        now = b.emit(f"lshr i64 {now}, {shift}") if shift else now
        return (now, 64) if bits == 64 else (b.emit(f"trunc i64 {now} to i32"), 32)

    return make


SPECIAL: dict[str, Maker] = {
    **{f"%tid.{a}": _thread(f"tid_{a}") for a in "xyz"},
    **{f"%ntid.{a}": _context(f"ntid_{a}") for a in "xyz"},
    **{f"%ctaid.{a}": _context(f"ctaid_{a}") for a in "xyz"},
    **{f"%nctaid.{a}": _context(f"nctaid_{a}") for a in "xyz"},
    **{f"%lanemask_{c}": _mask(c) for c in ("eq", "lt", "le", "gt", "ge")},
    "%laneid": _lane,
    "%warpid": _warp,
    "%nwarpid": _warps,
    "%smid": _context("sm"),
    "%nsmid": _constant(MULTIPROCESSORS),
    "%gridid": _constant(1, 64),
    "%dynamic_smem_size": _context("dynamic_shared"),
    "%total_smem_size": _context("total_shared"),
    "%clock": _clock(32),
    "%clock_hi": _clock(32, 32),
    "%clock64": _clock(64),
    "%globaltimer": _clock(64),
    "%globaltimer_lo": _clock(32),
    "%globaltimer_hi": _clock(32, 32),
}
