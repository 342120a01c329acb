"""A Stop -> the CUDA error a GPU would return and the memory checker's record, with the field names of model.Caused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from .kernels import Kernel
from .launch import Place, Stop
from .layout import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SIZE, Code
from .memory import Allocation, Memory, Nearest
from .ptx import Instruction, Loc, Variable

_MAX_LANES = 64


@dataclass(frozen=True)
class _Access:
    """What an instruction does to memory."""

    verb: str  # "read", "write", "atomic"
    space: str


def error_number(stop: Stop, kernel: Kernel) -> int:
    """The CUDA error a GPU returns for this."""
    fixed = {
        Code.ILLEGAL: 715, Code.TRAP: 719, Code.STACK: 700, Code.HANG: 702, Code.BAD_BRANCH: 718, Code.ASSERT: 710,
    }  # fmt: skip
    if stop.code in fixed:
        return fixed[stop.code]
    if stop.code == Code.BAD_CALL:
        return 716 if stop.address % 8 else 718
    access = _access(_instruction(stop, kernel))
    if stop.size and stop.address % stop.size:
        return 716
    in_window = SHARED_WINDOW <= stop.address < PARAM_WINDOW + WINDOW_SIZE
    return 717 if access.space in ("global", "const") and in_window else 700


def record(stop: Stop, kernel: Kernel, memory: Memory) -> dict[str, Any]:
    """The checker's record of a stop: JSON values only. `kind` is a FaultKind's value."""
    x = _instruction(stop, kernel)
    place = _place(x.loc)
    found: dict[str, Any] = {
        "kind": _kind(stop, kernel, memory),
        "kernel": kernel.info.name,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "pc": 16 * kernel.sites[stop.site][1],
        "block": list(stop.block),
        "thread": list(stop.thread),
        "instruction": x.name,
        "frames": _frames(x.loc, kernel.sites[stop.site][0]),
    }
    if stop.code == Code.ACCESS:
        found.update(_access_fields(stop, x, kernel, memory))
    elif stop.code == Code.BAD_CALL:
        found["address"] = stop.address
    if stop.lanes:
        found["lanes"] = _lanes(stop.lanes, kernel)
    found["message"] = _message(stop, found)
    return found


def leak(held: Allocation) -> dict[str, Any]:
    """The record of memory that was still allocated when the device was closed."""
    where = "on the device heap" if held.kind == "heap" else f"of {held.name}"
    found = _allocation(Nearest(held, 0, "inside"))
    return {"kind": "leak", "allocation": found, "message": f"{held.size} bytes {where} were never freed"}


def _instruction(stop: Stop, kernel: Kernel) -> Instruction:
    return kernel.sites[stop.site][2]


def _kind(stop: Stop, kernel: Kernel, memory: Memory) -> str:
    fixed = {
        Code.ILLEGAL: "illegal-instruction", Code.TRAP: "launch-failure", Code.STACK: "hardware-stack",
        Code.BAD_BRANCH: "invalid-pc", Code.ASSERT: "device-assert",
        Code.HANG: "barrier" if stop.deadlock else "launch-timeout",
    }  # fmt: skip
    if stop.code in fixed:
        return fixed[stop.code]
    number = error_number(stop, kernel)
    if number != 700:
        return {716: "misaligned-address", 717: "invalid-address-space"}.get(number, "invalid-pc")
    if _access(_instruction(stop, kernel)).space not in ("global", "const", "generic"):
        return "out-of-bounds"
    nearest = memory.nearest(stop.address, stop.size)
    if nearest is not None and nearest.side == "inside" and not nearest.allocation.live:
        return "use-after-free"
    return "out-of-bounds"


def _access(x: Instruction) -> _Access:
    verb = {"ld": "read", "ldu": "read", "st": "write", "atom": "atomic", "red": "atomic"}.get(x.opcode, "read")
    spaces = [m.partition("::")[0] for m in x.mods]
    space = next((s for s in spaces if s in ("global", "shared", "local", "const", "param")), "generic")
    return _Access(verb, space)


def _access_fields(stop: Stop, x: Instruction, kernel: Kernel, memory: Memory) -> dict[str, Any]:
    access = _access(x)
    space, address = access.space, stop.address
    if space == "generic":
        space, address = _resolved(address)
    if x.opcode == "cp":  # one instruction, two accesses: shared addresses are small
        access = _Access("write", "shared") if address < SHARED_WINDOW else _Access("read", "global")
        space = access.space
    found: dict[str, Any] = {"access": access.verb, "space": space, "size": stop.size, "address": address}
    if space in ("global", "const"):
        nearest = memory.nearest(address, stop.size)
        found["allocation"] = _allocation(nearest) if nearest else None
    elif space == "shared":
        found["allocation"] = _shared_allocation(address, stop.size, kernel)
    else:
        found["allocation"] = None
    return found


def _resolved(address: int) -> tuple[str, int]:
    """The space a generic address lies in, and the address there."""
    for space, window in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("param", PARAM_WINDOW)):
        if window <= address < window + WINDOW_SIZE:
            return space, address - window
    return "global", address


def _allocation(nearest: Nearest) -> dict[str, Any]:
    held = nearest.allocation
    return {
        "name": held.name,
        "address": held.address,
        "size": held.size,
        "distance": nearest.distance,
        "side": nearest.side,
        "state": "live" if held.live else "freed",
    }


def _shared_allocation(address: int, size: int, kernel: Kernel) -> dict[str, Any] | None:
    """The shared variable nearest to the access."""
    regions = [Variable(n, "shared", "b8", 1, s) for n, _, s in kernel.info.shared_regions]
    starts = [offset for _, offset, _ in kernel.info.shared_regions]
    best: dict[str, Any] | None = None
    for variable, start in zip(regions, starts, strict=True):
        distance, side = _gap(address, size, start, start + variable.size)
        if best is None or distance < best["distance"]:
            best = {
                "name": variable.name, "address": start, "size": variable.size, "distance": distance, "side": side,
                "state": "live",
            }  # fmt: skip
    return best


def _gap(address: int, size: int, start: int, end: int) -> tuple[int, str]:
    if address < start:
        return start - address, "before"
    if address + size > end:
        return max(address - end + 1, 1), "after"
    return 0, "inside"


def _chain(loc: Loc | None) -> list[Loc]:
    found = []
    while loc is not None:
        found.append(loc)
        loc = loc.parent
    return found


def _is_toolkit(loc: Loc) -> bool:
    parts = PurePath(loc.file).parts
    return "nvidia" in parts or "cuda" in parts or "cccl" in parts or not loc.file


def _place(loc: Loc | None) -> Loc | None:
    """The innermost position that is not in the toolkit's headers."""
    chain = _chain(loc)
    return next((p for p in chain if not _is_toolkit(p)), chain[0] if chain else None)


