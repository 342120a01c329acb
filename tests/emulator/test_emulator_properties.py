"""Properties: random small kernels equal numpy; every planted wrong access is found, and no right one is blamed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from emulated import Ran, launch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.devices.emulator import EmulatedDevice

THREADS = 64
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


# -- random programs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A kernel body and what it does to the variables v0..v3 (uint32 arrays over the threads)."""

    text: str
    run: Any


NAMES = ["v0", "v1", "v2", "v3"]
OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> Program:
    kind = draw(st.sampled_from(["name", "constant", "tid", "binary", "binary", "shift", "divide", "select", "min"]))
    if depth == 0 or kind in ("name", "constant", "tid"):
        if kind == "constant":
            value = draw(st.integers(0, 2**32 - 1) | st.integers(0, 40))
            return Program(f"{value}u", lambda v, value=value: np.full(THREADS, value, np.uint32))
        if kind == "tid":
            return Program("threadIdx.x", lambda v: np.arange(THREADS, dtype=np.uint32))
        name = draw(st.sampled_from(NAMES))
        return Program(name, lambda v, name=name: v[name])
    a, b = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    if kind == "shift":
        left = draw(st.booleans())
        if left:
            return Program(f"({a.text} << ({b.text} & 31))", lambda v: a.run(v) << (b.run(v) & np.uint32(31)))
        return Program(f"({a.text} >> ({b.text} & 31))", lambda v: a.run(v) >> (b.run(v) & np.uint32(31)))
    if kind == "divide":
        rest = draw(st.booleans())
        operation = np.remainder if rest else np.floor_divide
        return Program(
            f"({a.text} {'%' if rest else '/'} ({b.text} | 1))", lambda v: operation(a.run(v), b.run(v) | np.uint32(1))
        )
    if kind == "select":
        return Program(
            f"({a.text} < {b.text} ? {b.text} : {a.text} + 1)",
            lambda v: np.where(a.run(v) < b.run(v), b.run(v), a.run(v) + np.uint32(1)),
        )
    if kind == "min":
        return Program(f"min({a.text}, {b.text})", lambda v: np.minimum(a.run(v), b.run(v)))
    operator = draw(st.sampled_from(sorted(OPERATORS)))
    return Program(f"({a.text} {operator} {b.text})", lambda v: OPERATORS[operator](a.run(v), b.run(v)))


def masked(v: dict[str, np.ndarray], name: str, value: np.ndarray, mask: np.ndarray) -> None:
    v[name] = np.where(mask, value, v[name]).astype(np.uint32)


@st.composite
def statements(draw: st.DrawFn, depth: int = 2, uniform: bool = True) -> Program:
    """`uniform`: every thread of the block is here, so warp operations and barriers are allowed."""
    kinds = ["assign", "assign", "if", "loop", "while"] if depth else ["assign"]
    if uniform:
        kinds += ["shuffle", "exchange", "vote"]
    kind = draw(st.sampled_from(kinds))
    name = draw(st.sampled_from(NAMES))
    e = draw(expressions())
    if kind == "assign":
        return Program(f"{name} = {e.text};", lambda v, m: masked(v, name, e.run(v), m))
    if kind in ("shuffle", "exchange", "vote"):
        return draw(together(kind, name, e))
    inner = draw(blocks(depth - 1, False))
    if kind == "if":
        other = draw(blocks(depth - 1, False))

        def run_if(v: dict[str, np.ndarray], m: np.ndarray) -> None:
            taken = (e.run(v) & np.uint32(1)).astype(bool)
            inner.run(v, m & taken)
            other.run(v, m & ~taken)

        return Program(f"if ({e.text} & 1) {{ {inner.text} }} else {{ {other.text} }}", run_if)
    return draw(loops(kind, e, inner))


