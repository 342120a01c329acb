"""Words that several explanations use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from cudadiag.diagnose.evidence import Evidence
from cudadiag.diagnose.experiments import Experiment
from cudadiag.diagnose.interface import sound
from cudadiag.diagnose.witness import HOST_KINDS, Witness
from cudadiag.evidence.allocations import buffers_of
from cudadiag.evidence.allocations import words as allocation_words
from cudadiag.evidence.codes import is_sticky
from cudadiag.evidence.names import caller_name
from cudadiag.model import Caused, Fault, FaultKind, Outcome

BAD_ACCESS = (FaultKind.OUT_OF_BOUNDS, FaultKind.USE_AFTER_FREE, FaultKind.ILLEGAL_ADDRESS)


def place(caused: Caused | None) -> str:
    """`verify_attn at verify_attn.cu:108`; "an unnamed place" where nothing is known."""
    if caused is None:
        return "an unnamed place"
    line = f" at {os.path.basename(caused.file)}:{caused.line}" if caused.file and caused.line else ""
    return f"{caller_name(caused.kernel) or caused.kernel or 'an unnamed kernel'}{line}"


def access(witness: Witness) -> str:
    """`write of 4 bytes in verify_attn at verify_attn.cu:108, right at the end of `scores` (row 17)`.

    By the buffers of the probe itself: each process has addresses of its own.
    """
    caused = witness.caused or Caused()
    size = f" of {caused.size} bytes" if caused.size else ""
    what = f"{caused.access or 'access'}{size} in {place(caused)}"
    if caused.allocation is None:
        return f"{what}, to {caused.space} memory" if caused.space not in (None, "global") else what
    own = buffers_of(witness.result)
    near = allocation_words(caused.allocation, buffers=own, address=caused.address)
    return f"{what}, {near}"


def best(witnesses: Iterable[Witness]) -> Witness:
    """The one that knows most about the cause; there must be one."""
    rows = tuple(witnesses)
    known = [w for w in rows if w.caused is not None and w.caused.line is not None]
    return next(iter(known or rows))


def told_numbers(evidence: Evidence) -> list[int]:
    """The CUDA errors the shape ended with where no tool changed them (memcheck turns every one into 719)."""
    return sorted({w.error_number for w in _told(evidence) if w.error_number is not None})


def _told(evidence: Evidence) -> list[Witness]:
    return [w for w in evidence.failing if w.tool is None and w.kind not in HOST_KINDS]


def only_printed(witness: Witness) -> bool:
    """Whether a CUDA error is known from the program's own text alone: no worker caught it with its number, the driver
    did not log it, no tool and no core file recorded anything, and the kernel log has no Xid."""
    error = witness.result.get("error")
    caught = isinstance(error, Mapping) and (error.get("number") is not None or error.get("cuda_name") is not None)
    log, report = witness.reading.driver_log or (), witness.reading.sanitizer
    logged = any(entry.is_error and entry.number == witness.error_number for entry in log)
    seen = any(record.is_api and record.number == witness.error_number for record in (report.records if report else ()))
    return not (caught or logged or seen or witness.recorded_kinds or witness.judged.line.facts.xid.lines)


def only_text(evidence: Evidence, witnesses: Iterable[Witness]) -> bool:
    """Whether no device is in use and only a text says so: then no more than a suggestion follows. On a device what a
    program prints of CUDA's errors counts as told by CUDA."""
    return evidence.setting.device == "none" and all(map(only_printed, witnesses))


def printed_words(witnesses: Iterable[Witness]) -> str:
    """`the program printed cudaErrorIllegalAddress (700)`, or the text where it printed no name."""
    told = {w.error_number: w for w in witnesses if w.error_number is not None}
    each = [f"{_as_printed(told[number])} ({number})" for number in sorted(told)]
    return f"the program printed {' and '.join(each) if each else 'an error of CUDA'}"


def as_told(why: str, witnesses: Iterable[Witness]) -> str:
    """`why`, after what the program printed where nothing else says so."""
    rows = tuple(witnesses)
    return f"{printed_words(rows)}: {why}" if all(map(only_printed, rows)) else why


def _as_printed(witness: Witness) -> str:
    fault = witness.fault or Fault(FaultKind.OTHER_CUDA)
    text = (fault.noticed.text if fault.noticed else None) or ""
    lines = (*witness.reading.stderr, *witness.reading.stdout)
    named = fault.name and (any(fault.name in line.raw for line in lines) or not text)
    return fault.name if fault.name and named else f'"{text}"' if text else "CUDA error"


