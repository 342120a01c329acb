"""The kernel log: Xids. Which are damage and which a program's own fault is in data/xids.json; wordings decide within
one number: Xid 13 covers misaligned, illegal instruction and out of range alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudadiag.evidence.codes import xids
from cudadiag.model import Caused, FaultKind
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot

_XID = re.compile(
    r"(?:NVRM: )?Xid (?:\(PCI:(?P<bus>[0-9a-fA-F:.]+)\)|PCI:(?P<bus2>[0-9a-fA-F:.]+))?:? ?(?P<number>\d{1,3})\b[,:]?"
    r"(?P<rest>.*)|NVRM: GPU.{0,60}\bXid (?P<number3>\d{1,3})(?P<rest3>.*)"
)
_XID_TURNED = re.compile(r"\bXid (?P<number>\d{1,3}) PCI:(?P<bus>[0-9a-fA-F:.]+)(?P<rest>.*)")
_XID_TOLD = re.compile(r"(?i)\bxid(?: [a-z]+){0,2}s?[ :=#(]{1,3}(?P<number>\d{1,3})\b(?P<rest>.*)")
_OFF_BUS = re.compile(r"(?i)GPU has fallen off the bus|GPU is lost\b|Unable to determine the device handle for GPU")
_PID = re.compile(r"pid=['\"]?(?P<pid>\d{1,9})")
_ADDRESS = re.compile(r"faulted @ 0x(?P<address>[0-9a-fA-F_]+)")
_ACCESS = re.compile(r"ACCESS_TYPE_(?:VIRT|PHYS)_(?P<access>READ|WRITE|ATOMIC)")
_KINDS_13 = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"illegal instruction|invalid instruction", FaultKind.ILLEGAL_INSTRUCTION),
        (r"misaligned (?:address|addr)|misaligned reg", FaultKind.MISALIGNED_ADDRESS),
        (r"out of range (?:address|shared|local)|out.of.range", FaultKind.OUT_OF_BOUNDS),
        (r"invalid address space|address space", FaultKind.INVALID_ADDRESS_SPACE),
        (r"stack", FaultKind.HARDWARE_STACK),
        (r"invalid (?:pc|program counter)|pc wrap|misaligned pc", FaultKind.INVALID_PC),
        (r"mmu fault|illegal address|mmu nack", FaultKind.ILLEGAL_ADDRESS),
    )
)
_DAMAGE = frozenset({FaultKind.ECC, FaultKind.NVLINK, FaultKind.DEVICE_LOST})


class KernelLog:
    """The reader."""

    name = "kernel-log"

    def read(self, spot: Spot) -> Iterator[Sign]:
        text = spot.text
        match = _XID_TURNED.search(text) or _XID.search(text)
        told = None if match else _XID_TOLD.search(text)
        if match:
            groups = match.groupdict()
            number = int(groups.get("number") or groups.get("number3") or 0)
            yield _sign(spot, number, groups.get("rest") or groups.get("rest3") or "")
        elif told:
            yield _sign(spot, int(told["number"]), told["rest"])
        elif _OFF_BUS.search(text):
            yield Sign(
                Role.HARDWARE, spot.log_line, spot.quote, kind=FaultKind.DEVICE_LOST, name="Xid 79", number=79,
                cause="gpu-lost", words="the GPU can no longer be reached: hardware, power or PCIe",
            )  # fmt: skip


def _sign(spot: Spot, number: int, rest: str) -> Sign:
    entry = xids().get(number)
    kind = entry.kind if entry else None
    if number == 13:
        body = " ".join((rest, *(line.text for line in spot.after(1) if "Xid" in line.text and ": 13" in line.text)))
        kind = next((k for pattern, k in _KINDS_13 if pattern.search(body)), FaultKind.LAUNCH_FAILURE)
    role = Role.KERNEL_LOG
    if kind in _DAMAGE:
        role = Role.HARDWARE
    elif kind is None:
        role = Role.ECHO if entry is not None and entry.blame in ("consequence", "application") else Role.CONTEXT
    pid, address, access = _PID.search(rest), _ADDRESS.search(rest), _ACCESS.search(rest)
    caused = Caused(
        access=access["access"].lower() if access else None,
        address=int(address["address"].replace("_", ""), 16) if address else None,
        log_line=spot.log_line,
    )
    return Sign(
        role,
        spot.log_line,
        spot.quote,
        kind=kind,
        name=f"Xid {number}",
        number=number,
        caused=caused if address or access else None,
        cause=f"xid-{number}",
        words=f"{entry.meaning}. {entry.read}" if entry else "an Xid the table does not know",
        process=f"pid {pid['pid']}" if pid else None,
    )
