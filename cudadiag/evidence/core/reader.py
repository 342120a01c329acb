"""GPU core file to `CoreReading`: exceptions with kernel, block, thread, pc and source line; kernels; devices.

Needs neither a GPU nor a toolkit. Where a kernel's last act faulted, its warps are gone and only the multiprocessor's
row holds the exception and its pc: that is read too (cuda-gdb 13.0 itself crashes on such files).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from cudadiag.errors import Undecided
from cudadiag.evidence.core.exceptions import TRAP, ExceptionKind, exception_kind
from cudadiag.evidence.core.image import Code, Image, ReaderMissing, read_image
from cudadiag.evidence.core.reading import CoreException, CoreKernel, CoreReading
from cudadiag.evidence.core.sections import CoreFile, NotACore, Section
from cudadiag.evidence.names import base_name
from cudadiag.evidence.sanitizer.frames import user_place
from cudadiag.evidence.sanitizer.records import Frame
from cudadiag.model import FaultKind

RELOCATED, BACKTRACE, DEVICES, CONTEXTS, SMS, GRIDS, BLOCKS, WARPS, LANES, META = 7, 8, 9, 10, 11, 12, 13, 14, 15, 22
MAX_EXCEPTIONS = 500
MAX_RUNNING = 32
"""Places at which running warps stand."""

_DEVICE = struct.Struct("<QQQ14I")
_SM = struct.Struct("<IIIIQIIIIQ")
_GRID = struct.Struct("<7Q12I")
_BLOCK = struct.Struct("<QIII")
_WARP = struct.Struct("<QIIIIII")
_LANE = struct.Struct("<QQIIIIIII")
_BACKTRACE = struct.Struct("<QQII")
_META = struct.Struct("<QIIIIII")


def read_core(data: bytes) -> CoreReading:
    """All a GPU core file says. Raises Undecided for bytes that are none, with the reason."""
    try:
        file = CoreFile(data)
    except NotACore as problem:
        raise Undecided(f"the GPU core file cannot be read: {problem}") from problem
    return _Reader(file).reading()


@dataclass(frozen=True)
class _Warp:
    """A warp with the rows above it."""

    device: int
    sm: int
    grid: int
    block: tuple[int, int, int]
    number: int
    is_broken: bool  # stopped at a trap or breakpoint
    error_pc: int | None
    active: int  # mask of the lanes that ran the faulting instruction
    section: Section | None  # of its lanes


class _Reader:
    """Walks the tables: device -> multiprocessor -> block -> warp -> lane. Parents are named by section and row."""

    def __init__(self, file: CoreFile) -> None:
        self.file = file
        self.notes: list[str] = []
        self.code = Code(self._images())
        self.grids = dict(self._grids())

    def reading(self) -> CoreReading:
        exceptions: list[CoreException] = []
        running: dict[tuple[int, str | None, int | None], list[CoreException]] = {}
        blamed: set[tuple[int, int]] = set()  # (device, multiprocessor) whose exception has a thread to it
        for warp in self._warps():
            for found in self._lanes(warp):
                if found.number is not None:
                    blamed.add((warp.device, warp.sm))
                    exceptions.append(found)
                else:
                    running.setdefault((found.device, found.kernel, found.pc), []).append(found)
        exceptions += [lone for lone in self._lone_sms() if (lone.device, lone.sm) not in blamed]
        exceptions.sort(
            key=lambda e: (e.number == TRAP.number, e.thread is None, e.device, e.block or (0, 0, 0), _thread_key(e))
        )
        if len(exceptions) > MAX_EXCEPTIONS:
            self.notes.append(f"{len(exceptions)} warps met an exception; the first {MAX_EXCEPTIONS} are kept")
        return CoreReading(
            exceptions=tuple(exceptions[:MAX_EXCEPTIONS]),
            kernels=tuple(kernel for kernel, _ in self.grids.values()),
            running=self._standing(running.values()),
            devices=tuple(self._devices()),
            notes=tuple(self.notes),
        )

    def _standing(self, groups: Collection[list[CoreException]]) -> tuple[CoreException, ...]:
        """One running warp of each place, with how many stand there."""
        if len(groups) > MAX_RUNNING:
            self.notes.append(f"running warps stand at {len(groups)} places; the first {MAX_RUNNING} are kept")
        found = (replace(group[0], warps=len(group)) for group in groups)
        return tuple(islice(found, MAX_RUNNING))

    def _images(self) -> Iterator[Image]:
        for section in self.file.sections(RELOCATED):
            try:
                image = read_image(self.file.bytes_of(section))
            except ReaderMissing as problem:
                self.notes.append(f"no kernel names and no source lines: {problem}")
                return
            if image is None:
                self.notes.append("a piece of machine code in the file is damaged")
            else:
                yield image

    def _devices(self) -> Iterator[str]:
        for section in self.file.sections(DEVICES):
            for row in self.file.rows(section, _DEVICE):
                yield f"{self.file.text(row[0]) or 'unnamed GPU'} (sm_{row[11]}{row[12]})"
        for section in self.file.sections(META):
            data = self.file.bytes_of(section)
            if len(data) >= _META.size:
                row = _META.unpack_from(data)
                self.notes.append(f"driver {row[1]}.{row[2]}, CUDA {row[3]}.{row[4]}")

    def _grids(self) -> Iterator[tuple[tuple[int, int], tuple[CoreKernel, int]]]:
        """(device, grid id) -> the kernel and its entry address."""
        for section in self.file.sections(GRIDS):
            for row in self.file.rows(section, _GRID):
                function = self.code.function_at(row[3])
                name = base_name(function.kernel_symbol) if function else None
                kernel = CoreKernel(name, _triple(row, 11), _triple(row, 14), row[0], section.row)
                yield (section.row, row[0]), (kernel, row[3])

    def _warps(self) -> Iterator[_Warp]:
        """Every warp, joined with the rows above it."""
        lanes = {(s.parent, s.row): s for s in self.file.sections(LANES)}
        sms = {s.index: s for s in self.file.sections(SMS)}
        blocks = {s.index: s for s in self.file.sections(BLOCKS) if s.size}
        block_rows = {index: self.file.rows(s, _BLOCK) for index, s in blocks.items()}
        for section in self.file.sections(WARPS):
            block_section = blocks.get(section.parent)
            rows = block_rows.get(section.parent, [])
            if block_section is None or section.row >= len(rows):
                continue
            block = rows[section.row]
            sm_section = sms.get(block_section.parent)
            for index, row in enumerate(self.file.rows(section, _WARP)):
                yield _Warp(
                    device=sm_section.row if sm_section else 0,
                    sm=block_section.row,
                    grid=block[0],
                    block=_triple(block, 1),
                    number=row[1],
                    is_broken=bool(row[4]),
                    error_pc=row[0] if row[5] else None,
                    active=row[3],
                    section=lanes.get((section.index, index)),
                )

    def _lanes(self, warp: _Warp) -> Iterator[CoreException]:
        """The warp's lanes, those of one exception at one pc folded into one."""
        rows = self.file.rows(warp.section, _LANE) if warp.section else []
        groups: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = {}
        for index, row in enumerate(rows):
            if row[0]:  # lanes that had left have no pc
                groups.setdefault((row[6], row[0] if warp.error_pc is None else 0), []).append((index, row))
        for (number, _), members in groups.items():
            guilty = [member for member in members if warp.active >> (member[1][2] & 31) & 1]
            index, row = (guilty if number and guilty else members)[0]
            pc = warp.error_pc if warp.error_pc is not None and number else row[0]
            callers = self._callers(warp.section, index)
            yield self._exception(
                TRAP if warp.is_broken and not number else exception_kind(number) if number else None,
                pc,
                is_exact=warp.error_pc is not None and bool(number),
                warp=warp,
                thread=_triple(row, 3),
                lane=row[2],
                lanes=len(members),
                callers=callers,
            )

    def _callers(self, lanes: Section | None, index: int) -> tuple[Frame, ...]:
        """The device call stack of a lane, innermost caller first."""
        if lanes is None:
            return ()
        section = self._backtraces.get((lanes.index, index))
        rows = self.file.rows(section, _BACKTRACE)[:200] if section else []
        return tuple(self._frame(row[1]) for row in rows)

    @property
    def _backtraces(self) -> dict[tuple[int, int], Section]:
        if not hasattr(self, "_bt"):
            self._bt = {(s.parent, s.row): s for s in self.file.sections(BACKTRACE) if s.size}
        return self._bt

    def _frame(self, address: int) -> Frame:
        function = self.code.function_at(address)
        place = self.code.place(address)
        return Frame(
            function=function.name if function else None,
            file=place[0].file if place else None,
            line=place[0].line if place else None,
            pc=address - function.start if function else address,
        )

    def _lone_sms(self) -> Iterator[CoreException]:
        """Exceptions of multiprocessors, for those whose warps are gone."""
        for section in self.file.sections(SMS):
            for index, row in enumerate(self.file.rows(section, _SM)):
                if row[2]:
                    found, pc = exception_kind(row[2], self.file.text(row[9])), row[4] if row[3] else None
                    yield self._exception(found, pc, is_exact=pc is not None, device=section.row, sm=index)

    def _exception(
        self,
        found: ExceptionKind | None,
        pc: int | None,
        *,
        is_exact: bool,
        warp: _Warp | None = None,
        device: int = 0,
        sm: int | None = None,
        thread: tuple[int, int, int] | None = None,
        lane: int | None = None,
        lanes: int = 1,
        callers: tuple[Frame, ...] = (),
    ) -> CoreException:
        function = self.code.function_at(pc) if pc is not None else None
        chain = self.code.place(pc) if pc is not None else ()
        place = user_place(chain[0], chain[1:]) if chain else None
        kernel = self.grids.get((warp.device, warp.grid)) if warp else None
        launched = kernel[0].name if kernel else None
        inlined = tuple(Frame(frame.function, frame.file, frame.line) for frame in chain[1:])
        return CoreException(
            name=found.name if found else "running",
            kind=found.kind if found else FaultKind.OTHER_CUDA,
            number=found.number if found else None,
            kernel=launched or (base_name(function.kernel_symbol) if function else None),
            function=(chain[0].function if chain else None) or (function.name if function else None),
            file=place.file if place else None,
            line=place.line if place else None,
            frames=(*inlined, *callers),
            pc=pc,
            pc_is_exact=is_exact,
            offset=pc - function.start if function and pc is not None else None,
            block=warp.block if warp else None,
            thread=thread,
            lanes=lanes,
            device=warp.device if warp else device,
            sm=warp.sm if warp else sm,
            warp=warp.number if warp else None,
            lane=lane,
        )


def _triple(row: Iterable[int], at: int) -> tuple[int, int, int]:
    values = tuple(row)
    return values[at], values[at + 1], values[at + 2]


def _thread_key(found: CoreException) -> tuple[int, int, int]:
    x, y, z = found.thread or (0, 0, 0)
    return z, y, x
