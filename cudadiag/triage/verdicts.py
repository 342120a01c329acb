"""The one table from what was found to the verdict, and from the verdict to DESIGN's outcomes."""

from __future__ import annotations

from enum import StrEnum

from cudadiag.evidence.codes import cuda_codes
from cudadiag.model import FaultKind, Outcome
from cudadiag.triage.sign import Role, Sign


class TriageVerdict(StrEnum):
    """What a log is about. `nothing-wrong`: nothing was found, which proves nothing where the log may be cut off."""

    FAULT = "fault"
    HANG = "hang"
    WRONG = "wrong"
    RESOURCE = "resource"
    ENVIRONMENT = "environment"
    HARDWARE = "hardware"
    HOST = "host"
    NOT_A_CRASH = "not-a-crash"
    CAUSE_NOT_IN_LOG = "cause-not-in-log"
    NOTHING_WRONG = "nothing-wrong"


OUTCOMES = {
    TriageVerdict.FAULT: Outcome.FAULT,
    TriageVerdict.HANG: Outcome.HANG,
    TriageVerdict.WRONG: Outcome.WRONG,
    TriageVerdict.RESOURCE: Outcome.FAULT,
    TriageVerdict.ENVIRONMENT: Outcome.UNRESOLVED,
    TriageVerdict.HARDWARE: Outcome.FAULT,
    TriageVerdict.HOST: Outcome.FAULT,
    TriageVerdict.NOT_A_CRASH: Outcome.UNRESOLVED,
    TriageVerdict.CAUSE_NOT_IN_LOG: Outcome.UNRESOLVED,
    TriageVerdict.NOTHING_WRONG: Outcome.UNRESOLVED,
}
"""DESIGN's outcome of a probe whose log it were. What says nothing about the shape is `unresolved`."""

KIND_OUTCOMES = {FaultKind.NO_KERNEL_IMAGE: Outcome.FAULT}
"""Kinds that are a fault of the probe whatever the verdict: evidence's own table says so."""

KIND_VERDICTS = {
    FaultKind.OUT_OF_MEMORY: TriageVerdict.RESOURCE,
    FaultKind.NO_KERNEL_IMAGE: TriageVerdict.ENVIRONMENT,
    FaultKind.ECC: TriageVerdict.HARDWARE,
    FaultKind.NVLINK: TriageVerdict.HARDWARE,
    FaultKind.DEVICE_LOST: TriageVerdict.HARDWARE,
    FaultKind.LAUNCH_TIMEOUT: TriageVerdict.HANG,
    FaultKind.HOST_SIGNAL: TriageVerdict.HOST,
    FaultKind.HOST_EXIT: TriageVerdict.HOST,
    FaultKind.HOST_EXCEPTION: TriageVerdict.HOST,
    FaultKind.DIED_AFTER_FINISH: TriageVerdict.HOST,
}
"""Kinds that are not here are a device fault."""

ROLE_VERDICTS = {
    Role.RESOURCE: TriageVerdict.RESOURCE,
    Role.HANG: TriageVerdict.HANG,
    Role.WRONG: TriageVerdict.WRONG,
    Role.ENVIRONMENT: TriageVerdict.ENVIRONMENT,
    Role.HARDWARE: TriageVerdict.HARDWARE,
    Role.HOST: TriageVerdict.HOST,
    Role.NOT_A_CRASH: TriageVerdict.NOT_A_CRASH,
    Role.CASCADE: TriageVerdict.CAUSE_NOT_IN_LOG,
}
GROUP_VERDICTS = {"environment": TriageVerdict.ENVIRONMENT, "build": TriageVerdict.ENVIRONMENT}
TOO_MANY_RESOURCES = 701


def code_group(number: int | None) -> str | None:
    """The group of a CUDA error in the table of codes: kernel, launch, environment, build, ..."""
    code = cuda_codes().get(number) if number is not None else None
    return code.group if code else None


def verdict_of(sign: Sign) -> TriageVerdict:
    """The verdict of a log whose first real fault a sign tells."""
    if sign.role in ROLE_VERDICTS:
        return ROLE_VERDICTS[sign.role]
    if sign.number == TOO_MANY_RESOURCES and sign.role is Role.CUDA:
        return TriageVerdict.RESOURCE
    group = code_group(sign.number) if sign.role is Role.CUDA else None
    if group in GROUP_VERDICTS:
        return GROUP_VERDICTS[group]
    return KIND_VERDICTS.get(sign.kind, TriageVerdict.FAULT) if sign.kind else TriageVerdict.FAULT
