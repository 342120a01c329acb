"""Any bytes, any splice of real logs, any way of cutting a stream: never an exception, never another answer."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triage_fixtures import log_fixtures

from cudadiag.report.documents import to_text
from cudadiag.triage import scan, tell
from cudadiag.triage.advice import frameworks, steps_for
from cudadiag.triage.document import triage_document
from cudadiag.triage.render import story_lines
from cudadiag.triage.scan import CONTEXT_BYTES
from cudadiag.triage.story import Story

FIXTURES = log_fixtures()
PIECES = [line for fixture in FIXTURES for line in fixture.data.splitlines(keepends=True)]


def whole_way(*logs: bytes) -> Story:
    """Everything the command does with logs, up to what it prints."""
    story = tell([scan([data], str(number), number) for number, data in enumerate(logs)])
    document = triage_document(story, steps_for(story, frameworks(logs)))
    assert to_text(document)
    assert story_lines(document)
    return story


@given(st.binary(max_size=2000))
@settings(max_examples=150, deadline=None)
def test_random_bytes(data: bytes) -> None:
    whole_way(data)


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=40)), max_size=30), st.binary(max_size=3))
@settings(max_examples=200, deadline=None)
def test_splices_of_real_lines(pieces: list[bytes], glue: bytes) -> None:
    whole_way(glue.join(pieces), b"".join(reversed(pieces)))


@given(st.sampled_from(FIXTURES), st.integers(min_value=0), st.integers(min_value=0), st.binary(max_size=6))
@settings(max_examples=200, deadline=None)
def test_real_logs_with_a_hole(fixture: object, start: int, length: int, filling: bytes) -> None:
    data = fixture.data  # type: ignore[attr-defined]
    at = start % (len(data) + 1)
    whole_way(data[:at] + filling + data[at + length % 400 :])


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_the_answer_does_not_depend_on_the_blocks_of_the_stream(size: int) -> None:
    for fixture in FIXTURES[:: 7 if size == 1 else 2]:
        data = fixture.data
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert tell([scan(pieces, "log")]) == tell([scan([data], "log")]), fixture.name


@pytest.mark.parametrize("before", [CONTEXT_BYTES - 200, CONTEXT_BYTES, 3 * CONTEXT_BYTES + 17])
def test_a_fault_is_found_wherever_it_lies_in_a_long_log(before: int) -> None:
    quiet = b"step 1 loss 2.5 time 0.3 s\n"
    fault = next(fixture.data for fixture in FIXTURES if fixture.name == "ggml")
    data = quiet * (before // len(quiet)) + fault + quiet * 9000
    pieces = [data[at : at + 40_000] for at in range(0, len(data), 40_000)]
    story = tell([scan(pieces, "log")])
    assert story.fault is not None
    assert story.fault.noticed is not None
    assert story.fault.noticed.call == "cudaStreamSynchronize"
    assert story.fault.noticed.log_line == data[: data.index(b"CUDA error: an")].count(b"\n") + 1


def test_a_line_without_end_does_not_fill_the_memory_and_is_read_all_the_same() -> None:
    data = b"x" * 300_000 + b" RuntimeError: CUDA error: misaligned address " + b"y" * 300_000
    story = tell([scan([data], "log")])
    assert story.fault is not None
    assert story.fault.number == 716


def test_a_flood_of_one_line_is_counted() -> None:
    line = b"/k/a.cu:37: write: block: [%d,0,0], thread: [%d,0,0] Assertion `i < n` failed.\n"
    data = b"".join(line % (n % 7, n) for n in range(20_000))
    reading = scan([data], "log")
    assert sum(sign.count for sign in reading.signs if sign.kind == "device-assert") == 20_000
    assert len(reading.signs) < 100


def noisy(data: bytes, seed: int) -> bytes:
    """Other addresses, process numbers, times and folders."""
    dice = random.Random(seed)
    text = data.decode()
    for old in ("pid=268", "pid=23220", "pid=13332"):
        text = text.replace(old, f"pid={dice.randrange(2, 99999)}")
    for old in ("0x7f5c3e800200", "0x7f29a0000000", "0x7fffcf2ff9c0", "0x10205a00200", "0x7f1c26000004"):
        text = text.replace(old, f"{dice.randrange(1 << 46):#x}")
    for old in ("/k/", "/usr/x/", "/llama.cpp/", "/opt/sglang/", "/home/u/"):
        text = text.replace(old, f"/srv/build-{dice.randrange(999)}/")
    for old in ("10:02:31", "19:01:18", "14:33:46", "22:59:28"):
        text = text.replace(old, f"{dice.randrange(10, 24)}:{dice.randrange(10, 60)}:{dice.randrange(10, 60)}")
    return text.encode()


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: f"{fixture.family}-{fixture.name}")
def test_signatures_are_stable_under_noise(fixture: object) -> None:
    data = fixture.data  # type: ignore[attr-defined]
    keys = {tell([scan([noisy(data, seed)], "log")]).key for seed in range(3)}
    assert keys == {tell([scan([data], "log")]).key}


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_signatures_are_stable_under_the_order_of_other_peoples_lines(dice: random.Random) -> None:
    fault = next(fixture.data for fixture in FIXTURES if fixture.name == "memcheck-new")
    others = [b"step %d ok\n" % n for n in range(20)] + [b"requests.exceptions.ConnectionError: refused\n"] * 3
    dice.shuffle(others)
    cut = dice.randrange(len(others))
    data = b"".join(others[:cut]) + fault + b"".join(others[cut:])
    assert tell([scan([data], "log")]).key == tell([scan([fault], "log")]).key


@pytest.mark.parametrize("fixture", FIXTURES[::4], ids=lambda fixture: f"{fixture.family}-{fixture.name}")
def test_numbers_of_any_length(fixture: object) -> None:
    """Python refuses to read a number of thousands of digits."""
    data = fixture.data  # type: ignore[attr-defined]
    whole_way(re.sub(rb"\d+", b"9" * 4400, data, count=6))
    whole_way(re.sub(rb"\d+", lambda found: found[0] * 3, data))
