"""Running a launch: parameters into bytes, blocks shared out over workers, host calls served, the first fault kept."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .area import Area, waits_for
from .hostcalls import HostCalls
from .kernels import Kernel, Scheduler
from .layout import LOCAL_WINDOW, SHARED_WINDOW, THREAD, Code, Outcome, Status, Wait
from .memory import DEVICE_BASE, Memory
from .workers import Helper

Dim3 = tuple[int, int, int]

_SPIN_PASSES = 256
_MAX_PARKED = 512
_STUCK_AFTER_S = 0.3
_STUCK_PROOF_BYTES = 512 << 20


@dataclass(frozen=True)
class Place:
    """One thread and what it was doing."""

    block: Dim3
    thread: Dim3
    site: int
    doing: str


@dataclass(frozen=True)
class Stop:
    """Why a launch ended early. `code` is a layout.Code; `lanes` says where threads were (deadlock, hang)."""

    code: Code
    block_index: int
    block: Dim3
    thread: Dim3
    site: int
    address: int = 0
    size: int = 0
    detail: str = ""
    lanes: tuple[Place, ...] = ()
    deadlock: bool = False


@dataclass(frozen=True)
class Settings:
    """How launches run. `workers` None: one per core. `seed` permutes blocks, warps and lanes; 0 keeps their order."""

    exact: bool = True
    workers: int | None = None
    seed: int = 0
    deadline_ns: int | None = None  # of the monotonic clock
    fuel: int | None = None


@dataclass
class _Run:
    """What the workers of one launch share."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    dynamic_shared: int
    common: dict[str, int]
    keep: list[object]
    blocks: int
    chunk: int
    next_block: int = 0
    returned: list[tuple[int, int]] = field(default_factory=list)  # parts of chunks that a spinning block held up
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: Stop | None = None
    working: dict[Area, int] = field(default_factory=dict)
    instructions: int = 0
    failure: BaseException | None = None


