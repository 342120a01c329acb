"""The readers are total: random bytes, and real files damaged at random, give facts and never an exception."""

from __future__ import annotations

import json

import pytest
import recordings
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.errors import Undecided
from cudadiag.evidence import Expectations, decided, from_json, read, to_json
from cudadiag.evidence.core import read_core
from cudadiag.evidence.core.disassembly import cubin_at, instructions
from cudadiag.evidence.core.lines import LineTable, line_rows
from cudadiag.evidence.names import base_name
from cudadiag.evidence.reading import FILES
from harness.records import ProbeFacts

FACTS = st.builds(
    ProbeFacts,
    exit_code=st.one_of(st.none(), st.integers(0, 255)),
    signal=st.one_of(st.none(), st.integers(1, 64)),
    timed_out=st.booleans(),
    killed_by_us=st.one_of(st.none(), st.just("interrupted")),
    survivors=st.lists(st.integers(2, 9), max_size=1).map(tuple),
)
EXPECTED = st.builds(
    Expectations,
    target=st.sampled_from(["command", "python", "kernel", "service"]),
    observer=st.sampled_from(["plain", "blocking", "memcheck", "racecheck", "coredump"]),
    leaks=st.booleans(),
)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A recorded file with a piece cut out, doubled or overwritten."""
    fault, observer = draw(st.sampled_from(recordings.runs()))
    files = recordings.run_files(fault, observer)
    key = draw(st.sampled_from(sorted(files)))
    data = files[key]
    start = draw(st.integers(0, len(data)))
    stop = draw(st.integers(start, min(len(data), start + 400)))
    piece = draw(st.sampled_from([b"", data[start:stop] * 2, b"\0" * (stop - start), b"\xff" * (stop - start)]))
    return key, data[:start] + draw(st.one_of(st.just(piece), st.binary(max_size=40))) + data[stop:]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(FILES), st.binary(max_size=400)), FACTS, EXPECTED)
def test_random_bytes_in_every_file_give_a_reading_and_a_verdict(
    files: dict[str, bytes], facts: ProbeFacts, expected: Expectations
) -> None:
    reading = read(files)
    rule, verdict = decided(facts, reading, expected)
    assert verdict.reason
    assert verdict.outcome.value in rule.gives
    assert from_json(json.loads(json.dumps(to_json(reading)))) == reading


@settings(max_examples=250, deadline=None)
@given(damaged(), FACTS, EXPECTED)
def test_damaged_recordings_give_a_reading_and_a_verdict(
    file: tuple[str, bytes], facts: ProbeFacts, expected: Expectations
) -> None:
    reading = read(dict([file]))
    assert decided(facts, reading, expected)[1].reason
    assert from_json(json.loads(json.dumps(to_json(reading)))) == reading


CORE = recordings.files()["runs/stack_overflow/flagcore/core.gpu"]
SECTIONS = int.from_bytes(CORE[40:48], "little")


def refusal(data: bytes) -> str | None:
    """Why bytes are no core file; None where they are read."""
    try:
        read_core(data)
    except Undecided as refused:
        return refused.message
    return None


@settings(max_examples=80, deadline=None)
@given(st.integers(0, len(CORE) - 1), st.binary(min_size=1, max_size=24), st.booleans())
def test_damaged_core_files_are_read_or_refused(at: int, bytes_: bytes, in_table: bool) -> None:
    place = SECTIONS + at % (len(CORE) - SECTIONS) if in_table else at
    data = CORE[:place] + bytes_ + CORE[place + len(bytes_) :]
    refused = refusal(data)
    assert refused is None or "cannot be read" in refused
    if in_table:
        cubin_at(data, 0x7FBD877A0F30)


def test_core_files_cut_off_anywhere_are_refused() -> None:
    for cut in range(0, len(CORE), 997):
        assert refusal(CORE[:cut]) or cut > SECTIONS, cut


@given(st.binary(max_size=300), st.binary(max_size=40), st.integers(0, 2**64 - 1))
@settings(max_examples=150, deadline=None)
def test_any_line_table_is_read(table: bytes, strings: bytes, address: int) -> None:
    for head in (
        b"",
        len(table).to_bytes(4, "little") + b"\x02\x00\x1a\x00\x00\x00\x01\x01\xfb\x0e\x0a" + b"\0" + b"\1" * 8,
    ):
        LineTable(line_rows(head + table, strings)).place(address)


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_name_and_a_listing(text: str) -> None:
    base_name(text)
    base_name("_Z" + text)
    list(instructions(text))


@pytest.mark.parametrize("text", [
    b"a.cu:N: CUDA error: an illegal memory access was encountered", b"cudaErrorIllegalAddress a.cu(N)",
    b"cudaErrorIllegalAddress file=a.cu, line=N", b"cudaErrorIllegalAddress in file 'a.cu' at line N",
    b"cudaErrorIllegalAddress at line N of a.cu", b"cudaErrorIllegalAddress a.cu line N", b"CUDA error N @N",
    b"a.cu:N: k: block: [N,N,N], thread: [N,N,N] Assertion `x` failed.", b"cudaErrorIllegalAddress (N)", b"code=N",
    b"[10:00:00.1][N][CUDA][E] Returning N (CUDA_ERROR_X) from cuInit", b"prog: a.c:N: f: Assertion `x' failed.",
    b'Traceback (most recent call last):\n  File "a.py", line N, in f\nValueError: x',
    b"NVRM: Xid (PCI:0000:3b:00): N, pid=N, name=x, text", b"========= Program hit cudaErrorX (error N) due to \"x\"",
    b"========= Invalid __global__ write of size N bytes\n=========     at k(int)+0x10 in a.cu:N\n"
    b"=========     by thread (N,N,N) in block (N,N,N)\n=========     Address 0xN is out of bounds\n"
    b"=========     and is N bytes after the nearest allocation at 0xN of size N bytes\n"
    b"========= ERROR SUMMARY: N errors",
])  # fmt: skip
def test_numbers_of_any_length_give_a_reading(text: bytes) -> None:
    """Python refuses to turn more than 4300 digits into a number."""
    data = text.replace(b"N", b"9" * 5000)
    for name in FILES:
        reading = read({name: data})
        assert decided(ProbeFacts(exit_code=1), reading, Expectations(target="command", observer="blocking"))
