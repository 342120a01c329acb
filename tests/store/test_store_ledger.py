"""The ledger keeps every finished probe, tells a torn line from garbage, and reads back what was written."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.errors import CudadiagError, Undecided, UsageError
from cudadiag.model import Axis, Sweep
from cudadiag.store.ledger import LedgerWriter, is_locked, parse_ledger, read_ledger
from cudadiag.store.lines import NoteLine, ProbeLine, RunLine, sweep_from_json, sweep_to_json
from harness.records import Breadcrumb, ProbeFacts, StreamFacts, XidFacts

FIXTURES = Path(__file__).parent / "fixtures"
SCHEMA = json.loads((Path(__file__).parents[2] / "cudadiag/store/ledger.schema.json").read_text())
SWEEP = Sweep(
    axes=(Axis("n", (1, 2, 3)), Axis("kind", ("a", True))),
    shapes=((1, "a"), (1, True), (2, "a"), (3, True)),
    derived={"twice": (2, 2, 4, 6)},
    constants={"LEN": 4096},
)


def run_line() -> RunLine:
    return RunLine(
        run_id="20261129-185313-demo-3f2a",
        started="2026-11-29T18:53:13+00:00",
        version="0.1.0",
        command_line=("cudadiag", "bisect", "demo"),
        cwd="/somewhere",
        purpose="bisect",
        case_name="demo",
        case_path="/somewhere/demo.yaml",
        case_hash="0" * 64,
        sources={"/somewhere/demo.cu": "1" * 64},
        sweep=SWEEP,
        settings={"observer": "blocking"},
        device={"kind": "none"},
        tools={"nvrtc": "13.5"},
    )


def probe_line(folder: Path, number: int = 1) -> ProbeLine:
    base = str(folder / "probes" / f"{number:04d}")
    facts = ProbeFacts(
        exit_code=None,
        signal=6,
        wall_s=0.25,
        breadcrumbs=(Breadcrumb("launch", 0.1, {"kernel": "k"}),),
        stdout=StreamFacts(f"{base}/stdout", f"{base}/stdout.times", 12),
        stderr=StreamFacts(f"{base}/stderr", f"{base}/stderr.times", 99, 3),
        driver_log=f"{base}/driver.log",
        result={"comparison": {"max_abs": math.inf, "text": "a\udc80b"}},
        device_records=({"kind": "out-of-bounds", "line": 3},),
        xid=XidFacts(True, ("Xid 31",)),
        folder=base,
    )
    return ProbeLine(
        number=number,
        shape={"n": 1, "kind": True},
        index=1,
        purpose="search",
        observer="blocking",
        device="none",
        memory_model="exact",
        repeat=0,
        started="2026-11-29T18:53:14+00:00",
        facts=facts,
        sequence=(0, 2, 1),
        tag="a3",
        reading={"stderr": [{"text": "an illegal memory access was encountered"}]},
    )


def write(folder: Path, probes: int = 2) -> Path:
    path = folder / "ledger.jsonl"
    with LedgerWriter.create(path, run_line()) as writer:
        for number in range(1, probes + 1):
            writer.append(probe_line(folder, number))
        writer.append(NoteLine("concluded", "2026-11-29T18:53:15+00:00", {"claim": "proven"}))
    return path


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    ledger = read_ledger(write(tmp_path))
    assert ledger.run == run_line()
    assert ledger.probes == (probe_line(tmp_path, 1), probe_line(tmp_path, 2))
    assert [(note.kind, note.document) for note in ledger.notes] == [("concluded", {"claim": "proven"})]
    assert ledger.torn == b""


def test_every_line_obeys_the_published_schema(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for line in write(tmp_path).read_text().splitlines():
        validator.validate(json.loads(line))


def test_the_schema_refuses_a_line_without_its_facts(tmp_path: Path) -> None:
    line = json.loads(write(tmp_path).read_text().splitlines()[1])
    del line["facts"]["wall_s"]
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(line)


def test_a_moved_run_still_finds_its_files(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    write(old)
    old.rename(new)
    facts = read_ledger(new / "ledger.jsonl").probes[0].facts
    assert facts.stdout is not None
    assert facts.stdout.path == str(new / "probes/0001/stdout")
    assert facts.driver_log == str(new / "probes/0001/driver.log")


@pytest.mark.parametrize("name", sorted(p.name for p in FIXTURES.glob("v*.jsonl")))
def test_ledgers_of_every_schema_version_stay_readable(name: str) -> None:
    path = FIXTURES / name
    ledger = read_ledger(path)
    assert len(ledger.probes) >= 3
    assert [note.kind for note in ledger.notes] == ["concluded"]
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for line in path.read_text().splitlines():
        validator.validate(json.loads(line))


def test_a_line_cut_at_any_byte_loses_that_line_only(tmp_path: Path) -> None:
    data = write(tmp_path).read_bytes()
    second = data.index(b"\n", data.index(b"\n") + 1) + 1
    third = data.index(b"\n", second) + 1
    for cut in range(second + 1, third - 1, 7):
        ledger = parse_ledger(data[:cut], tmp_path / "ledger.jsonl")
        assert len(ledger.probes) == 1
        assert ledger.torn == data[second:cut]


def test_reopening_puts_a_torn_line_aside_and_goes_on(tmp_path: Path) -> None:
    path = write(tmp_path, probes=1)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"line":"probe","numb')
    with LedgerWriter.reopen(read_ledger(path)) as writer:
        writer.append(probe_line(tmp_path, 2))
    assert (tmp_path / "ledger.torn").read_bytes() == b'{"line":"probe","numb\n'
    assert [p.number for p in read_ledger(path).probes] == [1, 2]


def test_zeros_a_file_system_left_after_a_crash_are_a_torn_end(tmp_path: Path) -> None:
    path = write(tmp_path, probes=1)
    path.write_bytes(path.read_bytes() + bytes(300))
    ledger = read_ledger(path)
    assert len(ledger.torn) == 300
    with LedgerWriter.reopen(ledger):
        assert b"\0" not in path.read_bytes()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"not json\n", "not a ledger line"),
        (b"[]\n", "must be a JSON object"),
        (b"{}\n", "needs the key 'line'"),
        (b'{"line":"probe"}\n', "needs the key"),
        (b"\n", "not a ledger line"),
    ],
)
def test_garbage_between_lines_is_an_error_with_its_place(tmp_path: Path, line: bytes, words: str) -> None:
    data = write(tmp_path).read_bytes().split(b"\n", 1)
    with pytest.raises(UsageError, match=rf"ledger\.jsonl:2: .*{words}"):
        parse_ledger(data[0] + b"\n" + line + data[1], tmp_path / "ledger.jsonl")


def test_a_kind_of_line_from_the_future_is_counted_not_refused(tmp_path: Path) -> None:
    data = write(tmp_path).read_bytes() + b'{"line":"telepathy"}\n'
    assert parse_ledger(data, tmp_path / "ledger.jsonl").unknown == 1


def test_a_ledger_of_a_newer_schema_is_refused_with_advice(tmp_path: Path) -> None:
    data = write(tmp_path).read_bytes().replace(b'"schema":1', b'"schema":2', 1)
    with pytest.raises(UsageError, match="written by a newer cudadiag"):
        parse_ledger(data, tmp_path / "ledger.jsonl")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_give_a_traceback(data: bytes) -> None:
    with pytest.raises(CudadiagError):
        parse_ledger(data, Path("ledger.jsonl"))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_spoilt_value_never_gives_a_traceback(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = [json.loads(line) for line in (FIXTURES / "v1-host.jsonl").read_text().splitlines()]
    victim = data.draw(st.sampled_from(lines))
    while True:
        key = data.draw(st.sampled_from(sorted(victim)))
        if not isinstance(victim[key], dict) or not victim[key] or data.draw(st.booleans()):
            break
        victim = victim[key]
    victim[key] = data.draw(st.sampled_from([None, 1, -1, "x", [], {}, [None], {"a": []}, 1e300, True]))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    try:
        parse_ledger(text.encode(), Path("ledger.jsonl"))
    except CudadiagError:
        pass


def test_two_controllers_never_write_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with LedgerWriter.create(path, run_line()):
        assert is_locked(path)
        with pytest.raises(Undecided, match="still going on"):
            LedgerWriter.reopen(read_ledger(path))
    assert not is_locked(path)


def test_a_full_disk_keeps_all_earlier_lines_whole(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with LedgerWriter.create(path, run_line()) as writer:
        writer.append(probe_line(tmp_path, 1))
        size = path.stat().st_size
        old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limits[1]))
            with pytest.raises(Undecided, match="all earlier probes are kept"):
                writer.append(probe_line(tmp_path, 2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, old)
        writer.append(replace(probe_line(tmp_path, 2), purpose="repeat"))
    ledger = read_ledger(path)
    assert [p.purpose for p in ledger.probes] == ["search", "repeat"]
    assert ledger.torn == b""


def test_a_line_is_on_the_disk_once_append_returned(tmp_path: Path) -> None:
    """A child that is killed right after append() has lost nothing: the parent reads its line."""
    script = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[2])
        from test_store_ledger import probe_line, run_line
        from cudadiag.store.ledger import LedgerWriter
        folder = Path(sys.argv[1])
        writer = LedgerWriter.create(folder / "ledger.jsonl", run_line())
        writer.append(probe_line(folder, 1))
        os.kill(os.getpid(), 9)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), str(Path(__file__).parent)], check=False, env=dict(os.environ)
    )
    assert done.returncode == -9
    assert len(read_ledger(tmp_path / "ledger.jsonl").probes) == 1


SCALARS = st.one_of(st.integers(), st.booleans(), st.text(max_size=4), st.floats(allow_nan=False, allow_infinity=False))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(SCALARS, min_size=1, max_size=4, unique_by=lambda v: (type(v), v)), min_size=1, max_size=3),
    st.integers(0, 2**30),
)
def test_a_sweep_survives_json_whatever_its_values(columns: list[list[int | float | str | bool]], seed: int) -> None:
    axes = tuple(Axis(f"p{i}", tuple(values)) for i, values in enumerate(columns))
    shapes: list[tuple[int | float | str | bool, ...]] = [()]
    for axis in axes:
        shapes = [(*shape, value) for shape in shapes for value in axis.values]
    legal = tuple(shape for i, shape in enumerate(shapes) if (seed >> (i % 30)) & 1)
    for chosen in (tuple(shapes), legal):
        sweep = Sweep(axes, chosen, {"first": tuple(shape[0] for shape in chosen)}, {"LEN": 4096, "scale": 0.5})
        back = sweep_from_json(json.loads(json.dumps(sweep_to_json(sweep))))
        assert back == sweep
        assert [[type(v) for v in s] for s in back.shapes] == [[type(v) for v in s] for s in sweep.shapes]


def test_a_sweep_of_an_older_ledger_has_no_constants_and_a_wrong_one_is_refused() -> None:
    data = sweep_to_json(SWEEP)
    del data["constants"]
    assert sweep_from_json(data) == replace(SWEEP, constants={})
    for wrong in ({"LEN": "4096"}, {"LEN": True}, [4096]):
        with pytest.raises(ValueError, match=r"number|object"):
            sweep_from_json({**data, "constants": wrong})
