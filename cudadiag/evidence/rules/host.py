"""Rules about the host program: wrong results, how it ended, and what proves a pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadiag.evidence.rules.build import fault, unresolved
from cudadiag.evidence.rules.view import BEFORE_CONTEXT, Evidence
from cudadiag.evidence.signals import signal_name
from cudadiag.model import FaultKind, Noticed, Outcome, Verdict

IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")
SHELL_SIGNALS = frozenset(128 + n for n in (4, 5, 6, 7, 8, 9, 11))
"""Exit statuses by which a shell passes on the signal its child died of."""


def wrong_result(evidence: Evidence) -> Verdict | None:
    """It ran, and an output differs from the reference, or an input was changed."""
    comparison = evidence.facts.result.get("comparison")
    if not evidence.expected.check or not isinstance(comparison, Mapping):
        return None
    outputs = comparison.get("outputs") or {}
    differing = [_differs(name, facts) for name, facts in outputs.items() if facts.get("differing")]
    changed = [f"input `{name}` was changed" for name in comparison.get("changed_inputs") or ()]
    reasons = differing + changed
    return Verdict(Outcome.WRONG, "; ".join(reasons)) if reasons else None


def _differs(name: str, facts: Mapping[str, Any]) -> str:
    text = f"output `{name}` differs in {facts['differing']} of {facts.get('elements', '?')} elements"
    first = facts.get("first")
    if isinstance(first, Mapping):
        index = ", ".join(str(i) for i in first.get("index", ()))
        text += f", first at [{index}]: {first.get('got')} instead of {first.get('expected')}"
    if facts.get("poison_left"):
        text += f"; {facts['poison_left']} were never written"
    if facts.get("nonfinite"):
        text += f"; {facts['nonfinite']} are not finite"
    return text


def died_after_finish(evidence: Evidence) -> Verdict | None:
    """It did its work (the end mark, or the `success:` pattern) and then died."""
    finished = evidence.finished if evidence.expected.is_worker else bool(evidence.reading.success_found)
    if not finished or evidence.ended_well:
        return None
    return fault(
        evidence, f"finished, then {_end(evidence)}", kind=FaultKind.DIED_AFTER_FINISH, detail=_host_words(evidence)
    )


def failed_before_context(evidence: Evidence) -> Verdict | None:
    """It failed before it reached its context (an ImportError, a missing file): says nothing about the shape."""
    if evidence.ended_well and not evidence.error:
        return None
    host = evidence.reading.host_error
    if evidence.expected.is_worker:
        early = evidence.step in BEFORE_CONTEXT or evidence.error.get("type") in IMPORT_ERRORS
        words = str(evidence.error.get("text") or _host_words(evidence) or _end(evidence))
        where = f"failed at step {evidence.step or 'start'}, before it reached the device: {words[:300]}"
        return unresolved(where) if early else None
    if host is not None and host.type in IMPORT_ERRORS:
        return unresolved(f"failed before it reached CUDA: {host.type}: {host.message}")
    if evidence.exit_code in (126, 127) and evidence.expected.target == "command":
        return unresolved(f"exit status {evidence.exit_code}: a command could not be found or run")
    return None


def host_exception(evidence: Evidence) -> Verdict | None:
    """The program ended by an exception nobody caught (Python or C++), or by a host assertion."""
    error = evidence.error
    host = evidence.reading.host_error
    told = host is not None and host.form in ("python", "terminate", "assertion") and not evidence.ended_well
    if (not error and not told) or error.get("type") == "SystemExit":
        return None
    text = f"{error.get('type')}: {error.get('text')}" if error else _host_words(evidence)
    file, line = (host.file, host.line) if host is not None and told else (error.get("file"), error.get("line"))
    noticed = Noticed(None, file, line, host.log_line if host is not None and told else None, text)
    return fault(
        evidence, text or "an exception", kind=FaultKind.HOST_EXCEPTION, name=_host_type(evidence), noticed=noticed
    )


def _host_type(evidence: Evidence) -> str | None:
    host = evidence.reading.host_error
    return str(evidence.error["type"]) if evidence.error.get("type") else (host.type if host else None)


def host_signal(evidence: Evidence) -> Verdict | None:
    """The program died of a signal we did not send, its own or a shell's 128+n."""
    number = evidence.signal
    if number is None and evidence.exit_code in SHELL_SIGNALS:
        number = (evidence.exit_code or 128) - 128
    if number is None:
        return None
    host = evidence.reading.host_error
    noticed = Noticed(None, host.file, host.line, host.log_line, host.type) if host is not None else None
    return fault(
        evidence,
        _end(evidence) + _signal_note(number),
        kind=FaultKind.HOST_SIGNAL,
        name=signal_name(number),
        number=number,
        noticed=noticed,
        detail=_host_words(evidence),
    )