@st.composite
def loops(draw: st.DrawFn, kind: str, e: Program, inner: Program) -> Program:
    """`inner` again and again, each thread as often as it wants."""
    limit = draw(st.integers(1, 5))
    if kind == "loop":
        counter = f"i{draw(st.integers(0, 10**6))}"
        bound = f"({e.text} & 7)" if draw(st.booleans()) else f"{limit}u"

        def run_loop(v: dict[str, np.ndarray], m: np.ndarray) -> None:
            turns = e.run(v) & np.uint32(7) if bound.startswith("(") else np.full(THREADS, limit)
            for turn in range(8):
                inner.run(v, m & (turn < turns))

        head = f"unsigned n{counter} = {bound}; for (unsigned {counter} = 0; {counter} < n{counter}; ++{counter})"
        return Program(f"{{ {head} {{ {inner.text} }} }}", run_loop)
    fuel = f"f{draw(st.integers(0, 10**6))}"

    def run_while(v: dict[str, np.ndarray], m: np.ndarray) -> None:
        going = m.copy()
        for _ in range(limit):
            going &= (e.run(v) & np.uint32(3)) != 0
            inner.run(v, going)

    text = f"for (unsigned {fuel} = 0; {fuel} < {limit} && ({e.text} & 3) != 0; ++{fuel}) {{ {inner.text} }}"
    return Program(text, run_while)


@st.composite
def together(draw: st.DrawFn, kind: str, name: str, e: Program) -> Program:
    """What all threads do with one another."""
    t = np.arange(THREADS)
    if kind == "shuffle":
        lanes = draw(st.integers(1, 31))
        source = t // 32 * 32 + (t % 32 ^ lanes)
        return Program(
            f"{name} = __shfl_xor_sync(~0u, {e.text}, {lanes});", lambda v, m: masked(v, name, e.run(v)[source], m)
        )
    if kind == "exchange":
        by = draw(st.integers(1, THREADS - 1))
        put, get = f"s[threadIdx.x] = {e.text};", f"{name} = s[(threadIdx.x + {by}) % {THREADS}];"
        text = f"__syncthreads(); {put} __syncthreads(); {get}"
        return Program(text, lambda v, m: masked(v, name, np.roll(e.run(v), -by), m))

    def run_vote(v: dict[str, np.ndarray], m: np.ndarray) -> None:
        odd = (e.run(v) & np.uint32(1)).reshape(2, 32).astype(np.uint64)
        ballots = (odd << np.arange(32, dtype=np.uint64)).sum(1).astype(np.uint32)
        masked(v, name, np.repeat(ballots, 32), m)

    return Program(f"{name} = __ballot_sync(~0u, {e.text} & 1);", run_vote)


@st.composite
def blocks(draw: st.DrawFn, depth: int, uniform: bool) -> Program:
    parts = draw(st.lists(statements(depth, uniform), min_size=1, max_size=4 if uniform else 2))

    def run(v: dict[str, np.ndarray], m: np.ndarray) -> None:
        for part in parts:
            part.run(v, m)

    return Program(" ".join(p.text for p in parts), run)


@settings(RELAXED, max_examples=60)
@given(blocks(2, True), st.integers(0, 2**32 - 1), st.sampled_from([0, 0, 3]), st.sampled_from([None, 0]))
def test_random_programs_equal_numpy(program: Program, start: int, seed: int, level: int | None) -> None:
    source = f"""
    extern "C" __global__ void k(unsigned* o, unsigned v0) {{
      __shared__ unsigned s[{THREADS}];
      unsigned v1 = v0 * 7 + threadIdx.x, v2 = threadIdx.x * threadIdx.x, v3 = ~v0;
      {program.text}
      o[threadIdx.x] = v0; o[{THREADS} + threadIdx.x] = v1; o[{2 * THREADS} + threadIdx.x] = v2;
      o[{3 * THREADS} + threadIdx.x] = v3 + (s[0] & 0);
    }}"""
    args = [("o", np.zeros(4 * THREADS, np.uint32)), ("uint32", start)]
    ran = launch(source, "k", 1, THREADS, args, seed=seed, level=level, cache=False)
    assert ran.error is None, ran.records
    t = np.arange(THREADS, dtype=np.uint32)
    v0 = np.full(THREADS, start, np.uint32)
    v = {"v0": v0, "v1": v0 * np.uint32(7) + t, "v2": t * t, "v3": ~v0}
    program.run(v, np.ones(THREADS, bool))
    np.testing.assert_array_equal(ran["o"].reshape(4, THREADS), [v[n] for n in NAMES])


