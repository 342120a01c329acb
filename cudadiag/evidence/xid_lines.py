"""Xid lines of the NVIDIA driver's kernel log, from any kernel log or journal. Pure and total.

An Xid 31 names the address and the kind of access; 31 and 43 carry pid and program, 13 does not. Pids differ inside
containers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cudadiag.evidence.codes import Xid, xids

_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]{4,20})\): (?P<number>\d{1,5})"
    r"(?:,\s*pid='?(?P<pid>\d{1,20}|<unknown>|unknown)'?)?(?:,\s*name=(?P<name>[^,]*))?,?\s*(?P<text>.*)"
)
_PCI = re.compile(r"(?:PCI:)?(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.\d)?")
_ADDRESS = re.compile(r"faulted @ 0x(?P<address>[0-9a-fA-F_]+)")
_ACCESS = re.compile(r"ACCESS_TYPE_(?:VIRT_|PHYS_)?(?P<access>READ|WRITE|ATOMIC\w*)")


@dataclass(frozen=True)
class XidLine:
    """One Xid. `pci` as written, `address` and `access` of an MMU fault (31)."""

    number: int
    pci: str
    text: str
    log_line: int = 1
    pid: int | None = None
    name: str | None = None
    address: int | None = None
    access: str | None = None

    @property
    def entry(self) -> Xid | None:
        """What the table says of this number."""
        return xids().get(self.number)


def xid_lines(lines: Iterable[str]) -> tuple[XidLine, ...]:
    """Every Xid in the lines of a kernel log, in order."""
    matches = ((number, _XID.search(line)) for number, line in enumerate(lines, start=1))
    return tuple(_xid_line(match, number) for number, match in matches if match is not None)


def same_device(a: str, b: str) -> bool:
    """Whether two ways to write a PCI address (0000:41:00, 00000000:41:00.0, PCI:0000:41:00) mean one device."""
    first = _pci_numbers(a)
    return first is not None and first == _pci_numbers(b)


def _pci_numbers(text: str) -> tuple[int, int, int] | None:
    match = _PCI.fullmatch(text.strip())
    return (int(match[1] or "0", 16), int(match[2], 16), int(match[3], 16)) if match else None


def _xid_line(match: re.Match[str], log_line: int) -> XidLine:
    text = match["text"].strip()
    address, access = _ADDRESS.search(text), _ACCESS.search(text)
    digits = address["address"].replace("_", "") if address else ""
    return XidLine(
        number=int(match["number"]),
        pci=match["pci"],
        text=text[:300],
        log_line=log_line,
        pid=int(match["pid"]) if match["pid"] and match["pid"].isdigit() else None,
        name=(match["name"] or "").strip() or None,
        address=int(digits, 16) if digits else None,
        access=access["access"].lower() if access else None,
    )
