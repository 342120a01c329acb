"""IR text of the helper functions that translated code calls: faults, generic addresses, fuel, the clock, cp.async."""

from __future__ import annotations

from collections.abc import Iterable

from .layout import (
    CONTEXT,
    FUEL_CHUNK,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    QUEUE_ENTRIES,
    QUEUE_ENTRY,
    SHARED_WINDOW,
    THREAD,
    WINDOW_SIZE,
    Code,
)

_LIBC = "declare i32 @clock_gettime(i32, ptr)\n"


def _at(name: str, base: str, offset: int) -> str:
    return f"  %{name} = getelementptr i8, ptr %{base}, i64 {offset}\n"


def _context(name: str, kind: str) -> str:
    """Load a Context field into %name."""
    return _at(f"{name}.p", "ctx", CONTEXT[name]) + f"  %{name} = load {kind}, ptr %{name}.p\n"


_FAULT = (
    "define internal void @emu.fault(ptr %ctx, i32 %code, i32 %site, i64 %address, i32 %size) noinline cold {\n"
    + "".join(
        _at(f"{field}.p", "ctx", CONTEXT[f"fault_{field}"]) + f"  store {kind} %{field}, ptr %{field}.p\n"
        for field, kind in (("code", "i32"), ("site", "i32"), ("address", "i64"), ("size", "i32"))
    )
    + "  ret void\n}\n"
)

_NOW = (
    _LIBC
    + """define internal i64 @emu.now() noinline {
  %at = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 1, ptr %at)
  %s = load i64, ptr %at
  %np = getelementptr i64, ptr %at, i64 1
  %n = load i64, ptr %np
  %ns = mul i64 %s, 1000000000
  %t = add i64 %ns, %n
  ret i64 %t
}
"""
)

_REFUEL = (
    "define internal i64 @emu.refuel(ptr %ctx) noinline cold {\n"
    + _context("stop", "ptr")
    + _context("deadline_ns", "i64")
    + _context("fuel", "i64")
    + f"""  %stopped = load volatile i32, ptr %stop
  %now = call i64 @emu.now()
  %late = icmp ugt i64 %now, %deadline_ns
  %less = sub i64 %fuel, 1
  store i64 %less, ptr %fuel.p
  %spent = icmp sle i64 %less, 0
  %told = icmp ne i32 %stopped, 0
  %a = or i1 %late, %spent
  %b = or i1 %a, %told
  %r = select i1 %b, i64 0, i64 {FUEL_CHUNK}
  ret i64 %r
}}
"""
)