class Launcher:
    """Runs kernels on one Memory. Areas are kept for the next launch."""

    def __init__(self, memory: Memory, scheduler: Scheduler, settings: Settings, heap_bytes: int) -> None:
        self.memory, self.scheduler, self.settings = memory, scheduler, settings
        self.calls = HostCalls(memory, heap_bytes)
        self.instructions = 0
        self._areas: list[Area] = []
        self._globals: dict[tuple[int, ...], ctypes.Array[ctypes.c_uint64]] = {}
        self._host_lock = threading.Lock()
        self._helpers: list[Helper[_Run]] = []

    def run(
        self, kernel: Kernel, addresses: Sequence[int], grid: Dim3, block: Dim3, dynamic_shared: int, params: bytes
    ) -> Stop | None:
        """Run the grid; None if every thread left the kernel. `addresses` are those of the module's variables."""
        run = self._prepare(kernel, addresses, grid, block, dynamic_shared, params)
        helpers = min(self._workers(), math.ceil(run.blocks / run.chunk))
        if self.settings.seed:
            helpers = 1
        self._distribute(run, helpers, kernel.info.recursive)
        if run.failure is not None:
            raise run.failure
        self.instructions = run.instructions
        return run.stop

    def _prepare(
        self, kernel: Kernel, addresses: Sequence[int], grid: Dim3, block: Dim3, dynamic: int, params: bytes
    ) -> _Run:
        settings, memory = self.settings, self.memory
        blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
        buffer = ctypes.create_string_buffer(params, len(params) + 16)
        table = self._globals.get(tuple(addresses))
        if table is None:
            table = self._globals[tuple(addresses)] = (ctypes.c_uint64 * max(len(addresses), 1))(*addresses)
        common = {
            "params": ctypes.addressof(buffer), "params_size": len(params), "globals": ctypes.addressof(table),
            "valid": memory.table_host, "arena": memory.host, "base": DEVICE_BASE, "granules": memory.granules,
            "ntid_x": block[0], "ntid_y": block[1], "ntid_z": block[2], "threads": threads,
            "nctaid_x": grid[0], "nctaid_y": grid[1], "nctaid_z": grid[2], "grid_blocks": blocks,
            "dynamic_shared": dynamic, "total_shared": kernel.info.shared_static + dynamic, "kernel": kernel.address,
            "deadline_ns": settings.deadline_ns or (1 << 64) - 1,
            "fuel": settings.fuel if settings.fuel is not None else (1 << 62), "seed": settings.seed & 0xFFFFFFFF,
            "spin_limit": _SPIN_PASSES, "poison": int(settings.exact),
            **_block_order(settings.seed, blocks),
        }  # fmt: skip
        chunk = max(1, min(64, blocks // (8 * self._workers())))
        return _Run(kernel, grid, block, dynamic, common, [buffer, table], blocks, chunk)

    def _workers(self) -> int:
        return self.settings.workers or os.cpu_count() or 1

    def _distribute(self, run: _Run, workers: int, deep: bool) -> None:
        """Work here and in helper threads. `deep`: only in helpers, whose stack recursion cannot use up."""
        helpers = workers if deep else workers - 1
        while len(self._helpers) < helpers:
            self._helpers.append(Helper(self._work))
        for helper in self._helpers[:helpers]:
            helper.start(run)
        if not deep:
            self._work(run)
        for helper in self._helpers[:helpers]:
            helper.finish()

    def close(self) -> None:
        """End the helper threads."""
        for helper in self._helpers:
            helper.end()
        self._helpers.clear()

    # -- one worker --------------------------------------------------------------------------------------------------

    def _work(self, run: _Run) -> None:
        try:
            self._blocks(run)
        except BaseException as error:  # noqa: BLE001 - carried to the launching thread
            run.failure = error

    def _blocks(self, run: _Run) -> None:
        """Take chunks of blocks until there are none; set spinning blocks aside for others they may be waiting for."""
        parked: deque[Area] = deque()
        since = time.monotonic()
        while True:
            area = self._new_area(run) if len(parked) < _MAX_PARKED else None
            if area is None:
                if not parked or run.stop is not None:
                    break
                area = parked.popleft()
            outcome = self._enter(run, area)
            if outcome == Outcome.SPINNING:
                self._park(run, area)
                parked.append(area)
                if self._is_stuck(run, parked, since):
                    self._stopped(run, self._hang(run, parked, "it can be proven to go on for ever"))
                    break
                continue
            since = time.monotonic()
            run.instructions += area.get("instructions")
            self._release(run, area)
            if outcome == Outcome.TIMEOUT:
                break
        for area in parked:
            self._release(run, area)

    def _new_area(self, run: _Run) -> Area | None:
        """An Area set to the next chunk of blocks; None when all were taken."""
        with run.lock:
            if run.stop is not None:
                return None
            if run.returned:
                first, end = run.returned.pop()
            elif run.next_block < run.blocks:
                first, end = run.next_block, min(run.next_block + run.chunk, run.blocks)
                run.next_block = end
            else:
                return None
            area = self._areas.pop() if self._areas else Area()
            threads = run.common["threads"]
            settings = {**run.common, "next_block": first, "end_block": end, "sm": first % 108}
            area.prepare(run.kernel.info, threads, run.dynamic_shared, self.settings.exact, settings)
            run.working[area] = first
        return area

    def _park(self, run: _Run, area: Area) -> None:
        """Set a spinning block aside; the blocks of its chunk that it holds up are for others to run."""
        following, end = area.get("next_block") + 1, area.get("end_block")
        if following < end:
            with run.lock:
                run.returned.append((following, end))
            area.set("end_block", following)

    def _release(self, run: _Run, area: Area) -> None:
        with run.lock:
            run.working.pop(area, None)
            self._areas.append(area)

    def _enter(self, run: _Run, area: Area) -> Outcome:
        """Run until the chunk is done or spins, serving host calls; a fault is noted in the run."""
        while True:
            outcome = Outcome(self.scheduler.enter(area.context_at))
            if outcome == Outcome.HOST:
                self._serve(run, area)
            elif outcome == Outcome.FAULT:
                self._stopped(run, _fault(run, area))
                return outcome
            elif outcome in (Outcome.DEADLOCK, Outcome.TIMEOUT):
                self._stopped(run, self._hang(run, [area], "", deadlock=outcome == Outcome.DEADLOCK))
                return outcome
            else:
                return outcome

    def _stopped(self, run: _Run, stop: Stop) -> None:
        """Keep the stop of the lowest block, and let only workers go on that have lower blocks to run."""
        with run.lock:
            if run.stop is None or stop.block_index < run.stop.block_index:
                run.stop = stop
            for area, first in run.working.items():
                if first > stop.block_index or stop.code == Code.HANG:
                    area.stop.value = 1

    # -- hangs -------------------------------------------------------------------------------------------------------

    def _hang(self, run: _Run, areas: Sequence[Area], detail: str, deadlock: bool = False) -> Stop:
        lanes = tuple(place for area in areas for place in _places(run, area))
        waiting = next((p for p in lanes if p.doing != "left the kernel"), lanes[0])
        index = areas[0].get("next_block")
        return Stop(
            Code.HANG, index, waiting.block, waiting.thread, waiting.site, detail=detail, lanes=lanes, deadlock=deadlock
        )

    def _is_stuck(self, run: _Run, parked: deque[Area], since: float) -> bool:
        """Whether nothing can ever change: every block left spins, and some passes later all of memory is as before."""
        if (
            time.monotonic() - since < _STUCK_AFTER_S
            or run.next_block < run.blocks
            or run.returned
            or len(run.working) > len(parked)
        ):
            return False
        if self.memory.used_bytes > _STUCK_PROOF_BYTES:
            return False
        before = self._state(run, parked)
        for area in parked:
            if self._enter(run, area) != Outcome.SPINNING:
                return False
        return before == self._state(run, parked)

    def _state(self, run: _Run, areas: deque[Area]) -> int:
        digest = 0
        for area in areas:
            digest = zlib.crc32(area.snapshot(run.common["threads"]), digest)
        for allocation in self.memory.live():
            digest = zlib.crc32(self.memory.read(allocation.address, allocation.size), digest)
        return digest

    # -- host calls --------------------------------------------------------------------------------------------------

    def _serve(self, run: _Run, area: Area) -> None:
        """Serve the call of the thread that asked for it and let it go on."""
        index = area.fields()["fault_thread"]
        thread = area.thread(index)
        read = self._reader(area, thread)
        at = area.thread_address(index)
        status, result = 0, 0
        with self._host_lock:
            op = thread["op"]
            if op == Wait.PRINTF:
                result = self.calls.printf(thread, read)
            elif op == Wait.MALLOC:
                result = self.calls.malloc(thread["arg0"])
            elif op == Wait.FREE:
                if not self.calls.free(thread["arg0"]):
                    status = self._bad_free(run, area, thread)
            else:
                status = self._failed_assert(run, area, thread, read)
        ctypes.c_uint32.from_address(at).value = status
        ctypes.c_uint64.from_address(at + THREAD["result"]).value = result

    def _failed_assert(
        self, run: _Run, area: Area, thread: dict[str, int], read: Callable[[int, int], bytes | None]
    ) -> int:
        """The thread is over; the rest of its block runs to its next suspension, then the launch ends."""
        block = _block_of(area)
        file, line, message = self.calls.failed_assert(thread, block, read)
        detail = f"{file}:{line}: Assertion `{message}` failed"
        self._stopped_here(run, area, thread, Code.ASSERT, detail)
        return int(Status.EXITED)

    def _bad_free(self, run: _Run, area: Area, thread: dict[str, int]) -> int:
        self._stopped_here(
            run, area, thread, Code.TRAP, f"free of 0x{thread['arg0']:x}, no live block of the device heap"
        )
        return int(Status.EXITED)

    def _stopped_here(self, run: _Run, area: Area, thread: dict[str, int], code: Code, detail: str) -> None:
        tid = (thread["tid_x"], thread["tid_y"], thread["tid_z"])
        stop = Stop(code, area.get("next_block"), _block_of(area), tid, thread["site"], detail=detail)
        self._stopped(run, stop)
        area.stop.value = 1

    def _reader(self, area: Area, thread: dict[str, int]) -> Callable[[int, int], bytes | None]:
        """Memory as the thread sees it through generic addresses."""
        fields = area.fields()
        local = fields["local"] + thread["linear"] * fields["local_stride"]

        def read(address: int, size: int) -> bytes | None:
            if 0 <= address - LOCAL_WINDOW <= fields["local_size"] - size:
                return ctypes.string_at(local + address - LOCAL_WINDOW, size)
            if 0 <= address - SHARED_WINDOW <= fields["shared_size"] - size:
                return ctypes.string_at(fields["shared"] + address - SHARED_WINDOW, size)
            return self.memory.read(address, size) if self.memory.is_valid(address, size) else None

        return read


def _block_order(seed: int, blocks: int) -> dict[str, int]:
    """A permutation of the blocks: multiplier coprime to their number, and an offset."""
    if not seed or blocks < 2 or blocks >= 1 << 31:
        return {"block_multiplier": 1, "block_offset": 0}
    multiplier = seed * 2654435761 % blocks or 1
    while math.gcd(multiplier, blocks) != 1:
        multiplier += 1
    return {"block_multiplier": multiplier, "block_offset": seed * 40503 % blocks}


def _block_of(area: Area) -> Dim3:
    fields = area.fields()
    return fields["ctaid_x"], fields["ctaid_y"], fields["ctaid_z"]


def _fault(run: _Run, area: Area) -> Stop:
    fields = area.fields()
    thread = area.thread(fields["fault_thread"])
    return Stop(
        Code(fields["fault_code"]), fields["next_block"], _block_of(area),
        (thread["tid_x"], thread["tid_y"], thread["tid_z"]), fields["fault_site"], fields["fault_address"],
        fields["fault_size"], lanes=_places(run, area) if fields["fault_code"] == Code.HANG else (),
    )  # fmt: skip


def _places(run: _Run, area: Area) -> tuple[Place, ...]:
    block = _block_of(area)
    found = []
    for index in range(run.common["threads"]):
        thread = area.thread(index)
        tid = (thread["tid_x"], thread["tid_y"], thread["tid_z"])
        found.append(Place(block, tid, thread["site"], waits_for(thread)))
    return tuple(found)
