"""Where things lie in memory that Python, the translated kernels and the scheduler (runtime.cu) share, and their codes.

Two structures: one `Thread` per CUDA thread of a block, one `Context` per worker (a CPU thread that runs blocks). The
tables below are the only description of them; runtime.cu includes the header that `c_header` makes, a test holds the
two together.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum

_SIZES = {"u32": 4, "i64": 8, "u64": 8, "ptr": 8}
IR_TYPE = {"u32": "i32", "i64": "i64", "u64": "i64", "ptr": "ptr"}
_C_TYPE = {"u32": "unsigned", "i64": "long long", "u64": "unsigned long long", "ptr": "char*"}

Fields = Sequence[tuple[str, str]]

THREAD_FIELDS: Fields = (
    ("status", "u32"),  # a Status
    ("op", "u32"),  # what a waiting thread waits for: a Wait
    ("mask", "u32"),  # member mask of a warp operation, number of a barrier
    ("site", "u32"),  # instruction number where it waits
    ("a", "u64"),  # operands of the warp operation
    ("b", "u32"),
    ("c", "u32"),
    ("result", "u64"),  # what the scheduler or the host answers
    ("flag", "u32"),
    ("tid_x", "u32"),
    ("tid_y", "u32"),
    ("tid_z", "u32"),
    ("linear", "u32"),  # index in the block
    ("queue_first", "u32"),  # cp.async: oldest copy not yet done, next free entry (both count up)
    ("queue_next", "u32"),
    ("queue_group", "u32"),  # cp.async groups committed
    ("arg0", "u64"),  # arguments of a host call
    ("arg1", "u64"),
    ("arg2", "u64"),
    ("arg3", "u64"),
)

CONTEXT_FIELDS: Fields = (
    ("params", "ptr"),  # the launch's parameter bytes
    ("shared", "ptr"),  # this block's shared memory
    ("valid", "ptr"),  # u16 per granule of device memory: accessible bytes from its start on
    ("arena", "ptr"),  # host address of device memory
    ("base", "u64"),  # device address of device memory
    ("granules", "u64"),
    ("globals", "ptr"),  # u64 per module variable: its device address
    ("shared_valid", "ptr"),  # u16 per 16 bytes of shared memory: accessible bytes from there on
    ("local", "ptr"),  # local memory of thread 0
    ("local_stride", "u64"),
    ("threads_at", "ptr"),  # Thread 0
    ("stride", "u64"),  # from one Thread to the next
    ("shared_size", "u32"),  # bytes of shared memory addresses
    ("local_size", "u32"),
    ("ntid_x", "u32"),
    ("ntid_y", "u32"),
    ("ntid_z", "u32"),
    ("ctaid_x", "u32"),
    ("ctaid_y", "u32"),
    ("ctaid_z", "u32"),
    ("nctaid_x", "u32"),
    ("nctaid_y", "u32"),
    ("nctaid_z", "u32"),
    ("params_size", "u32"),
    ("dynamic_shared", "u32"),
    ("total_shared", "u32"),
    ("fault_code", "u32"),
    ("fault_site", "u32"),
    ("fault_size", "u32"),
    ("fault_thread", "u32"),
    ("fault_address", "u64"),
    ("instructions", "u64"),  # counted where the kernel was translated to count
    ("kernel", "ptr"),  # code of the kernel
    ("next_block", "u64"),  # linear index of the block to run, and where to stop
    ("end_block", "u64"),
    ("grid_blocks", "u64"),
    ("block_multiplier", "u64"),  # order of blocks: (index * multiplier + offset) % grid_blocks
    ("block_offset", "u64"),
    ("deadline_ns", "u64"),  # monotonic clock
    ("stop", "ptr"),  # u32 other workers set when a fault was found
    ("fuel", "i64"),  # loop turns and yields left to this worker, in units of FUEL_CHUNK turns
    ("threads", "u32"),  # in a block
    ("inside", "u32"),  # 1: next_block is half done (after a host call or a spin)
    ("seed", "u32"),  # 0: lanes and warps in order
    ("spins", "u32"),  # passes over the block in a row in which nothing but yields happened
    ("spin_limit", "u32"),  # hand the block back (Outcome.SPINNING) after this many
    ("poison", "u32"),  # 1: fill shared memory with a pattern at the start of a block
    ("sm", "u32"),
    ("pad", "u32"),
    ("arrived", "u64"),  # 16 barriers of 32 bits each follow: bar.arrive counts
    *((f"arrived{i}", "u64") for i in range(1, 8)),
)


def _offsets(fields: Fields) -> tuple[dict[str, int], int]:
    at, offsets = 0, {}
    for name, kind in fields:
        size = _SIZES[kind]
        at = (at + size - 1) // size * size
        offsets[name] = at
        at += size
    return offsets, (at + 7) // 8 * 8


THREAD, _thread_size = _offsets(THREAD_FIELDS)
CONTEXT, CONTEXT_SIZE = _offsets(CONTEXT_FIELDS)
KINDS: Mapping[str, Mapping[str, str]] = {"st": dict(THREAD_FIELDS), "ctx": dict(CONTEXT_FIELDS)}
THREAD_SIZE = 128
"""Bytes of a Thread's fixed part; the kernel's save frame follows (its first 8 bytes are the resume point)."""
assert _thread_size <= THREAD_SIZE


class Status(IntEnum):
    """What a translated function returns and what a Thread is doing. RETURNED never reaches the scheduler."""

    RETURNED = 0
    BARRIER = 1
    WARP = 2
    EXITED = 3
    FAULT = 4
    HOST = 5
    YIELD = 6


class Outcome(IntEnum):
    """What the scheduler returns to Python."""

    DONE = 0
    FAULT = 4
    HOST = 5
    DEADLOCK = 7
    TIMEOUT = 8
    SPINNING = 9
    STOPPED = 10


class Wait(IntEnum):
    """What a waiting Thread waits for (`op`)."""

    SYNCWARP = 3
    SHFL_UP = 16
    SHFL_DOWN = 17
    SHFL_BFLY = 18
    SHFL_IDX = 19
    BALLOT = 32
    ANY = 33
    ALL = 34
    UNI = 35
    ACTIVEMASK = 48
    REDUX_ADD = 64
    REDUX_MIN = 65
    REDUX_MAX = 66
    REDUX_AND = 67
    REDUX_OR = 68
    REDUX_XOR = 69
    REDUX_SMIN = 73
    REDUX_SMAX = 74
    MATCH_ANY = 80
    MATCH_ALL = 81
    ELECT = 82
    BAR_SYNC = 96
    BAR_ARRIVE = 97
    BAR_POPC = 98
    BAR_AND = 99
    BAR_OR = 100
    PRINTF = 112
    ASSERT = 113
    MALLOC = 114
    FREE = 115


class Code(IntEnum):
    """Why a kernel stopped (`fault_code`)."""

    ACCESS = 1
    ILLEGAL = 2
    TRAP = 3
    BAD_CALL = 4
    STACK = 5
    HANG = 6
    BAD_BRANCH = 7
    ASSERT = 8


SHARED_WINDOW = 1 << 44
"""Generic addresses of shared, local and parameter memory: 1 TiB each from here."""
WINDOW_SIZE = 1 << 40
LOCAL_WINDOW = SHARED_WINDOW + WINDOW_SIZE
PARAM_WINDOW = LOCAL_WINDOW + WINDOW_SIZE
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}
GRANULE = 512


def aligned(at: int, unit: int) -> int:
    """`at`, rounded up to a multiple of `unit`."""
    return (at + unit - 1) // unit * unit


FUEL_CHUNK = 1 << 22
QUEUE_ENTRIES = 128
"""cp.async copies one thread can have under way; each is QUEUE_ENTRY bytes after the thread's save area."""
QUEUE_ENTRY = 32


