"""Encodings and packings: what is in the stream counts, not how it was written."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.triage import blocks, scan, tell
from cudadiag.triage.prefilter import has_automaton, patterns, searcher

LOG = 'step 1\r\nstep 2\r\nCUDA error at a.cu:7 code=700(cudaErrorIllegalAddress) "cudaDeviceSynchronize()"\r\n'


def number(data: bytes) -> int | None:
    fault = tell([scan(blocks(io.BytesIO(data)), "log")]).fault
    return fault.number if fault else None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_encodings(encoding: str) -> None:
    assert number(LOG.encode(encoding)) == 700


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_logs(pack: object) -> None:
    assert number(pack(LOG.encode())) == 700  # type: ignore[operator]


def test_a_packed_log_that_is_cut_off_gives_what_can_be_read() -> None:
    packed = gzip.compress((LOG + "".join(f"step {n * n}\n" for n in range(20_000))).encode())
    assert number(packed[: len(packed) // 2]) == 700


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_bytes_come_through_unchanged(data: bytes) -> None:
    joined = b"".join(blocks(io.BytesIO(data), 64))
    packed = data[:2] in (b"\x1f\x8b", b"BZ", b"\xfd7", b"\xff\xfe", b"\xfe\xff", b"\x00\x00") or data.count(b"\0") > 4
    assert packed or joined == data


def test_the_pattern_file_is_made_of_lines_that_grep_and_python_read_alike() -> None:
    for pattern in patterns():
        assert not any(piece in pattern for piece in ("(?", "\\d", "\\w", "\\s")), pattern


def test_the_slow_scan_finds_what_the_automaton_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_automaton():
        pytest.skip("google-re2 is not installed: only the slow scan is here")
    quick = searcher()
    monkeypatch.setitem(sys.modules, "re2", None)
    slow = searcher.__wrapped__()
    for data in (
        LOG.encode(),
        b"all is well\n" * 50,
        b"x=1 [rank0]: Segmentation fault\n",
        b'HTTP/1.1" 500 Internal\n',
    ):
        assert (quick(data, 0) >= 0) == (slow(data, 0) >= 0)
