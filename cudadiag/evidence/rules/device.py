"""Rules about what the device did: checkers' findings, asserts, core files, CUDA error codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cudadiag.evidence.caused import caused_by_assert, caused_by_checker, caused_by_core
from cudadiag.evidence.codes import cuda_codes
from cudadiag.evidence.rules.build import (
    caused_in_buffer,
    failure_fault,
    fault,
    noticed_of,
    told,
    unresolved,
    with_place,
    witnessed_fault,
)
from cudadiag.evidence.rules.leaks import recorded_leak, reported_leak
from cudadiag.evidence.rules.view import BEFORE_LAUNCH, CudaFailure, Evidence
from cudadiag.evidence.sanitizer import SanitizerReport
from cudadiag.model import Caused, FaultKind, Outcome, Verdict

LAUNCH_GROUP = "launch"
OTHERS_HOLD = 0.05
"""Share of the device's memory that others must hold before an out-of-memory is not held against the shape."""
OTHERS_HOLD_BYTES = 1 << 30
EMULATED_HANG = 702
"""What the emulated device answers for a launch that hangs: it ends it itself, to say where every thread stood."""


def checker_record(evidence: Evidence) -> Verdict | None:
    """The emulated device's memory checker recorded a fault: a fault, whatever the program did with it; a launch it
    had to end (702) is a hang."""
    leaks = evidence.expected.leaks
    records = [r for r in evidence.facts.device_records if leaks or r.get("kind") != FaultKind.LEAK]
    if not records:
        return None
    first = records[0]
    if first.get("kind") == FaultKind.LEAK:
        return recorded_leak(evidence, records)
    found = witnessed_fault(
        evidence,
        str(first.get("message") or f"the memory checker recorded {first.get('kind')}"),
        kind=_checker_kind(first),
        caused=caused_by_checker(first),
        detail=f"{len(records)} records" if len(records) > 1 else None,
    )
    number = found.fault.number if found.fault else None
    is_hang = first.get("kind") == FaultKind.LAUNCH_TIMEOUT or number == EMULATED_HANG
    return replace(found, outcome=Outcome.HANG) if is_hang else found


def _checker_kind(record: Mapping[str, object]) -> FaultKind:
    known = {kind.value for kind in FaultKind}
    kind = str(record.get("kind"))
    return FaultKind(kind) if kind in known else FaultKind.OTHER_CUDA


def sanitizer_finding(evidence: Evidence) -> Verdict | None:
    """compute-sanitizer reported a finding: a fault even where the program exits 0. Leaks count only when asked for,
    and only of a program that ended well (a failed one frees nothing); API errors are the program's own affair;
    warnings are no finding."""
    report = evidence.reading.sanitizer
    leaks = evidence.expected.leaks and evidence.ended_well and evidence.told_failure is None
    findings = report.findings(leaks=leaks) if report else ()
    if evidence.reading.device_assert is not None:  # its own line says more
        findings = tuple(record for record in findings if record.kind is not FaultKind.DEVICE_ASSERT)
    if not findings:
        return None
    first = findings[0]
    if first.is_leak:
        return reported_leak(evidence, [record for record in findings if record.is_leak])
    caused = caused_in_buffer(evidence, first)
    return witnessed_fault(
        evidence,
        with_place(evidence, first.message, caused),
        kind=first.kind,
        caused=caused,
        detail=_counted(len(findings), report),
    )


def _counted(findings: int, report: SanitizerReport | None) -> str | None:
    """How many findings there are, and how many records the tool counted without printing them."""
    words = f"{findings} findings" if findings > 1 else None
    if report is None or not report.not_printed:
        return words
    left_out = f"{report.not_printed} of {report.errors} records were not printed"
    return f"{words}; {left_out}" if words else left_out


