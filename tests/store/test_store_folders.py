"""Runs are found again by name, kept for a while, and cleaned only when nobody works on them."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cudadiag.errors import Undecided, UsageError
from cudadiag.model import Axis, Sweep
from cudadiag.store.atomic import OutputFile
from cudadiag.store.folders import Store, keep_probes, plan_removal, probe_folder, remove
from cudadiag.store.ledger import LedgerWriter
from cudadiag.store.lines import RunLine
from cudadiag.store.resume import refuse_if_different

NOW = datetime(2026, 11, 29, 18, 53, 13, tzinfo=UTC)
SWEEP = Sweep((Axis("n", (1, 2)),), ((1,), (2,)))


def make_run(store: Store, case: str, now: datetime) -> LedgerWriter:
    folder = store.new_run(case, now)
    line = RunLine(
        folder.name, now.isoformat(), "0.1.0", ("cudadiag",), "/", "run", case, None, "0" * 64, {}, SWEEP, {}, {}
    )
    return LedgerWriter.create(folder / "ledger.jsonl", line)


def test_a_run_is_found_by_name_by_end_by_path_by_case_and_as_last(tmp_path: Path) -> None:
    store = Store(tmp_path / ".cudadiag")
    with make_run(store, "alpha", NOW), make_run(store, "beta", NOW + timedelta(seconds=5)):
        alpha, beta = store.runs()
    assert [alpha.case_name, beta.case_name] == ["alpha", "beta"]
    for word in (alpha.run_id, alpha.run_id.rsplit("-", 1)[1], str(alpha.folder), str(alpha.ledger), "alpha"):
        assert store.find(word) == alpha
    assert store.find("last") == beta


def test_the_newest_run_of_a_case_wins(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seconds in (0, 60, 30):
        make_run(store, "alpha", NOW + timedelta(seconds=seconds)).close()
    assert store.find("alpha").started == (NOW + timedelta(seconds=60)).isoformat()


def test_an_unknown_run_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run 'alpha'"):
        Store(tmp_path).find("alpha")


def test_a_folder_that_is_no_run_is_passed_over(tmp_path: Path) -> None:
    store = Store(tmp_path)
    make_run(store, "alpha", NOW).close()
    (store.runs_folder / "foreign").mkdir()
    (store.runs_folder / "foreign" / "ledger.jsonl").write_bytes(b"\xff{")
    assert [r.case_name for r in store.runs()] == ["alpha"]


def test_runs_never_end_up_under_version_control(tmp_path: Path) -> None:
    store = Store(tmp_path / ".cudadiag")
    make_run(store, "alpha", NOW).close()
    assert (tmp_path / ".cudadiag/.gitignore").read_text() == "*\n"


def test_odd_case_names_make_plain_folder_names(tmp_path: Path) -> None:
    folder = Store(tmp_path).new_run("../a b/ü$(x)", NOW)
    assert folder.parent == tmp_path / "runs"
    assert "/" not in folder.name
    assert " " not in folder.name


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_undecided_not_a_traceback(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(Undecided, match="cannot make the run folder"):
        Store(tmp_path / "x").new_run("alpha", NOW)


def test_a_store_that_is_a_file_is_undecided(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(Undecided, match="cannot make the run folder"):
        Store(tmp_path / "x").new_run("alpha", NOW)


def test_cleaning_keeps_the_newest_and_what_is_going_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    running = make_run(store, "alpha", NOW)
    for day in (1, 2, 3):
        make_run(store, "alpha", NOW + timedelta(days=day)).close()
    make_run(store, "beta", NOW).close()
    removals = plan_removal(store.runs(), NOW, keep=2)
    assert [r.entry.started[8:10] for r in removals] == ["30"]
    for removal in removals:
        remove(removal)
    running.close()
    assert len(store.runs()) == 4


def test_cleaning_by_age_takes_the_old_ones_only(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for day in (0, 5, 9):
        make_run(store, "alpha", NOW + timedelta(days=day)).close()
    removals = plan_removal(store.runs(), NOW + timedelta(days=10), older_than_s=4.5 * 86400)
    assert [r.reason for r in removals] == ["10.0 days old", "5.0 days old"]
    assert all(r.size_bytes > 100 for r in removals)


def test_old_runs_lose_their_probes_files_and_keep_their_ledgers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for day in range(4):
        with make_run(store, "alpha", NOW + timedelta(days=day)) as writer:
            (probe_folder(writer.path.parent, 1) / "stdout").write_text("x")
    running = make_run(store, "alpha", NOW - timedelta(days=1))
    make_run(store, "beta", NOW - timedelta(days=2)).close()
    lost = keep_probes(store.runs(), "alpha", 2)
    assert [run.started[:10] for run in lost] == ["2026-11-29", "2026-11-30"]
    assert keep_probes(store.runs(), "alpha", 2) == []
    running.close()
    assert len(store.runs()) == 6
    left = sorted(tmp_path.glob("runs/*/probes/0001/stdout"))
    assert ["20261201" in str(left[0]), "20261202" in str(left[1]), len(left)] == [True, True, 2]


def test_a_probe_folder_starts_empty_even_after_a_killed_controller(tmp_path: Path) -> None:
    left = probe_folder(tmp_path, 7)
    (left / "stdout").write_text("half")
    assert list(probe_folder(tmp_path, 7).iterdir()) == []
    assert left.name == "0007"


def test_resume_names_every_difference() -> None:
    before = {"/k.cu": "1" * 64}
    run = RunLine("id", NOW.isoformat(), "0", (), "/", "run", "c", "/c.yaml", "0" * 64, before, SWEEP, {}, {})
    refuse_if_different(run, "0" * 64, before, SWEEP)
    refuse_if_different(run, "0" * 64, before, replace(SWEEP, constants={"LEN": 9}))  # older ledgers have none
    wider = Sweep((Axis("n", (1, 2, 3)),), ((1,), (2,), (3,)))
    with pytest.raises(UsageError) as caught:
        refuse_if_different(run, "f" * 64, {"/k.cu": "2" * 64, "/r.py": "3" * 64}, wider)
    message = caught.value.message
    assert "/c.yaml changed" in message
    assert "the sweep is another" in message
    assert "/k.cu changed" in message
    assert "/r.py is new" in message


def test_an_output_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "safe.json"
    target.write_text("old")
    with OutputFile(target):
        assert target.read_text() == "old"
    assert target.read_text() == "old"
    with OutputFile(target) as output:
        output.write(b"new")
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["safe.json"]


@pytest.mark.parametrize("name", ["missing/safe.json", "."])
def test_a_wrong_output_path_is_told_before_the_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        OutputFile(tmp_path / name)


def test_a_run_whose_ledger_is_damaged_is_told_as_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    make_run(store, "alpha", NOW).close()
    run = store.runs()[0]
    run.ledger.write_bytes(b"\xff\x00 no ledger")
    for word in (str(run.folder), str(run.ledger), run.run_id):
        with pytest.raises(UsageError, match="cannot be read as a ledger"):
            store.find(word)


def test_a_store_that_is_no_folder_or_not_there_has_no_runs(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    assert Store(tmp_path).runs() == []
    assert Store(tmp_path / "nowhere").runs() == []


@pytest.mark.parametrize(("keep", "words"), [(0, "no run of alpha is kept"), (1, "the newest run of alpha is kept")])
def test_why_a_run_goes_is_said_in_plain_words(tmp_path: Path, keep: int, words: str) -> None:
    store = Store(tmp_path)
    for seconds in (0, 60):
        make_run(store, "alpha", NOW + timedelta(seconds=seconds)).close()
    assert {removal.reason for removal in plan_removal(store.runs(), NOW, keep=keep)} == {words}
