"""The signature of a verdict: a versioned key made of device facts, in two grains.

`fine`   v1/fault/out-of-bounds/write/global/attn<N>/attn.cu:41 `coarse` v1/fault/memory-access/attn

No address, pid, time, thread, block, path or order is in it, nor where the fault was noticed: that moves with blocking.
Parts that are not known read `-`. Host faults are told apart by exception, signal or exit status and the host's own
line.
"""

from __future__ import annotations

from dataclasses import dataclass

from cudadiag.evidence.names import without_template
from cudadiag.model import Caused, Fault, FaultKind, Outcome, Verdict
from cudadiag.signature.families import family
from cudadiag.signature.normal import normal_file, normal_kernel

VERSION = 1
_HOST = frozenset({FaultKind.HOST_SIGNAL, FaultKind.HOST_EXCEPTION, FaultKind.HOST_EXIT, FaultKind.DIED_AFTER_FINISH})


@dataclass(frozen=True)
class Signature:
    """The parts a key is made of; None for what is not known."""

    outcome: Outcome
    kind: FaultKind | None = None
    access: str | None = None
    space: str | None = None
    kernel: str | None = None  # template numbers normalised
    file: str | None = None  # its own name only
    line: int | None = None
    name: str | None = (
        None  # of a host fault or of a CUDA error that is no kernel's: what tells it from others of its kind
    )
    version: int = VERSION

    @property
    def fine(self) -> str:
        """The key that tells one place from another."""
        place = f"{_word(self.file)}:{self.line}" if self.line is not None else _word(self.file)
        parts = (
            (self.kind, self.access, self.space, self.kernel, place)
            if self.name is None
            else (self.kind, self.name, place)
        )
        return self._joined(parts if self.kind else (self.kernel, place))

    @property
    def coarse(self) -> str:
        """The key that witnesses of one fault share when they know the kernel: family of kinds, and kernel."""
        kernel = without_template(self.kernel) if self.kernel else None
        if self.kind is None:
            return self._joined((kernel,))
        return self._joined((family(self.kind), self.name if self.name is not None else kernel))

    def _joined(self, parts: tuple[str | None, ...]) -> str:
        return "/".join((f"v{self.version}", self.outcome.value, *(_word(part) for part in parts)))


def signature(verdict: Verdict) -> Signature | None:
    """The signature of a failure; None for `pass` and `unresolved`, which are none."""
    if not verdict.outcome.is_failure:
        return None
    fault = verdict.fault
    if fault is None:
        return Signature(verdict.outcome)
    caused = fault.caused or Caused()
    if fault.kind in _HOST:
        return _host_signature(verdict.outcome, fault)
    return Signature(
        outcome=verdict.outcome,
        kind=fault.kind,
        access=caused.access,
        space=caused.space,
        kernel=normal_kernel(caused.kernel),
        file=normal_file(caused.file),
        line=caused.line,
        name=_plain_name(fault),
    )


def _plain_name(fault: Fault) -> str | None:
    """For a kind that covers many CUDA errors and has no cause on the device, the error's number tells them apart."""
    if fault.kind is FaultKind.OTHER_CUDA and fault.caused is None:
        return str(fault.number) if fault.number is not None else fault.name
    return None


def _host_signature(outcome: Outcome, fault: Fault) -> Signature:
    noticed = fault.noticed
    name = fault.name or (str(fault.number) if fault.number is not None else None)
    file, line = (normal_file(noticed.file), noticed.line) if noticed else (None, None)
    return Signature(outcome, fault.kind, file=file, line=line, name=name or "-")


def _word(part: str | None) -> str:
    """One part of a key: on one line, without the sign that keeps parts apart."""
    plain = "".join(char if char.isprintable() else " " for char in part or "")
    return " ".join(plain.split()).replace("/", "|") or "-"