def device_assert(evidence: Evidence) -> Verdict | None:
    """A device assert printed its text: it beats every API error, and says where it was caused."""
    line = evidence.reading.device_assert
    if line is None:
        return None
    noticed, name, number = noticed_of(evidence)
    return fault(
        evidence,
        line.text or "a device assert failed",
        kind=FaultKind.DEVICE_ASSERT,
        name=name if number == 710 else line.name,
        number=710,
        noticed=noticed,
        caused=caused_by_assert(line),
        detail=f"{line.count} threads" if line.count > 1 else None,
    )


def core_exception(evidence: Evidence) -> Verdict | None:
    """The GPU core file holds an exception."""
    core = evidence.reading.core
    if core is None or not core.exceptions:
        return None
    first = core.exceptions[0]
    return witnessed_fault(
        evidence,
        f"{first.name} in {first.kernel or 'an unnamed kernel'}",
        kind=first.kind,
        caused=caused_by_core(first),
    )


def hardware_xid(evidence: Evidence) -> Verdict | None:
    """The program failed and the kernel log holds an Xid of failing hardware meanwhile (ECC, NVLink, lost from the
    bus): that comes before any code, since consumed bad memory looks like the program's fault."""
    if evidence.ended_well and not evidence.error:
        return None
    for line in evidence.own_xids:
        entry = line.entry
        if entry is not None and entry.blame == "hardware" and entry.kind is not None:
            return witnessed_fault(
                evidence,
                f"Xid {line.number}, {entry.meaning}: {entry.action}",
                kind=entry.kind,
                detail=line.text or None,
            )
    return None


def poisoned_context(evidence: Evidence) -> Verdict | None:
    """In a process that ran several shapes, a sticky error came up before this shape launched anything: carried
    over."""
    failure = evidence.worker_failure
    if failure is None or not failure.is_sticky or evidence.position == 0 or failure.step not in BEFORE_LAUNCH:
        return None
    reason = f"{told(failure)}, before this shape launched anything: carried over from an earlier shape"
    return failure_fault(evidence, failure, reason, kind=FaultKind.POISONED_CONTEXT)


def sticky_code(evidence: Evidence) -> Verdict | None:
    """A sticky CUDA error was caught, printed, or only logged by the driver: a fault even if the program exits 0. A
    printed one is overruled only by a matched `success:` pattern with an exit status of 0."""
    failure = evidence.told_failure
    if failure is not None and failure.is_sticky and not _overruled(evidence, failure):
        return failure_fault(evidence, failure, told(failure) + _memcheck_note(evidence, failure))
    logged = next((f for f in evidence.logged_failures if f.is_sticky), None)
    if logged is None:
        return None
    ignored = " (the program did not report it)" if evidence.told_failure is None else ""
    return failure_fault(evidence, logged, told(logged) + ignored + _memcheck_note(evidence, logged))


def _overruled(evidence: Evidence, failure: CudaFailure) -> bool:
    return failure.source == "output" and evidence.ended_well and bool(evidence.reading.success_found)


def _memcheck_note(evidence: Evidence, failure: CudaFailure) -> str:
    if evidence.expected.tool == "memcheck" and failure.number == 719:
        return "; under memcheck every device fault reads 719"
    return ""


def out_of_memory(evidence: Evidence) -> Verdict | None:
    """The device had no memory left: our own demand is a fault; where others held the memory it says nothing of the
    shape."""
    failure = evidence.told_failure
    if failure is None or failure.number != 2 or _overruled(evidence, failure):
        return None
    others, total = _held_by_others(evidence)
    fits = evidence.expected.asked_bytes is None or total is None or evidence.expected.asked_bytes <= total
    if others is not None and total and others > max(OTHERS_HOLD_BYTES, OTHERS_HOLD * total) and fits:
        return unresolved(
            f"out of memory while others held {others / 2**30:.1f} of {total / 2**30:.1f} GiB of the device: "
            "free the device, or choose another with --device"
        )
    return failure_fault(evidence, failure, told(failure))