def _frames(loc: Loc | None, function: str) -> list[dict[str, Any]]:
    """The inlining chain, innermost first."""
    chain = _chain(loc)
    return [{"function": p.function or function, "file": p.file, "line": p.line} for p in chain]


def _lanes(places: tuple[Place, ...], kernel: Kernel) -> list[dict[str, Any]]:
    """Where each thread is: those that left the kernel only counted by their absence, and at most 64 named."""
    found = []
    for p in places:
        if p.doing == "left the kernel" or p.site >= len(kernel.sites):
            continue
        loc = _place(kernel.sites[p.site][2].loc)
        found.append({
            "block": list(p.block), "thread": list(p.thread), "doing": p.doing,
            "file": loc.file if loc else None, "line": loc.line if loc else None,
        })  # fmt: skip
    return found[:_MAX_LANES]


def _message(stop: Stop, found: dict[str, Any]) -> str:
    if stop.detail and stop.code != Code.HANG:
        return stop.detail
    if stop.code == Code.ACCESS:
        return _access_message(stop, found)
    if stop.code == Code.HANG:
        return _hang_message(stop, found)
    return {
        Code.ILLEGAL: "illegal instruction",
        Code.TRAP: "the kernel executed trap",
        Code.BAD_CALL: f"call of 0x{stop.address:x}, where no function of that shape starts",
        Code.STACK: f"stack overflow: a call chain needs {stop.address} bytes of local memory",
        Code.BAD_BRANCH: f"indexed branch with index {stop.address}, beyond its table",
    }.get(stop.code, stop.detail)


def _access_message(stop: Stop, found: dict[str, Any]) -> str:
    what = "misaligned" if found["kind"] == "misaligned-address" else "invalid"
    text = f"{what} {found['space']} {found['access']} of size {stop.size} bytes at 0x{found['address']:x}"
    near = found.get("allocation")
    if not near:
        return text
    if near["side"] == "inside":
        state = "inside the freed" if near["state"] == "freed" else "inside the"
        return f"{text}, {state} allocation {near['name']} of {near['size']} bytes"
    return (
        f"{text}, {near['distance']} bytes {near['side']} the nearest allocation {near['name']} of {near['size']} bytes"
    )


def _hang_message(stop: Stop, found: dict[str, Any]) -> str:
    if stop.deadlock:
        return "deadlock: no thread of the block can go on; " + _summary(found.get("lanes", []))
    reason = stop.detail or "the time or loop limit of the launch was reached"
    return f"hang: {reason}; " + _summary(found.get("lanes", []))


def _summary(lanes: list[dict[str, Any]]) -> str:
    groups: dict[tuple[str, object], int] = {}
    for lane in lanes:
        key = (lane["doing"], lane["line"])
        groups[key] = groups.get(key, 0) + 1
    return "; ".join(f"{count} threads: {doing} (line {line})" for (doing, line), count in groups.items())