# -- planted faults ----------------------------------------------------------------------------------------------------

TOUCH = """
template <class T> __device__ void touch(T* p, int mode, T* sink) {
  if (mode == 0) *sink = *p; else *p = *sink;
}
extern "C" __global__ void k(char* p, long long offset, int width, int mode, int thread, int block, float4* sink) {
  if (threadIdx.x != thread || blockIdx.x != block) return;
  char* at = p + offset;
  if (mode == 2) { if (width == 4) atomicAdd((int*)at, 1); else atomicAdd((unsigned long long*)at, 1ull); return; }
  switch (width) {
    case 1: touch(at, mode, (char*)sink); break;
    case 2: touch((short*)at, mode, (short*)sink); break;
    case 4: touch((int*)at, mode, (int*)sink); break;
    case 8: touch((long long*)at, mode, (long long*)sink); break;
    default: touch((float4*)at, mode, sink);
  }
}"""


def touched(device: EmulatedDevice, address: int, offset: int, width: int, mode: int, thread: int, block: int) -> Ran:
    scalars = [("int64", offset), ("int32", width), ("int32", mode), ("int32", thread), ("int32", block)]
    args = [("pointer", address), *scalars, ("sink", np.zeros(4, np.float32))]
    return launch(TOUCH, "k", 3, 64, args, device=device)


