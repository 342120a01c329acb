"""The story of an incident: the first real fault, what is known of its cause, what follows from it, how sure "
"that is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cudadiag.evidence.codes import cuda_codes, is_sticky
from cudadiag.model import Caused, Fault, FaultKind, Noticed, Outcome, Verdict
from cudadiag.signature import Signature, may_be_one, signature
from cudadiag.triage.bench import BenchFacts, bench_facts
from cudadiag.triage.choose import api_witness, choose
from cudadiag.triage.fold import Fold, fold
from cudadiag.triage.misread import misreadings
from cudadiag.triage.readers.cuda_errors import tells_of_launch
from cudadiag.triage.scan import LogReading
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.table import Table, tables
from cudadiag.triage.verdicts import KIND_OUTCOMES, OUTCOMES, TriageVerdict, verdict_of

NO_FAULT = frozenset({TriageVerdict.NOTHING_WRONG, TriageVerdict.CAUSE_NOT_IN_LOG, TriageVerdict.NOT_A_CRASH})


@dataclass(frozen=True)
class Story:
    """What a log (or several of one incident) tells. `primary` is the sign the verdict rests on."""

    verdict: TriageVerdict
    fault: Fault | None
    primary: Sign | None
    cause: str | None  # a short word where there is no fault kind: `port-in-use`, `connection-refused`
    summary: str
    folds: tuple[Fold, ...] = ()
    misread: tuple[str, ...] = ()
    confidence: str = "high"
    confidence_reason: str = ""
    first_sign: Sign | None = None
    table: Table | None = None
    bench: BenchFacts = field(default_factory=BenchFacts)
    processes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        by_kind = KIND_OUTCOMES.get(self.fault.kind) if self.fault else None
        return by_kind or OUTCOMES[self.verdict]

    @property
    def signature(self) -> Signature | None:
        """The signature of the fault; None where there is none to tell apart."""
        if self.fault is None or self.verdict in NO_FAULT:
            return None
        outcome = self.outcome if self.outcome.is_failure else Outcome.FAULT
        return signature(Verdict(outcome, self.summary, self.fault))

    @property
    def key(self) -> str | None:
        """The fine signature, or for what has none a key made of verdict and cause."""
        found = self.signature
        if found is not None:
            return found.fine
        return None if self.verdict is TriageVerdict.NOTHING_WRONG else f"v1/{self.verdict.value}/{self.cause or '-'}"

    @property
    def coarse(self) -> str | None:
        found = self.signature
        return found.coarse if found is not None else self.key


def tell(readings: Sequence[LogReading]) -> Story:
    """The story of the logs of one incident."""
    signs = sorted((sign for reading in readings for sign in reading.signs), key=lambda s: (s.source, s.order))
    primary = choose(signs)
    names = tuple(reading.name for reading in readings)
    processes = tuple(dict.fromkeys(p for reading in readings for p in reading.processes))
    table, bench = _bench(readings, primary)
    context = {
        "table": table,
        "bench": bench,
        "processes": processes,
        "names": names,
        "first_sign": _first_sign(signs, primary),
    }
    if primary is None:
        return Story(TriageVerdict.NOTHING_WRONG, None, None, None, "no sign of a fault in this log", confidence="low",
                     confidence_reason="a log that is cut off or of another program would look the same", **context)  # type: ignore[arg-type]  # fmt: skip
    verdict = TriageVerdict.CAUSE_NOT_IN_LOG if primary.role in (Role.CASCADE, Role.ECHO) else verdict_of(primary)
    fault = _fault(primary, signs) if primary.kind is not None and verdict not in NO_FAULT else None
    folds = tuple(fold(primary, _without_witness(signs, primary, fault)))
    level, reason = _confidence(primary, signs)
    return Story(
        verdict=verdict,
        fault=fault,
        primary=primary,
        cause=primary.cause,
        summary=_summary(verdict, primary, fault),
        folds=folds,
        misread=tuple(misreadings(primary, fault, signs, folds)),
        confidence=level,
        confidence_reason=reason,
        **context,  # type: ignore[arg-type]
    )


def _fault(primary: Sign, signs: Sequence[Sign]) -> Fault:
    assert primary.kind is not None
    noticed, name, number, found_by = primary.noticed, primary.name, primary.number, primary.reader
    caused = primary.caused
    if primary.role is Role.DEVICE:
        witness = api_witness(primary, signs)
        if witness is not None:
            noticed = _completed(witness, signs)
            keeps = (
                primary.kind is FaultKind.DEVICE_ASSERT
                and primary.number is not None
                and witness.number != primary.number
            )
            name, number = (name, number) if keeps else (witness.name, witness.number)
    elif primary.role is Role.HARDWARE:
        witness = api_witness(primary, signs)
        noticed = witness.noticed if witness else None
    elif primary.role in (Role.CUDA, Role.RESOURCE):
        noticed, name = _completed(primary, signs), _best_name(primary, signs)
        caused = caused or _from_kernel_log(primary, signs)
    elif primary.role is Role.KERNEL_LOG:
        noticed = None
    return Fault(_kind(primary, noticed, signs), name, number, noticed, caused, found_by, primary.words)


def _kind(primary: Sign, noticed: Noticed | None, signs: Sequence[Sign]) -> FaultKind:
    """Code 1 is a launch's where the call, or the driver's log, says so."""
    assert primary.kind is not None
    if primary.role is Role.CUDA and primary.number == 1 and primary.kind is FaultKind.OTHER_CUDA:
        if noticed is not None and tells_of_launch(noticed.call):
            return FaultKind.LAUNCH_LIMIT
        logged = [s for s in signs if s.reader == "driver-log" and s.number == 1]
        if logged and logged[0].kind is FaultKind.LAUNCH_LIMIT:
            return FaultKind.LAUNCH_LIMIT
    return primary.kind


NEAR_LINES = 3


def _near(primary: Sign, signs: Sequence[Sign]) -> Iterator[Sign]:
    """Signs of the same code on the lines right after, of the same process."""
    for sign in signs:
        if sign.role is Role.CUDA and sign.number == primary.number and sign.source == primary.source:
            same = sign.process == primary.process or sign.process is None or primary.process is None
            if same and 0 < sign.log_line - primary.log_line <= NEAR_LINES:
                yield sign


def _completed(primary: Sign, signs: Sequence[Sign]) -> Noticed | None:
    """Where it was noticed, with what the next lines about the same code add."""
    noticed = primary.noticed
    for other in _near(primary, signs):
        if noticed is None or other.noticed is None:
            continue
        both = noticed.file is None and other.noticed.file is not None
        noticed = dataclasses.replace(
            noticed,
            call=noticed.call or other.noticed.call,
            file=other.noticed.file if both else noticed.file,
            line=other.noticed.line if both or noticed.line is None else noticed.line,
        )
    return noticed


def _best_name(primary: Sign, signs: Sequence[Sign]) -> str | None:
    """The name as the log writes it, where only a number stood on the first line."""
    if primary.name and primary.name in primary.text:
        return primary.name
    written = next((s.name for s in _near(primary, signs) if s.name and s.name in s.text), None)
    return written or primary.name


def _from_kernel_log(primary: Sign, signs: Sequence[Sign]) -> Caused | None:
    """Access and address of an Xid that may be of the same fault, where the log has just one such process."""
    if primary.kind is None or not is_sticky(primary.number):
        return None
    told = [s for s in signs if s.role is Role.KERNEL_LOG and s.caused and s.kind and may_be_one(primary.kind, s.kind)]
    return told[0].caused if len(told) == 1 else None


def _without_witness(signs: Sequence[Sign], primary: Sign, fault: Fault | None) -> list[Sign]:
    """The API error that is part of the answer already is no echo of it."""
    if fault is None or fault.noticed is None or primary.role is not Role.DEVICE:
        return list(signs)
    witness = api_witness(primary, signs)
    return [sign for sign in signs if sign is not witness]


def _first_sign(signs: Sequence[Sign], primary: Sign | None) -> Sign | None:
    """The first thing that was off before the fault."""
    early = [s for s in signs if s.cause == "zero-accepted"]
    if not early or (primary is not None and primary.source == early[0].source and primary.order < early[0].order):
        return None
    return early[0]


def _bench(readings: Sequence[LogReading], primary: Sign | None) -> tuple[Table | None, BenchFacts]:
    found: list[Table] = []
    facts = BenchFacts()
    for source, reading in enumerate(readings):
        parts = (
            [(reading.head, 1)]
            if reading.size <= len(reading.head)
            else [(reading.head, 1), (reading.tail, reading.tail_line)]
        )
        for data, line in parts:
            here = tables(data, line)
            until = primary.log_line if primary is not None and primary.source == source else None
            told = bench_facts(data, here, until)
            facts.affected += [n for n in told.affected if n not in facts.affected]
            facts.worked += [n for n in told.worked if n not in facts.worked]
            facts.settings.update(told.settings)
            found += here
    facts.worked = [name for name in facts.worked if name not in facts.affected]
    return (found[-1] if found else None), facts


def _summary(verdict: TriageVerdict, primary: Sign, fault: Fault | None) -> str:
    if fault is None:
        return f"{primary.words or primary.cause or primary.text}"
    name = fault.name or fault.kind.value
    number = f" ({fault.number})" if fault.number is not None and fault.name else ""
    place = ""
    if fault.caused and fault.caused.kernel:
        place = f", caused in {fault.caused.kernel}" + (
            f" at {fault.caused.file}:{fault.caused.line}" if fault.caused.file else ""
        )
    elif fault.noticed and (fault.noticed.call or fault.noticed.file):
        where = f"{fault.noticed.file}:{fault.noticed.line}" if fault.noticed.file else ""
        place = f", noticed by {fault.noticed.call or 'a call'}" + (f" at {where}" if where else "")
    return f"{fault.kind.value}: {name}{number}{place}"


def _confidence(primary: Sign, signs: Sequence[Sign]) -> tuple[str, str]:
    if primary.role in (Role.CASCADE, Role.ECHO):
        return "high", "every complaint in the log follows from a process that is gone"
    if primary.role is Role.DEVICE and not primary.weak:
        return "high", "a witness on the device told it"
    if primary.role is Role.HARDWARE:
        return "high", "the driver reports the damage itself"
    rivals = _rivals(primary, signs)
    if rivals:
        return "medium", f"other processes report other codes ({', '.join(rivals)}); the earliest was taken"
    if primary.role is Role.CUDA:
        code = cuda_codes().get(primary.number or -1)
        if primary.cleanup or primary.settled:
            return "low", "only clean-up or handled errors are in the log"
        if code is not None and code.is_sticky:
            return "high", "the code is certain; the kernel that caused it is not in the log"
        return "medium", "the call itself raised it, provided that every launch before it was checked"
    if primary.role is Role.LIBRARY or primary.weak:
        return "low", "only an indirect witness is in the log"
    return "medium", "nothing stronger is in the log"


def _rivals(primary: Sign, signs: Sequence[Sign]) -> list[str]:
    """Codes that other processes report, which the first fault's code does not explain."""
    if primary.kind is None or primary.role is not Role.CUDA:
        return []
    others = {
        str(s.number)
        for s in signs
        if s.role is Role.CUDA and not s.cleanup and not s.settled and s.kind is not None and is_sticky(s.number)
        and s.number != primary.number and s.process != primary.process
    }  # fmt: skip
    return sorted(others)
