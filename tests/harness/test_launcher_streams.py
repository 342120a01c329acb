"""Streams: separate, complete within their cap, time-stamped; floods, binary data and full disks."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness_probing import Run, stderr_of, stdout_of
from hypothesis import given
from hypothesis import strategies as st

from harness.launcher import run_probe
from harness.records import Limits, ProbeRequest
from harness.streams import Capture, merged_timeline, stream_lines


def test_the_two_streams_are_kept_apart(run: Run) -> None:
    facts = run("sh", "-c", "echo out; echo err >&2")
    assert (stdout_of(facts), stderr_of(facts)) == (b"out\n", b"err\n")


def test_the_merged_timeline_shows_the_true_order(run: Run) -> None:
    facts = run("sh", "-c", "for i in 1 2 3; do echo out$i; sleep 0.15; echo err$i >&2; sleep 0.15; done")
    shown = [(line.stream, line.text, line.tied) for line in merged_timeline(facts)]
    expected = [(name, f"{name[3:]}{i}".encode(), False) for i in (1, 2, 3) for name in ("stdout", "stderr")]
    assert shown == expected
    assert sorted(line.at_s for line in merged_timeline(facts)) == [line.at_s for line in merged_timeline(facts)]


def test_a_line_written_in_parts_has_the_time_of_its_first_part(run: Run) -> None:
    facts = run("sh", "-c", "printf 'a'; sleep 0.3; printf 'b\\n'; echo c")
    assert facts.stdout is not None
    (first_s, first), (second_s, second) = stream_lines(facts.stdout)
    assert (first, second) == (b"ab", b"c")
    assert second_s - first_s > 0.15


def test_binary_output_is_kept_byte_for_byte(run_python: Run) -> None:
    facts = run_python("import sys\nsys.stdout.buffer.write(bytes(range(256)) * 40)")
    assert stdout_of(facts) == bytes(range(256)) * 40


def test_a_flood_keeps_head_and_tail_and_says_what_is_missing(run: Run) -> None:
    cap = 1 << 20
    facts = run("sh", "-c", "seq 1 3000000; echo done >&2", limits={"stream_bytes": cap})
    whole = subprocess.run(["seq", "1", "3000000"], capture_output=True, check=True).stdout
    kept = stdout_of(facts)
    assert facts.stdout is not None
    assert facts.stdout.total_bytes == len(whole)
    head, _, rest = kept.partition(b"\n[cudadiag: ")
    count, _, tail = rest.partition(b" bytes of this stream were dropped here]\n")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) == cap // 2
    assert cap // 2 - 4096 <= len(tail) <= cap // 2
    assert int(count) == facts.stdout.dropped_bytes == len(whole) - len(head) - len(tail)
    lines = stream_lines(facts.stdout)
    assert lines[-1][1] == b"3000000"
    assert lines[0][0] <= lines[-1][0]
    assert Path(facts.stdout.times_path).stat().st_size < 8 << 20


@pytest.mark.slow
def test_gigabytes_pass_at_speed_in_bounded_memory(run: Run) -> None:
    begun = time.monotonic()
    facts = run("sh", "-c", "head -c 2G /dev/zero", limits={"timeout_s": 120.0})
    assert facts.exit_code == 0
    assert facts.stdout is not None
    assert facts.stdout.total_bytes == 2 << 30
    assert Path(facts.stdout.path).stat().st_size <= (16 << 20) + 100
    assert time.monotonic() - begun < 60


@given(
    parts=st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"x", b"\n")), max_size=30),
    cap=st.integers(1, 200),
)
def test_capture_accounts_for_every_byte(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], cap: int
) -> None:
    capture = Capture(tmp_path_factory.mktemp("capture"), "stdout", cap)
    for index, part in enumerate(parts):
        if part:
            capture.feed(part, float(index))
    stream = capture.finish()
    whole, kept = b"".join(parts), Path(stream.path).read_bytes()
    assert stream.total_bytes == len(whole)
    assert stream.error is None
    if not stream.dropped_bytes:
        assert kept == whole
    else:
        note = b"\n[cudadiag: %d bytes of this stream were dropped here]\n" % stream.dropped_bytes
        head, found, tail = kept.partition(note)
        assert found
        assert len(head) + stream.dropped_bytes + len(tail) == len(whole)
        assert whole.startswith(head)
        assert whole.endswith(tail)
    if not stream.dropped_bytes:
        read_at = [float(index) for index, part in enumerate(parts) for _ in part]
        offset = 0
        for at_s, line in stream_lines(stream):
            assert at_s == read_at[offset]
            offset += len(line) + 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_told_and_does_not_block_the_program(small_disk: Path) -> None:
    request = ProbeRequest(
        {"kind": "command", "argv": ["sh", "-c", "seq 1 400000; echo end >&2; exit 5"]},
        str(small_disk),
        limits=Limits(20),
    )
    facts = run_probe(request)
    assert facts.exit_code == 5
    assert facts.stdout is not None
    assert facts.stdout.total_bytes == 2688895
    assert facts.stdout.error is not None
    assert "No space left on device" in facts.stdout.error
    kept = Path(facts.stdout.path).read_bytes()
    lost = int(facts.stdout.error.rpartition(": ")[2].split()[0])
    assert len(kept) + lost == 2688895, "every byte is either on disk or counted as lost"
    assert kept.startswith(b"1\n2\n3\n")


def test_a_disk_that_has_room_again_gets_everything(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (900 << 10))
    capture = Capture(small_disk, "stdout", 1 << 20)
    data = os.urandom(300 << 10)
    capture.feed(data, 0.0)
    filler.unlink()
    stream = capture.finish()
    assert stream.error is None
    assert Path(stream.path).read_bytes() == data
