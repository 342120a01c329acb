"""Which kernel a record belongs to, out of its device and host frames."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cudadiag.evidence.names import base_name, caller_name, without_template
from cudadiag.evidence.sanitizer.records import Frame

_STUB = "__device_stub_"
_TOOLKIT = re.compile(
    r"(?:^|[/\\])(?:targets[/\\][^/\\]+[/\\]include|cuda[^/\\]*[/\\]include|cuda_runtime|crt)[/\\]|_intrinsics\.hpp$"
)


def user_place(where: Frame | None, device: Sequence[Frame]) -> Frame | None:
    """The innermost frame in the user's own source: a line of the toolkit's headers (`__syncwarp`) helps nobody."""
    own = (frame for frame in (where, *device) if frame and frame.file and not _TOOLKIT.search(frame.file))
    return next(own, where)


def kernel_name(where: Frame | None, device: Sequence[Frame], host: Sequence[Frame]) -> str | None:
    """The kernel: the host's launch stub names it where it is in the stack, else the outermost device frame does.

    Functions of the device runtime (`__assertfail`) are no kernels; without a better witness the answer is None.
    """
    innermost = base_name(where.function) if where else None
    launched = next((name for frame in host if (name := stub_name(frame.function))), None)
    names = [innermost, *(base_name(frame.function) for frame in device)]
    told = [name for name in names if name and not name.startswith("__")]
    if launched is None:
        caller = caller_name(where.function) if where else None
        return (caller if len(told) < 2 else None) or (told[-1] if told else None)
    return next((name for name in told if without_template(name) == without_template(launched)), launched)


def stub_name(function: str | None) -> str | None:
    """The kernel whose launch stub (made by nvcc) a host function is; None for other functions."""
    if function is None or _STUB not in function:
        return None
    return base_name(function.split(_STUB, 1)[1])
