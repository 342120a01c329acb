"""Which sign is the first real fault. The rules are LOGS.md's "Which line wins", in this order:

1. A witness on the device (assert, sanitizer record, debugger, core dump) beats every API error; damage the driver
   reports (ECC, NVLink, a lost GPU) beats the errors that follow from it.
2. Then the earliest CUDA error, or lack of memory, in time; clean-up, errors a program says it coped with, and library
   statuses count only where nothing else is there.
3. Then hangs, wrong results, the environment, refusals that are no crash, and how the host program ended.
4. What only follows from a dead process names no cause at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cudadiag.evidence.codes import cuda_codes, is_sticky
from cudadiag.model import FaultKind
from cudadiag.signature import may_be_one
from cudadiag.triage.sign import Role, Sign

AFTERMATH = frozenset({4, 201, 400, 709, 3})
"""Codes that a dead or dying context gives to whoever still uses it: beside any other error they are its echo."""
NEEDS_SERVER = frozenset({"context-too-long", "bad-request", "rate-limit", "stopped"})
"""Refusals that leave a server alive: they do not explain why it is gone."""
SERVER_GONE = frozenset({"engine-dead", "worker-dead", "connection-refused", "connection-lost"})
DAMAGE = frozenset({FaultKind.ECC, FaultKind.NVLINK})
CRASHES = frozenset({4, 7, 8, 9, 11})
"""Signals that say something even in a supervisor's summary; an abort was preceded by its reason elsewhere."""


def earliest(signs: Sequence[Sign]) -> Sign | None:
    """The first in time where all carry stamps of one clock, else the first in the order of the input."""
    if not signs:
        return None
    clocks = {sign.moment.clock if sign.moment else None for sign in signs}
    if len(clocks) == 1 and None not in clocks:
        return min(signs, key=lambda s: (s.moment.seconds if s.moment else 0.0, s.source, s.order))
    return min(signs, key=lambda s: (s.source, s.order))


def choose(signs: Sequence[Sign]) -> Sign | None:
    """The sign that names the first real fault; a CASCADE sign where the log has only consequences; None where it
    complains of nothing."""
    for rule in RULES:
        found = rule(signs)
        if found is not None:
            return found
    return None


def _with_role(signs: Iterable[Sign], *roles: Role) -> list[Sign]:
    return [sign for sign in signs if sign.role in roles]


def program_witness(signs: Sequence[Sign]) -> Sign | None:
    """A device assert or a sanitizer's record: the program's own fault, whatever else is reported."""
    told = [s for s in _with_role(signs, Role.DEVICE) if not s.weak and (s.reader == "sanitizer" or _is_assert(s))]
    asserts = [s for s in told if _is_assert(s)]
    return _unless_later(earliest(asserts) or earliest(told), signs)


def _is_assert(sign: Sign) -> bool:
    return sign.kind is FaultKind.DEVICE_ASSERT and sign.caused is not None and sign.caused.file is not None


def damage(signs: Sequence[Sign]) -> Sign | None:
    """ECC, NVLink and lost devices, of the kernel log or as a CUDA error."""
    told = [s for s in _with_role(signs, Role.CUDA) if s.kind in DAMAGE and not s.settled and not s.cleanup]
    return earliest(_with_role(signs, Role.HARDWARE)) or earliest(told)


def device_witness(signs: Sequence[Sign]) -> Sign | None:
    """A debugger's or a core dump's exception."""
    return _unless_later(earliest([s for s in _with_role(signs, Role.DEVICE) if not s.weak]), signs)


def _unless_later(witness: Sign | None, signs: Sequence[Sign]) -> Sign | None:
    """A witness of a later life of the program does not explain an error before its restart."""
    if witness is None:
        return None
    starts = [s.order for s in signs if s.cause == "start" and s.source == witness.source and s.order < witness.order]
    if not starts:
        return witness
    before = [
        s
        for s in _with_role(signs, Role.CUDA)
        if s.source == witness.source and s.order < max(starts) and not s.settled and not s.cleanup
    ]
    return None if before else witness