def number_words(witnesses: Iterable[Witness]) -> str:
    """`the device reported 700`; `a CUDA call returned 2` where that is no fault of a kernel; `the program printed NAME
    (700)` where nobody else said so."""
    rows = [w for w in witnesses if w.error_number is not None]
    if all(map(only_printed, rows)):
        return printed_words(rows)
    told = sorted({w.error_number for w in rows if w.error_number is not None})
    who = "the device reported" if any(map(is_sticky, told)) else "a CUDA call returned"
    return f"{who} {' and '.join(map(str, told))}"


def numbers_words(evidence: Evidence) -> str:
    """How the shape ended: `the device reported 700 and 719`, or what happened instead. A whole sentence."""
    if told_numbers(evidence):
        return number_words(_told(evidence))
    if evidence.failing and all(w.tool for w in evidence.failing):
        return f"it fails only under {_list(w.observer for w in evidence.failing)}{_recorded(evidence)}"
    ended = _list(ENDED.get(w.outcome, w.outcome.value) for w in evidence.failing if w.tool is None)
    if not ended:
        return "nothing failed"
    looked = _watched(evidence) if _ended_by_itself(evidence) else ""
    if looked and not _logged_errors(evidence):
        return f"{ended}; no CUDA call returned an error ({looked})"
    return f"{ended}, without an error of CUDA's"


def left_open(evidence: Evidence, *errors: int) -> str:
    """Why it says nothing that none of these CUDA errors was seen; "" where it does.

    A program that ends itself may have met any of them and kept it to itself, unless somebody looked at its calls; and
    a text without a device is a word of the program's, which may be wrong.
    """
    if _ended_by_itself(evidence):
        if not _watched(evidence):
            return UNWATCHED
        found = sorted(_logged_errors(evidence) & set(errors))
        return f"a CUDA call returned {' and '.join(map(str, found))} before the program ended" if found else ""
    died = evidence.failing and all(w.outcome is Outcome.FAULT for w in evidence.failing)
    if died and only_text(evidence, evidence.failing):
        return f"{numbers_words(evidence)}, and nobody else says so"
    return ""


UNWATCHED = "the program ended by itself and nobody looked at its CUDA calls"


def _ended_by_itself(evidence: Evidence) -> bool:
    return bool(evidence.failing) and all(w.kind in HOST_KINDS for w in evidence.failing)


def _watched(evidence: Evidence) -> str:
    """Who looked at the CUDA calls of a failing run: `driver log`, `memcheck`; "" where nobody did."""
    if any(w.emulated for w in evidence.failing) and evidence.setting.target == "kernel":
        return "the emulated device"
    if evidence.setting.has_driver_log and any(w.reading.driver_log is not None for w in evidence.failing):
        return "driver log"
    return "memcheck" if any(w.outcome.is_failure for w in sound(evidence, Experiment.MEMCHECK)) else ""


def _logged_errors(evidence: Evidence) -> set[int]:
    """Errors that calls returned in the failing runs, by the driver's log and by memcheck, whatever came of them."""
    logged = {e.number for w in evidence.failing for e in w.reading.driver_log or () if e.is_error and not e.is_noise}
    reports = [w.reading.sanitizer for w in evidence.failing if w.reading.sanitizer]
    seen = {record.number for report in reports for record in report.records if record.is_api}
    return {number for number in logged | seen if number is not None}


ENDED = {
    Outcome.FAULT: "the program died",
    Outcome.HANG: "it hangs",
    Outcome.WRONG: "its result is wrong",
    Outcome.SKIPPED: "its kernel never ran",
}


def _recorded(evidence: Evidence) -> str:
    kinds = _list(kind.value for w in evidence.failing for kind in w.recorded_kinds)
    return f", which recorded {kinds}" if kinds else ""


def _list(words: Iterable[str]) -> str:
    return " and ".join(sorted(set(words)))


def differing(witnesses: Iterable[Witness]) -> str:
    """How the wrong results of probes that differ in nothing but chance differ: `821, then 930 elements are wrong`; ""
    where they do not. Between probes of one observer only, which lays out memory alike.

    Other values alone say nothing: sums of floating-point numbers by atomics come in any order.
    """
    seen: dict[str, list[str]] = {}
    for witness in witnesses:
        if witness.outcome is Outcome.WRONG:
            seen.setdefault(witness.observer, []).append(witness.judged.verdict.reason)
    for reasons in seen.values():
        if found := _difference(reasons):
            return found
    return ""


def _difference(reasons: list[str]) -> str:
    """What differs between reports of a wrong result: the counts, else the first element."""
    counts = list(dict.fromkeys(m[1] for reason in reasons if (m := re.search(r"differs in (\d+) of", reason))))
    if len(counts) > 1:
        return f"{counts[0]}, then {counts[1]} elements are wrong"
    firsts = list(dict.fromkeys(m[1] for reason in reasons if (m := re.search(r"first at (\[[^\]]*\])", reason))))
    return f"the first wrong element is {firsts[0]}, then {firsts[1]}" if len(firsts) > 1 else ""
