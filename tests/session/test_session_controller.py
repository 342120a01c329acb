"""The controller with real child processes: order, slots, what is kept when a part of ours breaks."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cudadiag.evidence import Expectations, to_json
from cudadiag.model import Axis, Outcome, Sweep
from cudadiag.report.watch import PlainWatcher
from cudadiag.session.controller import Controller
from cudadiag.session.judged import Judged
from cudadiag.session.judging import Judging
from cudadiag.session.plans import EveryShape, OneShape, UnlessHopeless, hopeless
from cudadiag.session.stop import Stop
from cudadiag.session.task import Task, Wanted
from cudadiag.store.ledger import LedgerWriter, read_ledger
from cudadiag.store.lines import ProbeLine, RunLine
from harness.launcher import run_probe
from harness.records import Limits, ProbeFacts, ProbeRequest

SWEEP = Sweep((Axis("n", tuple(range(6))),), tuple((n,) for n in range(6)))


class ShellBench:
    """A real bench on a shell command; counts how many run at once."""

    def __init__(self, script: str, slots: int = 1) -> None:
        self.slots: Sequence[str] = ["none"] * slots
        self.most = 0
        self.asked: list[int] = []
        self._script, self._now, self._lock = script, 0, threading.Lock()
        self._judging = Judging(Expectations())

    def request(self, task: Task, slot: str, folder: Path) -> ProbeRequest:
        self.asked.append(int(task.shape["n"]))
        argv = ["sh", "-c", self._script.replace("{n}", str(task.shape["n"]))]
        return ProbeRequest({"kind": "command", "argv": argv}, str(folder), limits=Limits(timeout_s=20))

    def run(self, request: ProbeRequest, stop: threading.Event) -> ProbeFacts:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            return run_probe(request, None, stop.is_set)
        finally:
            with self._lock:
                self._now -= 1

    def read(self, facts: ProbeFacts) -> dict[str, Any]:
        return to_json(self._judging.reading(facts))

    def judge(self, line: ProbeLine) -> Judged:
        return self._judging.judged(line)


def controller(folder: Path, bench: ShellBench, before: Sequence[ProbeLine] = ()) -> Controller:
    (folder / "probes").mkdir(exist_ok=True)
    run = RunLine("r", "", "0", (), "/", "sweep", "c", None, "0" * 64, {}, SWEEP, {}, {})
    return Controller(
        bench, LedgerWriter.create(folder / "ledger.jsonl", run), PlainWatcher(lines=False), Stop(), before
    )


def test_every_shape_is_run_once_in_order(tmp_path: Path) -> None:
    bench = ShellBench("exit {n}")
    run = controller(tmp_path, bench)
    run.follow(EveryShape(SWEEP))
    assert bench.asked == list(range(6))
    assert [j.outcome for j in run.history] == [Outcome.PASS] + [Outcome.FAULT] * 5
    ledger = read_ledger(tmp_path / "ledger.jsonl")
    assert [p.facts.exit_code for p in ledger.probes] == list(range(6))
    assert [p.number for p in ledger.probes] == [1, 2, 3, 4, 5, 6]


def test_slots_are_filled_and_never_overfilled(tmp_path: Path) -> None:
    bench = ShellBench("sleep 0.2", slots=3)
    run = controller(tmp_path, bench)
    began = time.monotonic()
    run.follow(EveryShape(SWEEP))
    assert bench.most == 3
    assert len(run.history) == 6
    assert time.monotonic() - began < 6 * 0.2 + 5


def test_a_resumed_run_goes_on_with_the_next_number_and_counts_repeats(tmp_path: Path) -> None:
    first = controller(tmp_path, ShellBench("true"))
    first.follow(OneShape({"n": 2}, 2, repeat=2))
    lines = [judged.line for judged in first.history]
    again = tmp_path / "again"
    again.mkdir()
    second = controller(again, ShellBench("true"), lines)
    second.follow(OneShape({"n": 2}, 2, repeat=3))
    assert [(j.line.number, j.line.repeat) for j in second.history] == [(1, 0), (2, 1), (3, 2)]


def test_a_reader_with_a_bug_loses_no_finished_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ShellBench("exit 7")

    def broken(facts: ProbeFacts) -> dict[str, Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(bench, "read", broken)
    with pytest.raises(ZeroDivisionError):
        controller(tmp_path, bench).follow(OneShape({"n": 1}, 1))
    (line,) = read_ledger(tmp_path / "ledger.jsonl").probes
    assert line.facts.exit_code == 7


def test_an_error_ends_the_probes_that_are_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ShellBench("test {n} = 0 || sleep 60", slots=2)

    def broken(line: ProbeLine) -> Judged:
        raise ZeroDivisionError

    monkeypatch.setattr(bench, "judge", broken)
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        controller(tmp_path, bench).follow(EveryShape(SWEEP))
    assert time.monotonic() - began < 20


def test_a_plan_is_asked_again_only_when_all_it_asked_for_has_ended(tmp_path: Path) -> None:
    lengths = []

    class ThreeThenTwo:
        def next(self, history: Sequence[Judged]) -> Wanted:
            lengths.append(len(history))
            count = {0: 3, 3: 2}.get(len(history), 0)
            return Wanted((Task({"n": 0}, 0, "one"),) * count)

    controller(tmp_path, ShellBench("true", slots=2)).follow(ThreeThenTwo())
    assert lengths == [0, 3, 5]


def test_hopeless_means_one_reason_and_no_evidence(tmp_path: Path) -> None:
    run = controller(tmp_path, ShellBench("true"))
    run.follow(OneShape({"n": 1}, 1))
    assert hopeless(run.history, patience=1) is None
    missing = tmp_path / "missing"
    missing.mkdir()
    bench = ShellBench("true")
    bench.request = lambda task, slot, folder: ProbeRequest({"kind": "command", "argv": ["./gone"]}, str(folder))  # type: ignore[method-assign]
    run = controller(missing, bench)
    run.follow(UnlessHopeless(EveryShape(SWEEP, at_once=3), patience=3))
    assert 3 <= len(run.history) <= 6
    assert hopeless(run.history, patience=3) is not None