def _signal_note(number: int) -> str:
    return ", not sent by cudadiag: perhaps the system's out-of-memory killer" if number == 9 else ""


def host_exit(evidence: Evidence) -> Verdict | None:
    """The program ended with a status other than 0 and nothing says why."""
    if evidence.exit_code in (None, 0):
        return None
    return fault(
        evidence, _end(evidence), kind=FaultKind.HOST_EXIT, number=evidence.exit_code, detail=_host_words(evidence)
    )


def success_missing(evidence: Evidence) -> Verdict | None:
    """Exit status 0, but what the case's `success:` asks for was never printed: it ran and did not succeed."""
    if evidence.reading.success_found is not False:
        return None
    return Verdict(Outcome.WRONG, f"exit status 0, but nothing printed matches `success: {evidence.expected.success}`")


def not_proven(evidence: Evidence) -> Verdict | None:
    """Nothing is wrong, but nothing proves that it ran to its end and was compared."""
    if evidence.exit_code is None:
        return unresolved("it left no exit status")
    if not evidence.expected.is_worker:
        return None
    if not evidence.finished:
        return unresolved("exit status 0 without the worker's end mark")
    compares = evidence.expected.check and evidence.expected.compared
    if compares and not isinstance(evidence.facts.result.get("comparison"), Mapping):
        return unresolved("finished, but no comparison with the reference was reported")
    return None


def passes(evidence: Evidence) -> Verdict | None:
    """Positive proof: the end mark after a device synchronise (kernel, python), or exit status 0 with the success
    pattern and no sticky code in the driver's log (command, service); under a sanitizer its summary line and health
    as well."""
    proof = _worker_proof(evidence) if evidence.expected.is_worker else _program_proof(evidence)
    report = evidence.reading.sanitizer
    if evidence.expected.tool is not None and report is not None:
        warnings = sum(record.is_advice for record in report.records)
        proof += f"; {evidence.expected.tool} summary: {report.errors or 0} errors"
        proof += f", {warnings} warnings" if warnings else ""
    return Verdict(Outcome.PASS, "nothing wrong was seen", proof=proof)


def _worker_proof(evidence: Evidence) -> str:
    return f"{_mark(evidence)}, {_compared(evidence)}"


def _mark(evidence: Evidence) -> str:
    synchronised = evidence.facts.result.get("synchronised")
    if synchronised:
        return "finished mark after a device synchronise"
    if isinstance(synchronised, list | tuple):
        return "finished mark, no CUDA was used"
    return "finished mark" + (f", {_log_proof(evidence)}" if evidence.expected.on_device else "")


def _compared(evidence: Evidence) -> str:
    comparison = evidence.facts.result.get("comparison")
    equal = evidence.expected.check and isinstance(comparison, Mapping) and comparison.get("outputs")
    return "outputs equal the reference" if equal else "outputs not compared"


def _program_proof(evidence: Evidence) -> str:
    success = ", success pattern found" if evidence.reading.success_found else ""
    return f"exit status 0{success}" + (", " + _log_proof(evidence) if evidence.expected.on_device else "")


def _log_proof(evidence: Evidence) -> str:
    if evidence.reading.driver_log is None:
        return "no driver log was asked for"
    return "no sticky code in the driver log" if evidence.reading.driver_log else "driver log empty"


def _end(evidence: Evidence) -> str:
    if evidence.signal is not None:
        return f"died of {signal_name(evidence.signal)}"
    code = evidence.exit_code
    if code in SHELL_SIGNALS and code is not None:
        return f"exit status {code} (as after {signal_name(code - 128)})"
    return f"exit status {code}"


def _host_words(evidence: Evidence) -> str | None:
    host = evidence.reading.host_error
    if host is None:
        return None
    where = f" at {host.file}:{host.line}" if host.file else ""
    return f"{host.type}{': ' + host.message if host.message else ''}{where}"