def cuda_error(signs: Sequence[Sign]) -> Sign | None:
    """The earliest CUDA error or lack of memory."""
    errors = [s for s in _with_role(signs, Role.CUDA, Role.RESOURCE) if not s.weak]
    errors = _without_shadows(errors)
    preferences: tuple[Callable[[Sign], bool], ...] = (
        lambda s: not s.settled and not s.cleanup and s.number not in AFTERMATH and not _is_setup(s),
        lambda s: not s.cleanup and not s.settled and s.number not in AFTERMATH,
        lambda s: not s.cleanup and is_sticky(s.number),
        lambda s: not s.cleanup and s.number not in AFTERMATH,
        lambda s: is_sticky(s.number),
        lambda s: not s.settled,
    )
    for preferred in preferences:
        found = earliest([s for s in errors if preferred(s)])
        if found is not None:
            return _in_own_words(found, errors)
    return None


def _in_own_words(found: Sign, errors: Sequence[Sign]) -> Sign:
    """The same error as the program itself told it, where a tool or the driver's log told it first: it has the line."""
    if found.role is not Role.CUDA or found.reader == "cuda-error":
        return found
    own = [s for s in errors if s.reader == "cuda-error" and s.number == found.number and not s.cleanup]
    return earliest(own) or found


def _is_setup(sign: Sign) -> bool:
    """Errors about the machine, printed by probing code, that a program which later faults on the device survived."""
    code = cuda_codes().get(sign.number or -1) if sign.role is Role.CUDA else None
    return code is not None and code.group == "environment"


def _without_shadows(errors: Sequence[Sign]) -> list[Sign]:
    """Of two signs of one line (a CUDA error and a wording about memory) the CUDA error, which knows its place."""
    lines = {(s.source, s.log_line) for s in errors if s.role is Role.CUDA and s.kind is not FaultKind.OTHER_CUDA}
    return [s for s in errors if s.role is Role.CUDA or (s.source, s.log_line) not in lines]


def library_status(signs: Sequence[Sign]) -> Sign | None:
    """A library's status, where no CUDA error stands beside it."""
    return earliest(_with_role(signs, Role.LIBRARY)) or earliest(
        [s for s in _with_role(signs, Role.RESOURCE) if s.weak]
    )


def kernel_log(signs: Sequence[Sign]) -> Sign | None:
    """An Xid that a program's fault raises, where nobody else said anything."""
    return earliest([s for s in _with_role(signs, Role.KERNEL_LOG) if not s.weak])


def dump_begun(signs: Sequence[Sign]) -> Sign | None:
    """A core dump that was begun and told nothing: the driver saw an exception."""
    return earliest([s for s in _with_role(signs, Role.KERNEL_LOG) if s.weak])


def host_crash(signs: Sequence[Sign]) -> Sign | None:
    """A signal the host program died of, with no exception before it that explains it."""
    ends = [
        s
        for s in _with_role(signs, Role.HOST)
        if s.kind is FaultKind.HOST_SIGNAL and not s.weak and s.number in CRASHES
    ]
    return earliest(ends)


def hang(signs: Sequence[Sign]) -> Sign | None:
    return earliest([s for s in _with_role(signs, Role.HANG) if not s.weak])


def wrong(signs: Sequence[Sign]) -> Sign | None:
    told = _with_role(signs, Role.WRONG)
    return earliest([s for s in told if not s.weak]) or earliest(told)


def environment(signs: Sequence[Sign]) -> Sign | None:
    return earliest([s for s in _with_role(signs, Role.ENVIRONMENT) if not s.weak])


