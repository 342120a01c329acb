"""`gate merge`: the shards of a gate decided together, and their ledgers joined into one for each case."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cudadiag.errors import UsageError
from cudadiag.gate.baseline import Baseline
from cudadiag.gate.caserun import CaseRun
from cudadiag.gate.decide import decide, exit_code
from cudadiag.gate.past import seen_in
from cudadiag.gate.planning import parse_shard
from cudadiag.gate.rates import power_words
from cudadiag.gate.record import FOLDER, NAME, Record, read_record
from cudadiag.gate.report import GateReport
from cudadiag.gate.sourceplace import repository_root
from cudadiag.store.folders import Store
from cudadiag.store.ledger import LEDGER_NAME, Ledger, LedgerWriter, read_ledger
from cudadiag.store.lines import RunLine, sweep_to_json


@dataclass(frozen=True)
class Merged:
    """The shards as one. `troubles`: shards that are missing or did not finish. `all_cases`: none of them was given
    names of cases."""

    runs: tuple[CaseRun, ...]
    troubles: tuple[CaseRun, ...]
    all_cases: bool
    wall_s: float
    started: str


def records(places: Iterable[Path]) -> list[Record]:
    """The newest record of each shard in the folders given (stores, or a gate's own folder). Raises UsageError."""
    newest: dict[str, Record] = {}
    for place in places:
        paths = [place / NAME] if (place / NAME).is_file() else sorted((place / FOLDER).glob(f"*/{NAME}"))
        if not paths:
            raise UsageError(f"no gate's record in {place}", hint="give the folders that --store named: .cudadiag")
        for record in map(read_record, paths):
            before = newest.get(record.shard)
            if before is None or (before.started, before.gate) < (record.started, record.gate):
                newest[record.shard] = record
    counts = {parse_shard(shard).count for shard in newest}
    if len(counts) != 1:
        shards = ", ".join(sorted(newest))
        raise UsageError(f"shards of different gates: {shards}", hint="empty the stores between gates")
    return [newest[shard] for shard in sorted(newest, key=lambda shard: parse_shard(shard).number)]


def merge(found: Sequence[Record]) -> Merged:
    """The shards decided as one run. What is missing is a problem of its own, never silently nothing. Raises
    UsageError where they ran different things."""
    by_name: dict[str, list[tuple[Record, CaseRun]]] = {}
    for record in found:
        for run in record.runs:
            by_name.setdefault(run.name, []).append((record, run))
    runs = [_joined(name, parts) for name, parts in by_name.items()]
    count = parse_shard(found[0].shard).count
    present = {parse_shard(record.shard).number: record for record in found}
    troubles = [
        CaseRun(f"shard {n}/{count}", problem="its record is not among those given")
        for n in range(1, count + 1)
        if n not in present
    ]
    unfinished = [record.shard for record in found if not record.finished]
    troubles += [CaseRun(f"shard {shard}", problem="it was ended before it had finished") for shard in unfinished]
    return Merged(
        tuple(runs),
        tuple(troubles),
        all(record.all_cases for record in found),
        max(record.wall_s for record in found),
        min(record.started for record in found),
    )


def report_of(
    merged: Merged, baseline: Baseline, today: datetime.date, strict: bool, command_line: tuple[str, ...]
) -> GateReport:
    """What the shards say together."""
    runs = (*merged.troubles, *merged.runs)
    findings = decide(merged.troubles, Baseline(), today, all_cases=False)
    findings += decide(merged.runs, baseline, today, all_cases=merged.all_cases)
    return GateReport(
        gate="merged",
        started=merged.started,
        runs=runs,
        findings=findings,
        exit_code=exit_code(findings, runs, strict=strict),
        finished=True,
        strict=strict,
        power=power_words(min((run.repeat for run in merged.runs if run.chosen), default=1)),
        root=repository_root(Path.cwd()),
        baseline=baseline.path,
        command_line=command_line,
        wall_s=merged.wall_s,
    )


def _joined(name: str, parts: Sequence[tuple[Record, CaseRun]]) -> CaseRun:
    first = parts[0][1]
    chosen = {c.index: c for _, run in parts for c in run.chosen}
    problems = [f"shard {record.shard}: {run.problem}" for record, run in parts if run.problem]
    folders = tuple(folder for _, run in parts for folder in run.run_folders)
    ledgers = [read_ledger(Path(folder) / LEDGER_NAME) for folder in folders]
    _check_same(name, parts, ledgers)
    if chosen and not ledgers and not problems:
        problems = ["planned and not run"]
    return replace(
        first,
        sweep=ledgers[0].run.sweep if ledgers else first.sweep,
        chosen=tuple(sorted(chosen.values(), key=lambda c: (-c.weight, c.index))),
        cut=frozenset(index for _, run in parts for index in run.cut),
        seen=tuple(seen for ledger in ledgers for seen in seen_in(ledger)),
        problem="; ".join(problems) or None,
        left_out=first.left_out if all(run.left_out for _, run in parts) else None,
        run_folders=folders,
        sources=tuple(ledgers[0].run.sources) if ledgers else (),
    )


def _check_same(name: str, parts: Sequence[tuple[Record, CaseRun]], ledgers: Sequence[Ledger]) -> None:
    """Raises UsageError where the shards did not run the same case of the same sources with the same parameters."""
    runs = [ledger.run for ledger in ledgers]
    if len({(run.case_hash, tuple(sorted(run.sources.values()))) for run in runs}) > 1:
        raise UsageError(f"the case {name} or its sources differ between the shards")
    fixed = [run.fixed for _, run in parts if run.run_folders]
    if any(sweep_to_json(run.sweep) != sweep_to_json(runs[0].sweep) for run in runs) or any(
        f != fixed[0] for f in fixed
    ):
        raise UsageError(f"the case {name} has other shapes in one shard than in another")


def join_ledgers(merged: Merged, store: Store, command_line: tuple[str, ...]) -> Merged:
    """One ledger for each case in `store`, with the probes of all its runs, numbered anew."""
    runs = []
    for run in merged.runs:
        if run.run_folders:
            ledgers = [read_ledger(Path(folder) / LEDGER_NAME) for folder in run.run_folders]
            run = replace(run, run_folders=(str(_write(ledgers, store, command_line)),))
        runs.append(run)
    return replace(merged, runs=tuple(runs))


def _write(ledgers: Sequence[Ledger], store: Store, command_line: tuple[str, ...]) -> Path:
    first = ledgers[0].run
    folder = store.new_run(first.case_name, datetime.datetime.now(datetime.UTC))
    line: RunLine = dataclasses.replace(first, run_id=folder.name, command_line=command_line)
    with LedgerWriter.create(folder / LEDGER_NAME, line) as writer:
        number = 0
        for ledger in ledgers:
            for probe in ledger.probes:
                number += 1
                writer.append(replace(probe, number=number))
    return folder
