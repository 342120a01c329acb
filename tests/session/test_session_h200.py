"""Ledgers of real H200 runs: judged and answered again, they say what was printed there."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import click
import pytest
from h200_runs import BISECTED, SWEPT, Runs

from cudadiag.cli.bisect import lines_of
from cudadiag.cli.explain import findings
from cudadiag.evidence import to_json
from cudadiag.report.answer import Findings
from cudadiag.report.fault import fault_title
from cudadiag.session.judged import Judged
from cudadiag.session.judging import judging_from_json

PROBE = re.compile(r"probe (\d+) +(\w+) +\S+=")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("h200"))


@functools.cache
def answered(runs: Runs, name: str) -> Findings:
    return findings(runs.ledger(name), None)


@functools.cache
def judged(runs: Runs, name: str) -> dict[int, Judged]:
    ledger = runs.ledger(name)
    judging = judging_from_json(ledger.run.settings["judging"])
    return {line.number: judging.judged(line) for line in ledger.probes}


def beginning(lines: list[str], word: str) -> str:
    return next(line for line in lines if line.startswith(word))


@pytest.mark.parametrize("name", BISECTED)
def test_the_answer_is_the_one_that_was_given(runs: Runs, name: str) -> None:
    """But for the rule, whose wording may get better: the next test is about it. The bound that follows from the
    repeats was not printed then."""
    printed = runs.printed(name)[:5]
    now = [click.unstyle(line) for line in lines_of(answered(runs, name))]
    given = [line for line in printed if line.strip() and not line.startswith("rule")]
    assert len(given) >= 4
    for line in given:
        # The time it took to end a hanging program was told then; now it is the limit that it reached.
        assert beginning(now, line[:20]).partition(": rate above")[0] == line.replace(
            "still running after 5.1 s", "still running after 5.0 s"
        )


@pytest.mark.parametrize("name", [name for name in BISECTED if name != "leaky"])
def test_the_rule_holds_at_exactly_the_shapes_of_the_printed_map(runs: Runs, name: str) -> None:
    """Its wording may get better; the shapes it names as failing may not change."""
    found = answered(runs, name)
    marks = re.compile(r"^[\s\d]*\d\s+([.FHW·](?:\s+[.FHW·])*)$")
    rows = [match[1].split() for line in runs.printed(name) if (match := marks.match(line))]
    if name == "bulk_tail":
        rows = [next(line for line in runs.printed(name) if re.fullmatch(r"[\s.H]+", line) and "H" in line).split()]
    failing = sum(mark in "FHW" for row in rows for mark in row)
    assert failing == sum(rule.failing for rule in found.answer.rules)


@pytest.mark.parametrize("name", BISECTED)
def test_every_probe_is_judged_as_it_was_told_while_it_ran(runs: Runs, name: str) -> None:
    told = {int(match[1]): (match[2], line) for line in runs.progress(name) if (match := PROBE.match(line))}
    now = judged(runs, name)
    assert set(told) == set(now)
    for number, (outcome, line) in told.items():
        assert now[number].outcome.value == outcome, line
        fault = now[number].fault
        assert fault is None or fault_title(fault) in line


@pytest.mark.parametrize("name", SWEPT)
def test_every_row_of_a_sweep_is_judged_as_it_was_printed(runs: Runs, name: str) -> None:
    rows = [line.split() for line in runs.printed(name)[1:]]
    now = sorted(judged(runs, name).values(), key=lambda j: j.line.index or 0)
    assert [row[5] for row in rows] == [j.outcome.value for j in now]
    assert [row[3] == "-" for row in rows] == [j.us_per_call is None for j in now]


# name: (kind, CUDA number, noticed by or at, (kernel, file, line) where caused)
FAULTS = {
    "bisect_attn_plain": ("illegal-address", 700, "cuCtxSynchronize", None),
    "tree_flat": ("illegal-instruction", 715, "cuLaunchKernel", None),
    "commit_none": ("out-of-bounds", 719, "cuCtxSynchronize", ("commit", "commit.cu", 33)),
    "decode_loop": ("illegal-address", 700, "cuLaunchKernel", None),
    "leaky": ("out-of-memory", 2, "cuMemAlloc", None),
    "bench": ("illegal-address", 700, None, None),
    "run_attn": ("illegal-address", 700, "cuCtxSynchronize", None),
    "memcheck": ("out-of-bounds", 719, "cuCtxSynchronize", ("verify_attn", "verify_attn.cu", 108)),
    "coredump": ("illegal-address", None, None, ("verify_attn", "verify_attn.cu", 108)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_has_its_kind_its_number_where_it_was_noticed_and_where_it_was_caused(runs: Runs, name: str) -> None:
    number = int(re.findall(r"\(probe (\d+), ", "\n".join(runs.printed(name)))[0]) if name in BISECTED else 1
    fault = judged(runs, name)[number].fault
    assert fault is not None
    kind, cuda, call, place = FAULTS[name]
    assert (fault.kind.value, fault.number) == (kind, cuda)
    assert (fault.noticed.call if fault.noticed else None) == call
    caused = fault.caused
    where = (caused.kernel, Path(caused.file or "").name, caused.line) if caused and caused.line else None
    assert where == place


KEPT = ("bench", "bisect_attn", "bulk_tail", "commit_none", "leaky", "memcheck", "run_attn")


@pytest.mark.parametrize("name", KEPT)
def test_the_files_of_a_probe_still_read_as_the_ledger_keeps_them(runs: Runs, name: str) -> None:
    """Readers may find more than they did; what decided then is found now."""
    ledger = runs.ledger(name)
    judging = judging_from_json(ledger.run.settings["judging"])
    kept = [line for line in ledger.probes if (runs.folder / name / "probes" / f"{line.number:04}").is_dir()]
    assert kept
    for line in kept:
        now = to_json(judging.reading(line.facts))
        for part in ("sanitizer", "stderr", "stdout", "xid"):
            assert now.get(part) == line.reading.get(part)


def test_what_a_file_said_that_is_no_longer_there_is_taken_from_the_ledger(runs: Runs) -> None:
    """The core file is not kept: too large. Its folder is, with the streams."""
    (line,) = runs.ledger("coredump").probes
    assert line.facts.core is not None
    assert line.facts.stdout is not None
    assert (Path(line.facts.core).exists(), Path(line.facts.stdout.path).exists()) == (False, True)
    fault = judged(runs, "coredump")[1].fault
    assert fault is not None
    assert fault.caused is not None
    assert (fault.caused.line, fault.caused.block) == (108, (63, 3, 0))


def test_the_times_of_a_sweep_are_there(runs: Runs) -> None:
    shape = {"streams": 8, "budget": 64, "topk": 8}
    (probe,) = (j for j in judged(runs, "sweep_build").values() if j.line.shape == shape)
    assert probe.us_per_call == pytest.approx(72.4, abs=0.1)
    assert probe.reference_us == pytest.approx(3440.2, abs=0.1)
