"""GPUs are held by one run at a time."""

from __future__ import annotations

from collections.abc import Sequence

from cudadiag.errors import Undecided
from harness.slots import DeviceBusy, DeviceClaim, claim_devices


def claim(labels: Sequence[str], wait_s: float) -> DeviceClaim:
    """Hold these devices until the claim is released. Raises Undecided where another run holds one."""
    try:
        return claim_devices(labels, wait_s)
    except DeviceBusy as busy:
        raise Undecided(str(busy), hint="--wait SECONDS waits for it; --device takes another") from busy
    except OSError as problem:
        hint = "CUDADIAG_LOCK_DIR puts the locks into another folder"
        raise Undecided(f"cannot use the device locks: {problem}", hint=hint) from problem


def is_claimed(label: str) -> bool:
    """Whether another run holds this device now."""
    try:
        claim_devices([label]).release()
    except DeviceBusy:
        return True
    except OSError:
        return False  # `claim` will say what is wrong
    return False