_GENERIC = (
    "define internal ptr @emu.generic(ptr %ctx, i64 %address, i64 %size, ptr %local, i64 %top) {\n"
    "  %less = sub i64 %size, 1\n"
    "  %low = and i64 %address, %less\n"
    "  %odd = icmp ne i64 %low, 0\n"
    "  br i1 %odd, label %bad, label %aligned\n"
    "aligned:\n"
    + _context("base", "i64")
    + _context("granules", "i64")
    + """  %offset = sub i64 %address, %base
  %granule = lshr i64 %offset, 9
  %inside = icmp ult i64 %granule, %granules
  br i1 %inside, label %device, label %windows
device:
"""
    + _context("valid", "ptr")
    + """  %entry = getelementptr i16, ptr %valid, i64 %granule
  %bytes16 = load i16, ptr %entry
  %bytes = zext i16 %bytes16 to i64
  %within = and i64 %offset, 511
  %end = add i64 %within, %size
  %fits = icmp ule i64 %end, %bytes
"""
    + _context("arena", "ptr")
    + f"""  %device.p = getelementptr i8, ptr %arena, i64 %offset
  %device.r = select i1 %fits, ptr %device.p, ptr null
  ret ptr %device.r
windows:
  %so = sub i64 %address, {SHARED_WINDOW}
  %is.shared = icmp ult i64 %so, {WINDOW_SIZE}
  br i1 %is.shared, label %shared.w, label %not.shared
shared.w:
"""
    + _context("shared_size", "i32")
    + """  %limit = zext i32 %shared_size to i64
  %s.in = icmp ult i64 %so, %limit
  br i1 %s.in, label %shared.t, label %bad
shared.t:
"""
    + _context("shared_valid", "ptr")
    + """  %s.i = lshr i64 %so, 4
  %s.e = getelementptr i16, ptr %shared_valid, i64 %s.i
  %s.v16 = load i16, ptr %s.e
  %s.v = zext i16 %s.v16 to i64
  %s.low = and i64 %so, 15
  %s.end = add i64 %s.low, %size
  %s.fits = icmp ule i64 %s.end, %s.v
"""
    + _context("shared", "ptr")
    + f"""  %s.p = getelementptr i8, ptr %shared, i64 %so
  %s.r = select i1 %s.fits, ptr %s.p, ptr null
  ret ptr %s.r
not.shared:
  %lo = sub i64 %address, {LOCAL_WINDOW}
  %is.local = icmp ult i64 %lo, {WINDOW_SIZE}
  br i1 %is.local, label %local.w, label %not.local
local.w:
  %l.end = add i64 %lo, %size
  %l.fits = icmp ule i64 %l.end, %top
  %l.p = getelementptr i8, ptr %local, i64 %lo
  %l.r = select i1 %l.fits, ptr %l.p, ptr null
  ret ptr %l.r
not.local:
  %po = sub i64 %address, {PARAM_WINDOW}
"""
    + _context("params_size", "i32")
    + """  %p.limit = zext i32 %params_size to i64
  %p.end = add i64 %po, %size
  %p.fits = icmp ule i64 %p.end, %p.limit
  %p.in = icmp ult i64 %po, %p.limit
  %p.ok = and i1 %p.fits, %p.in
"""
    + _context("params", "ptr")
    + """  %p.p = getelementptr i8, ptr %params, i64 %po
  %p.r = select i1 %p.ok, ptr %p.p, ptr null
  ret ptr %p.r
bad:
  ret ptr null
}
"""
)

_FIRST_ENTRY = f"""  %slot = and i32 %first, {QUEUE_ENTRIES - 1}
  %slot64 = zext i32 %slot to i64
  %byte = mul i64 %slot64, {QUEUE_ENTRY}
  %start = sub i64 %stride, {QUEUE_ENTRIES * QUEUE_ENTRY}
  %offset = add i64 %start, %byte
  %entry = getelementptr i8, ptr %st, i64 %offset
"""
"""Where the oldest entry of a thread's queue of asynchronous copies lies: behind its Thread, in a ring."""

_COPY = (
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    "define internal void @emu.copy(ptr %st, i64 %stride, i32 %upto) noinline {\n"
    + _at("first.p", "st", THREAD["queue_first"])
    + """  br label %loop
loop:
  %first = load i32, ptr %first.p
  %done = icmp eq i32 %first, %upto
  br i1 %done, label %out, label %one
one:
"""
    + _FIRST_ENTRY
    + "  %target = load ptr, ptr %entry\n"
    + _at("source.p", "entry", 8)
    + "  %source = load ptr, ptr %source.p\n"
    + _at("size.p", "entry", 16)
    + "  %size = load i32, ptr %size.p\n"
    + _at("count.p", "entry", 20)
    + """  %count = load i32, ptr %count.p
  %size64 = zext i32 %size to i64
  %over = icmp ugt i32 %count, %size
  %some = select i1 %over, i32 %size, i32 %count
  %count64 = zext i32 %some to i64
  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %size64, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %count64, i1 false)
  %next = add i32 %first, 1
  store i32 %next, ptr %first.p
  br label %loop
out:
  ret void
}
"""
)

_DRAIN = (
    "define internal void @emu.drain(ptr %st, i64 %stride, i32 %limit) noinline {\n"
    + _at("first.p", "st", THREAD["queue_first"])
    + _at("next.p", "st", THREAD["queue_next"])
    + """  br label %loop
loop:
  %first = load i32, ptr %first.p
  %next = load i32, ptr %next.p
  %empty = icmp eq i32 %first, %next
  br i1 %empty, label %out, label %look
look:
"""
    + _FIRST_ENTRY
    + _at("group.p", "entry", 24)
    + """  %group = load i32, ptr %group.p
  %old = icmp ult i32 %group, %limit
  br i1 %old, label %do, label %out
do:
  %upto = add i32 %first, 1
  call void @emu.copy(ptr %st, i64 %stride, i32 %upto)
  br label %loop
out:
  ret void
}
"""
)


