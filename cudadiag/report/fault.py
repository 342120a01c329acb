"""A fault in words: what, where noticed, where caused. Noticed and caused are never mixed up."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cudadiag.evidence.allocations import position
from cudadiag.model import Allocation, Caused, Fault, FaultKind, Noticed
from cudadiag.report.source import source_lines
from cudadiag.report.style import bytes_words, printable, strong


def fault_title(fault: Fault) -> str:
    """`illegal-address, CUDA_ERROR_ILLEGAL_ADDRESS (700)`."""
    number = f" ({fault.number})" if fault.number is not None else ""
    name = f", {fault.name}{number}" if fault.name else number
    return f"{fault.kind.value}{name}"


def fault_lines(fault: Fault, sources: Iterable[str] = ()) -> list[str]:
    """Title, noticed, caused and the source line with its neighbours."""
    lines = [strong(fault_title(fault))]
    if fault.detail:
        lines.append(f"  {printable(fault.detail)}")
    if fault.noticed or not (is_host(fault) or fault.kind is FaultKind.LEAK):
        lines.append(f"  noticed  {noticed_words(fault.noticed)}")
    if fault.caused or in_kernel(fault):
        lines.append(f"  caused   {caused_words(fault.caused)}")
    if fault.found_by:
        lines.append(f"  found by {fault.found_by}")
    if fault.caused:
        lines += [f"    {line}" for line in source_lines(fault.caused.file, fault.caused.line, sources)]
    return lines


def is_host(fault: Fault) -> bool:
    """Whether the host program failed by itself: then no kernel caused it and no CUDA call noticed it."""
    return fault.kind in (FaultKind.HOST_SIGNAL, FaultKind.HOST_EXIT, FaultKind.HOST_EXCEPTION)


NOT_IN_A_KERNEL = frozenset(
    {
        FaultKind.HOST_SIGNAL,
        FaultKind.HOST_EXIT,
        FaultKind.HOST_EXCEPTION,
        FaultKind.DIED_AFTER_FINISH,
        FaultKind.OUT_OF_MEMORY,
        FaultKind.LAUNCH_LIMIT,
        FaultKind.NO_KERNEL_IMAGE,
        FaultKind.LEAK,
        FaultKind.ECC,
        FaultKind.NVLINK,
        FaultKind.DEVICE_LOST,
    }
)


def in_kernel(fault: Fault) -> bool:
    """Whether a line of a kernel caused it, so that it is worth saying that the line is not known."""
    return fault.kind not in NOT_IN_A_KERNEL


def fault_words(fault: Fault) -> str:
    """Everything in one line: for the answer's fourth line."""
    parts = [fault_title(fault)]
    if fault.noticed and not is_host(fault):
        parts.append(f"noticed {noticed_words(fault.noticed, brief=True)}")
    if is_host(fault):
        parts += [noticed_words(fault.noticed)] if fault.noticed else []
    elif fault.caused or in_kernel(fault):
        parts.append(f"caused {caused_words(fault.caused, brief=True)}")
    return "; ".join(parts)


def noticed_words(noticed: Noticed | None, brief: bool = False) -> str:
    """Where the error came back, as one line. `brief`: without its text where the call says enough."""
    if noticed is None:
        return "(no call reported it)"
    parts = [part for part in (noticed.call and f"by {noticed.call}", _place(noticed.file, noticed.line)) if part]
    if noticed.text and not (brief and parts):
        parts.append(f'"{printable(noticed.text.strip())}"')
    return " ".join(parts) or "(place unknown)"


def caused_words(caused: Caused | None, brief: bool = False) -> str:
    """Where the fault happened on the device, as one line. `brief`: without thread and address."""
    if caused is None:
        return "(not known: `cudadiag sanitize` looks for it)"
    file = os.path.basename(caused.file) if brief and caused.file else caused.file
    place = _place(file, caused.line)
    parts = [f"in {caused.kernel}" if caused.kernel else "", place]
    if caused.pc is not None and not place:
        parts.append(f"at pc {caused.pc:#x}")
    head = " ".join(part for part in parts if part)
    details = [head, access_words(caused, brief), "" if brief else _thread_words(caused)]
    return ", ".join(part for part in details if part) or "(place unknown)"


def access_words(caused: Caused, brief: bool = False) -> str:
    """`write of 4 B in global memory, 36 B past the end of scores (288.0 KiB)`."""
    words = ""
    if caused.access:
        size = f" of {bytes_words(caused.size)}" if caused.size is not None else ""
        space = f" in {caused.space} memory" if caused.space else ""
        words = f"{caused.access}{size}{space}"
    if caused.address is not None and not (brief and caused.allocation):
        words += f"{' at' if words else 'at'} {caused.address:#x}"
    if caused.allocation:
        words += f"{', ' if words else ''}{allocation_words(caused.allocation, caused.address)}"
    return words


def allocation_words(allocation: Allocation, address: int | None = None) -> str:
    """`right at the end of scores (128.0 KiB)`."""
    name = allocation.name or f"the allocation at {allocation.address:#x}"
    state = ", already freed" if allocation.state == "freed" else ""
    return position(allocation, f"{name} ({bytes_words(allocation.size)}{state})", bytes_words, address)


def _thread_words(caused: Caused) -> str:
    thread = f"thread {_triple(caused.thread)}" if caused.thread else ""
    block = f"block {_triple(caused.block)}" if caused.block else ""
    return " of ".join(part for part in (thread, block) if part)


def _triple(triple: tuple[int, int, int]) -> str:
    return f"({triple[0]},{triple[1]},{triple[2]})"


def _place(file: str | None, line: int | None) -> str:
    if not file:
        return f"at line {line}" if line is not None else ""
    shown = printable(short_path(file))
    return f"at {shown}:{line}" if line is not None else f"at {shown}"


def short_path(file: str) -> str:
    """A path relative to the current folder where it lies below it."""
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return file if relative.startswith("..") else relative
