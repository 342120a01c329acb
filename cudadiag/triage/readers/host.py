"""How the host program ended: signals, exit statuses, exceptions nobody caught, host assertions."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from cudadiag.evidence.signals import signal_name
from cudadiag.model import FaultKind, Noticed
from cudadiag.triage.readers.python_frames import is_source_line, noticed_in, python_place
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot

_SIGNALS = (
    (re.compile(r"Segmentation fault|SIGSEGV|signal (?:11|SIGSEGV)\b|segfault at |signal=11\b|=11/SEGV"
                r"|access violation|0xc0000005"), 11),
    (re.compile(r"Bus error|SIGBUS|signal 7\b|=7/BUS"), 7),
    (re.compile(r"Floating point exception|SIGFPE|signal 8\b|=8/FPE|divide error"), 8),
    (re.compile(r"(?:^|\W)Illegal instruction(?: \(core dumped\)|\s*$)|SIGILL|=4/ILL|trap invalid opcode"), 4),
    (re.compile(r"\*\*\* stack smashing detected|double free or corruption|free\(\): invalid|malloc\(\): "
                r"|corrupted size vs"
                r"|munmap_chunk\(\)|Aborted(?: \(core dumped\))?\s*$|SIGABRT|signal 6\b|=6/ABRT"
                r"|Fatal Python error: Aborted|0xc0000409"
                r"|terminate called"), 6),
    (re.compile(r"(?:^|\s|:)Killed\s*$|SIGKILL|signal 9\b|=9/KILL|Killed {2,}"), 9),
)  # fmt: skip
_EXIT = re.compile(
    r"(?i)(?:exit(?:ed)?(?:[ _]?(?:with|code|status))*|return(?:ed)?[ _]?(?:code|status)|\brc|exitCode)\W{1,12}"
    r"(?:(?:exit )?(?:code|status|value)\W{1,3})?(?P<code>-?\d{1,5}|0x[0-9a-fA-F]{8})\b"
)
_HEX_ENDS = {0xC0000409: 6, 0xC0000005: 11, 0xC00000FD: 11}
"""Windows: fail-fast (an abort), access violation, stack overflow."""
_EXCEPTION = re.compile(
    r"^\W{0,3}(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Fault|Resources"
    r"|Interrupt))(?::\s?(?P<message>.*))?$"
)
_TERMINATE = re.compile(r"terminate called after throwing an instance of '(?P<type>[^']+)'")
_WHAT = re.compile(r"^\s*what\(\):\s*(?P<message>.*)$")
_ASSERTION = re.compile(
    r"(?P<file>[^\s:]+\.\w+):(?P<line>\d{1,9}): (?P<function>.{0,300}?): "
    r"Assertion [`'](?P<message>.{0,300}?)[`'] failed"
)
_GGML_ASSERT = re.compile(
    r"(?P<file>\S+?):(?P<line>\d{1,9}): GGML_ASSERT\((?P<message>.*?)\) failed"
    r"|GGML_ASSERT: (?P<file2>\S+?):(?P<line2>\d{1,9}): (?P<message2>.*)"
)
_PLAIN = re.compile(r"(?i)^(?:fatal|error|panic)\b\s*[:!]\s*(?P<message>.{4,200})$")
_DIED_WITH = re.compile(r"died with <Signals\.SIG\w+: (?P<number>\d{1,2})>")
NAMED = frozenset(number.value for number in signal.Signals)
_MENTION = re.compile(r"(?i)handler|signal\.signal|trap '|ignor|previous|avoid|may|could|would|if you")


class Host:
    """The reader."""

    name = "host"

    def read(self, spot: Spot) -> Iterator[Sign]:
        if is_source_line(spot):
            return
        found = (
            _child_died(spot)
            or _exception(spot)
            or _terminate(spot)
            or _assertion(spot)
            or _ended(spot)
            or _exited(spot)
            or _plain(spot)
        )
        if found is not None:
            yield found


def _sign(spot: Spot, kind: FaultKind, **fields: object) -> Sign:
    return Sign(Role.HOST, spot.log_line, spot.quote, kind=kind, **fields)  # type: ignore[arg-type]


def _exception(spot: Spot) -> Sign | None:
    match = _EXCEPTION.match(spot.text.strip())
    if match is None or len(match["type"]) > 120:
        return None
    place = python_place(spot)
    if place is None and match["message"] is None:
        return None
    noticed = noticed_in(place, spot, spot.text.strip()[:300])
    return _sign(
        spot, FaultKind.HOST_EXCEPTION, name=match["type"].rsplit(".", 1)[-1], noticed=noticed, cause="exception",
        words="an exception nobody caught", weak=place is None, cleanup=bool(place and place.ignored),
    )  # fmt: skip


def _terminate(spot: Spot) -> Sign | None:
    match = _TERMINATE.search(spot.text)
    if match is None:
        return None
    kind = re.sub(r"std::(?:__\w+::)?basic_string<char,.*>", "std::string", match["type"])
    what = next((m["message"] for line in spot.after(2) if (m := _WHAT.match(line.text))), None)
    noticed = Noticed(None, None, None, spot.log_line, (what or kind)[:300])
    return _sign(
        spot,
        FaultKind.HOST_EXCEPTION,
        name=kind,
        noticed=noticed,
        cause="exception",
        words="an exception nobody caught",
    )


def _assertion(spot: Spot) -> Sign | None:
    match = _ASSERTION.search(spot.text)
    if match:
        noticed = Noticed(match["function"], match["file"], int(match["line"]), spot.log_line, match["message"])
        return _sign(
            spot,
            FaultKind.HOST_EXCEPTION,
            name="assertion",
            noticed=noticed,
            cause="assertion",
            words="a host assertion failed",
        )
    ggml = _GGML_ASSERT.search(spot.text)
    if ggml is None:
        return None
    file, line, message = (ggml[1], ggml[2], ggml[3]) if ggml[1] else (ggml[4], ggml[5], ggml[6])
    return _sign(
        spot, FaultKind.HOST_EXCEPTION, name="assertion", cause="assertion", words="a host assertion failed",
        noticed=Noticed(None, file, int(line), spot.log_line, message),
    )  # fmt: skip


def _child_died(spot: Spot) -> Sign | None:
    """Python's subprocess on how its child ended."""
    match = _DIED_WITH.search(spot.text)
    return _signal(spot, int(match["number"])) if match and int(match["number"]) in NAMED else None