_EACH_ACCESS = """(ptr %ctx, i64 %address, i64 %mask, ptr %table, i32 %n) noinline cold {
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %i.next, %next ]
  %row = mul i32 %i, 3
  %offset.p = getelementptr i32, ptr %table, i32 %row
  %offset32 = load i32, ptr %offset.p
  %offset = sext i32 %offset32 to i64
  %sum = add i64 %address, %offset
  %at = and i64 %sum, %mask
  %size.p = getelementptr i32, ptr %offset.p, i32 1
  %size = load i32, ptr %size.p
  %size64 = zext i32 %size to i64
  %less = sub i64 %size64, 1
  %rest = and i64 %at, %less
  %odd = icmp ne i64 %rest, 0
"""
_FAULT_OF_THE_FIRST = f"""  %valid = zext i16 %valid16 to i64
  %end = add i64 %low, %size64
  %over = icmp ugt i64 %end, %valid
  %bad = or i1 %over, %odd
  br i1 %bad, label %found, label %next
next:
  %i.next = add i32 %i, 1
  %done = icmp eq i32 %i.next, %n
  br i1 %done, label %none, label %loop
found:
  %site.p = getelementptr i32, ptr %offset.p, i32 2
  %site = load i32, ptr %site.p
  call void @emu.fault(ptr %ctx, i32 {int(Code.ACCESS)}, i32 %site, i64 %at, i32 %size)
  ret i1 true
none:
  ret i1 false
}}
"""


def _find(space: str, check: str) -> str:
    """emu.find.*: the first of some accesses that is wrong becomes the fault; i1 whether there was one. The table has
    three numbers for each: offset from the address, size, instruction number. `mask` keeps the bits of the address
    register: what is in a 32-bit one wraps at 32 bits. `check` finds, for the access at %at, how many bytes of its
    granule are valid (%valid16) and where in the granule it begins (%low)."""
    return f"define internal i1 @emu.find.{space}" + _EACH_ACCESS + check + _FAULT_OF_THE_FIRST


_FIND_DEVICE = _find(
    "device",
    _context("base", "i64")
    + "  %from = sub i64 %at, %base\n  %granule = lshr i64 %from, 9\n"
    + _context("granules", "i64")
    + "  %index = call i64 @llvm.umin.i64(i64 %granule, i64 %granules)\n"
    + _context("valid", "ptr").replace("%valid ", "%table.v ").replace("%valid.p", "%table.p")
    + "  %entry = getelementptr i16, ptr %table.v, i64 %index\n"
    + "  %valid16 = load i16, ptr %entry\n  %low = and i64 %from, 511\n",
)
_FIND_SHARED = _find(
    "shared",
    _context("shared_size", "i32")
    + "  %limit = zext i32 %shared_size to i64\n  %last = add i64 %limit, 16\n"
    + "  %index.b = call i64 @llvm.umin.i64(i64 %at, i64 %last)\n  %index = lshr i64 %index.b, 4\n"
    + _context("shared_valid", "ptr")
    + "  %entry = getelementptr i16, ptr %shared_valid, i64 %index\n"
    + "  %valid16 = load i16, ptr %entry\n  %low = and i64 %at, 15\n",
)
_UMIN = "declare i64 @llvm.umin.i64(i64, i64)\n"

HELPERS = {
    "emu.fault": _FAULT,
    "emu.now": _NOW,
    "emu.refuel": _REFUEL,
    "emu.generic": _GENERIC,
    "emu.copy": _COPY,
    "emu.drain": _DRAIN,
    "emu.find.device": _UMIN + _FIND_DEVICE,
    "emu.find.shared": _UMIN + _FIND_SHARED,
}
_NEEDS = {
    "emu.refuel": ("emu.now",),
    "emu.drain": ("emu.copy",),
    "emu.find.device": ("emu.fault",),
    "emu.find.shared": ("emu.fault",),
}


def with_dependencies(names: Iterable[str]) -> set[str]:
    """`names` and the helpers they call."""
    found = set(names)
    for name in list(found):
        found |= set(_NEEDS.get(name, ()))
    return found