def refusal(signs: Sequence[Sign]) -> Sign | None:
    """What is no crash. Where a server is gone, a refusal that leaves a server alive is not the reason."""
    gone = any(s.cause in SERVER_GONE for s in _with_role(signs, Role.CASCADE))
    told = [s for s in _with_role(signs, Role.NOT_A_CRASH) if not (gone and s.cause in NEEDS_SERVER)]
    telling = [s for s in told if not s.weak]
    if telling:
        return earliest(telling)
    lines = {(s.source, s.log_line) for s in told}
    crashed = [s for s in _own_exceptions(signs) if (s.source, s.log_line) not in lines]
    return None if crashed else earliest(told)


def host_exception(signs: Sequence[Sign]) -> Sign | None:
    """The first exception of the program's own, that is none of what follows from another process."""
    return earliest(_own_exceptions(signs))


def _own_exceptions(signs: Sequence[Sign]) -> list[Sign]:
    followed = {(s.source, s.log_line) for s in _with_role(signs, Role.CASCADE, Role.HANG)}
    own = [
        s
        for s in _with_role(signs, Role.HOST)
        if s.kind is FaultKind.HOST_EXCEPTION and not s.weak and (s.source, s.log_line) not in followed
    ]
    return [s for s in own if not s.cleanup] or own


def weak_hang(signs: Sequence[Sign]) -> Sign | None:
    return earliest([s for s in _with_role(signs, Role.HANG) if s.weak])


def host_end(signs: Sequence[Sign]) -> Sign | None:
    """How the program ended, where that is all: a signal even out of a supervisor's summary, an abort or an exit status
    only where nothing else complains."""
    ends = _with_role(signs, Role.HOST)
    signals = [s for s in ends if s.kind is FaultKind.HOST_SIGNAL and s.number in CRASHES]
    if signals:
        return earliest(signals)
    summaries = {(s.source, s.log_line) for s in signs if s.cause == "torchrun-summary"}
    aborts = [
        s for s in ends if s.kind is FaultKind.HOST_SIGNAL and not s.weak and (s.source, s.log_line) not in summaries
    ]
    if aborts:
        return earliest(aborts)
    if _with_role(signs, Role.CASCADE):
        return None
    strong = [s for s in ends if not s.weak] or [s for s in ends if s.kind is FaultKind.HOST_EXCEPTION]
    return earliest(strong) or earliest([s for s in ends if s.kind is FaultKind.HOST_SIGNAL]) or earliest(ends)


def weak_environment(signs: Sequence[Sign]) -> Sign | None:
    return earliest([s for s in _with_role(signs, Role.ENVIRONMENT) if s.weak])


def leak(signs: Sequence[Sign]) -> Sign | None:
    """Leaks a sanitizer was asked for, where nothing else was found."""
    return earliest([s for s in _with_role(signs, Role.DEVICE) if s.weak])


def consequence(signs: Sequence[Sign]) -> Sign | None:
    return earliest(_with_role(signs, Role.CASCADE)) or earliest(_with_role(signs, Role.ECHO))


RULES: tuple[Callable[[Sequence[Sign]], Sign | None], ...] = (
    program_witness,
    damage,
    device_witness,
    cuda_error,
    host_crash,
    kernel_log,
    library_status,
    hang,
    dump_begun,
    wrong,
    environment,
    refusal,
    host_exception,
    host_end,
    leak,
    weak_hang,
    weak_environment,
    consequence,
)


def api_witness(primary: Sign, signs: Sequence[Sign]) -> Sign | None:
    """The CUDA error by which the program itself noticed a fault that a witness on the device told."""
    errors = [s for s in _with_role(signs, Role.CUDA) if not s.cleanup and s.kind is not None]
    fitting = [
        s for s in errors if primary.kind and s.kind and (may_be_one(primary.kind, s.kind) or is_sticky(s.number))
    ]
    own = [s for s in fitting if s.reader == "cuda-error"]
    return (
        earliest(own) or earliest(fitting) or (earliest(errors) if primary.kind is FaultKind.USE_AFTER_FREE else None)
    )