def _ended(spot: Spot) -> Sign | None:
    for pattern, number in _SIGNALS:
        if pattern.search(spot.text) and not _MENTION.search(spot.text):
            return _signal(spot, number)
    return None


def _signal(spot: Spot, number: int, *, weak: bool = False) -> Sign:
    name = signal_name(number)
    words = f"the process died of {name}"
    if number == 9:
        words += ": often the system's memory killer"
    return _sign(
        spot, FaultKind.HOST_SIGNAL, name=name, number=number, cause="signal", words=words,
        noticed=Noticed(None, None, None, spot.log_line, spot.text.strip()[:200]), weak=weak,
    )  # fmt: skip


def _exited(spot: Spot) -> Sign | None:
    match = _EXIT.search(spot.text)
    if match is None:
        return None
    code = int(match["code"], 0) if match["code"].startswith("0x") else int(match["code"])
    return exit_sign(spot, code)


def exit_sign(spot: Spot, code: int) -> Sign | None:
    """An exit status as a sign: 128+n and -n are signals, 0 is none."""
    number = _HEX_ENDS.get(code & 0xFFFFFFFF)
    if number is None and (-32 < code < 0 or 128 < code < 160):
        number = -code if code < 0 else code - 128
    if code == 0 or number in (2, 13, 15):
        return None
    if number in (4, 5, 6, 7, 8, 9, 11):
        return _signal(spot, number, weak=True)
    return _sign(
        spot, FaultKind.HOST_EXIT, number=code, cause="exit-status", weak=True,
        words=f"it ended with exit status {code}",
        noticed=Noticed(None, None, None, spot.log_line, spot.text.strip()[:200]),
    )  # fmt: skip


def _plain(spot: Spot) -> Sign | None:
    match = _PLAIN.match(spot.text.strip())
    if match is None:
        return None
    return _sign(
        spot, FaultKind.HOST_EXCEPTION, name="error", cause="error-line", words="an error line", weak=True,
        noticed=Noticed(None, None, None, spot.log_line, match["message"]),
    )  # fmt: skip