@settings(RELAXED, max_examples=150)
@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=4), st.data(), st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([0, 1, 2]), st.integers(0, 63), st.integers(0, 2),
)  # fmt: skip
def test_an_access_is_blamed_exactly_when_it_is_wrong(
    sizes: list[int], data: st.DataObject, width: int, mode: int, thread: int, block: int
) -> None:
    """One-byte overruns and underruns among them: offsets are drawn around both ends as often as inside."""
    if mode == 2 and width not in (4, 8):
        mode = 1
    device = EmulatedDevice()
    names = [f"buffer{n}" for n in range(len(sizes))]
    addresses = [device.allocate(size, name) for size, name in zip(sizes, names, strict=True)]
    which = data.draw(st.integers(0, len(sizes) - 1))
    size = sizes[which]
    inside = st.integers(0, max(size - width, 0))
    edge = st.sampled_from([-width, -1, 0, size - width, size - width + 1, size - 1, size, size + 1, size + 600])
    offset = data.draw(edge | inside | inside.map(lambda o: o // width * width))
    ran = touched(device, addresses[which], offset, width, mode, thread, block)
    aligned = (addresses[which] + offset) % width == 0
    right = aligned and offset >= 0 and offset + width <= size
    assert (ran.error is None) == right
    if right:
        assert ran.records == []
        return
    record = ran.records[0]
    assert ran.error.number == (700 if aligned else 716)
    assert (record["thread"], record["block"]) == ([thread, 0, 0], [block, 0, 0])
    assert (record["address"], record["size"]) == (addresses[which] + offset, width)
    assert record["access"] == ("read", "write", "atomic")[mode]
    assert record["allocation"]["name"] == names[which]


@settings(RELAXED, max_examples=40)
@given(st.lists(st.integers(1, 3000), min_size=2, max_size=5), st.data(), st.integers(0, 1))
def test_use_after_free_is_found_and_other_buffers_stay_usable(
    sizes: list[int], data: st.DataObject, mode: int
) -> None:
    device = EmulatedDevice()
    addresses = [device.allocate(size, f"buffer{n}") for n, size in enumerate(sizes)]
    freed = data.draw(st.integers(0, len(sizes) - 1))
    device.free(addresses[freed])
    other = (freed + 1) % len(sizes)
    assert touched(device, addresses[other], sizes[other] - 1, 1, mode, 0, 0).error is None
    ran = touched(device, addresses[freed], data.draw(st.integers(0, sizes[freed] - 1)), 1, mode, 0, 0)
    assert ran.error.number == 700
    assert ran.records[0]["kind"] == "use-after-free"
    assert ran.records[0]["allocation"]["name"] == f"buffer{freed}"


def test_accesses_checked_together_wrap_at_32_bits_like_those_checked_alone() -> None:
    """Found by the test below: p[-1 + 2] is p[1], also where p[-1] beside it is the fault."""
    lines = "\n".join(f"  s += p[start + {o}];" for o in (2, 0, 0, 1))
    head = 'extern "C" __global__ void k(const int* q, int* o, int start) { extern __shared__ int p[]; p[0] = 0;'
    source = f"{head}\n  int s = 0;\n{lines}\n  o[0] = s; }}"
    args = [("q", np.zeros(2, np.int32)), ("o", np.zeros(1, np.int32)), ("int32", -1)]
    ran = launch(source, "k", 1, 1, args, shared=8, cache=False)
    assert ran.records[0]["line"] in (4, 5)
    assert ran.records[0]["address"] == 0xFFFFFFFC


@settings(RELAXED, max_examples=30)
@given(st.lists(st.integers(0, 200), min_size=4, max_size=10), st.data(), st.integers(1, 300), st.booleans())
def test_accesses_checked_together_blame_the_first_wrong_one(
    offsets: list[int], data: st.DataObject, elements: int, in_shared: bool
) -> None:
    """Unrolled accesses at constant offsets: the record names the line of the first that is out of bounds."""
    ends = [e + d for e in (-min(offsets), elements - 1 - max(offsets)) for d in (-1, 0, 1)]
    start = data.draw(st.sampled_from(ends) | st.integers(-8, 300))
    lines = "\n".join(f"  s += p[start + {o}];" for o in offsets)
    declare = "extern __shared__ int p[]; p[0] = 0;" if in_shared else "const int* p = q;"
    head = f'extern "C" __global__ void k(const int* q, int* o, int start) {{ {declare}'
    source = f"{head}\n  int s = 0;\n{lines}\n  o[0] = s; }}"
    args = [("q", np.zeros(elements, np.int32)), ("o", np.zeros(1, np.int32)), ("int32", start)]
    ran = launch(source, "k", 1, 1, args, shared=4 * elements if in_shared else 0, cache=False)
    wrong = [n for n, o in enumerate(offsets) if not 0 <= start + o < elements]
    if not wrong:
        assert ran.error is None
        return
    assert ran.error.number == 700
    blamed = ran.records[0]["line"] - 3
    assert blamed in wrong
    assert ran.records[0]["space"] == ("shared" if in_shared else "global")


@settings(RELAXED, max_examples=60)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_hardware_memory_gives_back_what_was_freed(sizes: list[int], random: Any) -> None:
    """Allocations never overlap, live ones are accessible to their last byte, freeing all of them leaves nothing."""
    device = EmulatedDevice("hardware")
    live: dict[int, int] = {}
    for size in sizes:
        nbytes = size * 20001
        address = device.allocate(nbytes, "x")
        if not nbytes:
            assert address == 0
            continue
        assert all(address + nbytes <= a or a + n <= address for a, n in live.items())
        live[address] = nbytes
        assert device.memory.is_valid(address, 1)
        assert device.memory.is_valid(address + nbytes - 1, 1)
        if random.random() < 0.4:
            victim = random.choice(sorted(live))
            device.free(victim)
            del live[victim]
            assert all(device.memory.is_valid(a + n - 1, 1) for a, n in live.items())
    for address in sorted(live):
        device.free(address)
    assert device.memory.used_bytes == 0
    assert not any(device.memory.is_valid(a, 1) for a in live)