def _held_by_others(evidence: Evidence) -> tuple[int | None, int | None]:
    """Bytes that were taken before this probe allocated anything, and the device's total."""
    for memory in (evidence.facts.result.get("memory"), evidence.facts.device_facts):
        if isinstance(memory, Mapping):
            total = memory.get("total", memory.get("total_bytes", memory.get("total_memory")))
            free = memory.get("free_before", memory.get("free_bytes", memory.get("free_memory")))
            if isinstance(total, int) and isinstance(free, int):
                return total - free, total
    return None, None


def launch_error(evidence: Evidence) -> Verdict | None:
    """A launch was refused and the program checked: a fault of kind launch-limit (1 invalid value on current
    drivers, 9 on older ones, 701, 720, 912)."""
    failure = evidence.told_failure
    if failure is None or failure.is_sticky or _overruled(evidence, failure):
        return None
    code = cuda_codes().get(failure.number or 0)
    if (code is not None and code.group == LAUNCH_GROUP) or (failure.number == 1 and _asks_launch(evidence, failure)):
        return failure_fault(evidence, failure, told(failure), kind=_limit_kind(failure))
    return None


def _limit_kind(failure: CudaFailure) -> FaultKind:
    code = cuda_codes().get(failure.number or 0)
    return code.kind if code and code.kind and code.group == LAUNCH_GROUP else FaultKind.LAUNCH_LIMIT


def _asks_launch(evidence: Evidence, failure: CudaFailure) -> bool:
    """Code 1 is a launch's where the call says so, the driver's log does, or the step was the launch."""
    if failure.is_launch or failure.step == "launch":
        return True
    if failure.noticed.call in ("cudaFuncSetAttribute", "cuFuncSetAttribute", "cuKernelSetAttribute"):
        return True
    logged = next((f for f in evidence.logged_failures if f.number == failure.number), None)
    return logged is not None and logged.is_launch


def skipped_launch(evidence: Evidence) -> Verdict | None:
    """The driver logged a launch it refused and the program never said so: the kernel did not run."""
    refused = evidence.logged_launch
    if refused is None or evidence.told_failure is not None:
        return None
    words = evidence.driver_words()
    reason = f"{told(refused)}; nobody checked, so the kernel never ran" + (f": {words}" if words else "")
    return Verdict(Outcome.SKIPPED, reason)


def environment_error(evidence: Evidence) -> Verdict | None:
    """A CUDA error about the installation (no device, driver too old, system not ready): says nothing about the
    shape."""
    failure = evidence.told_failure
    code = cuda_codes().get(failure.number or 0) if failure else None
    if failure is None or code is None or code.group != "environment" or evidence.ended_well:
        return None
    return unresolved(f"{told(failure)}: {code.meaning}")


def other_cuda_error(evidence: Evidence) -> Verdict | None:
    """Any other CUDA error of a program that then failed; codes about missing machine code even where it exits 0."""
    failure = evidence.told_failure
    if failure is None or _overruled(evidence, failure):
        return None
    code = cuda_codes().get(failure.number or 0)
    if code is not None and code.kind is None:
        return None
    fatal = failure.source == "worker" or not evidence.ended_well or (code is not None and code.group == "build")
    return failure_fault(evidence, failure, told(failure)) if fatal else None


def dump_begun(evidence: Evidence) -> Verdict | None:
    """A core dump was begun because of an exception, but no core can be read: its progress lines, or that the
    program then aborted, are the evidence."""
    progress = evidence.reading.progress
    if progress is None or evidence.reading.core is not None:
        return None
    if progress.exception is None and evidence.signal != 6:
        return None
    where = f" in {progress.kernel}" if progress.kernel else ""
    problem = evidence.reading.core_problem
    return fault(
        evidence,
        f"{progress.exception or 'an exception of unknown kind'}{where}, told by the beginning core dump"
        + (f"; {problem}" if problem else ""),
        kind=progress.kind or FaultKind.OTHER_CUDA,
        noticed=noticed_of(evidence)[0],
        caused=Caused(kernel=progress.kernel) if progress.kernel else None,
    )