def pack_context(values: Mapping[str, int]) -> bytes:
    """A Context with these fields; those not named are 0."""
    return _CONTEXT_STRUCT.pack(*(values.get(name, 0) for name, _ in CONTEXT_FIELDS))


def unpack_context(data: bytes) -> dict[str, int]:
    """The fields of a Context."""
    return dict(zip((name for name, _ in CONTEXT_FIELDS), _CONTEXT_STRUCT.unpack(data), strict=True))


def unpack_thread(data: bytes) -> dict[str, int]:
    """The fields of a Thread's fixed part."""
    return dict(zip((name for name, _ in THREAD_FIELDS), _THREAD_STRUCT.unpack_from(data), strict=True))


def _struct_of(fields: Fields) -> struct.Struct:
    """The fields with the padding that their alignment makes."""
    text, at, offsets = "<", 0, _offsets(fields)[0]
    for name, kind in fields:
        text += "x" * (offsets[name] - at) + {"u32": "I", "i64": "q"}.get(kind, "Q")
        at = offsets[name] + _SIZES[kind]
    return struct.Struct(text)


_CONTEXT_STRUCT = _struct_of(CONTEXT_FIELDS)
_THREAD_STRUCT = _struct_of(THREAD_FIELDS)


def c_header() -> str:
    """The two structures and the codes as C text, for runtime.cu."""
    lines = []
    for name, fields in (("Thread", THREAD_FIELDS), ("Context", CONTEXT_FIELDS)):
        lines += [f"struct {name} {{", *(f"  {_C_TYPE[kind]} {field};" for field, kind in fields), "};"]
    for codes in (Status, Outcome, Wait, Code):
        prefix = codes.__name__.upper()
        lines += [f"#define {prefix}_{code.name} {int(code)}u" for code in codes]
    return "\n".join(lines) + "\n"
