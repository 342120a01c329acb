"""A signature does not move with what changes from run to run: addresses, pids, times, folders, threads, noise."""

from __future__ import annotations

import random
import re
from typing import Any

import recordings
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadiag.evidence import judge, read
from cudadiag.model import Allocation, Caused, Fault, FaultKind, Noticed, Outcome, Verdict
from cudadiag.signature import Signature, signature

FAILING = [
    (fault, observer)
    for fault, observer in recordings.runs()
    if observer in ("plain", "blocking", "memcheck", "racecheck", "synccheck", "initcheck", "flagcore")
    and fault not in ("ok", "leak", "oob_near")
]
INNOCENT = [
    b"step 7 of 9",
    b"warmup ok",
    b"pid 4711 listens",
    b"0x7f00 is nice",
    b"[12:01:02.003] loading weights",
    b" 50%\r 51%",
]


def signature_of(fault: str, observer: str, files: dict[str, bytes]) -> Signature | None:
    return signature(judge(recordings.run_facts(fault, observer), read(files), recordings.expectations(observer)))


def noisy(files: dict[str, bytes], seed: int) -> dict[str, bytes]:
    """The files of a run as another run of the same bug might have left them. Core files are left alone."""
    chance = random.Random(seed)
    shift = chance.randrange(1 << 20) << 21
    folder = f"/tmp/u{chance.randrange(10**6)}/build-{chance.randrange(99)}/".encode()
    clock = f"{chance.randrange(24):02}:{chance.randrange(60):02}:01.000".encode()
    changed = {}
    for name, data in files.items():
        if name != "core":
            data = re.sub(rb"0x([57][0-9a-f]{11})", lambda m: hex(int(m[1], 16) + shift).encode(), data)
            data = data.replace(b"/home/dev/kernel-faults/a/", folder)
            data = re.sub(rb"\d\d:\d\d:\d\d\.\d+", clock, data)
            data = re.sub(rb"(?<=\[0x)[0-9a-f]{4,6}(?=\] in)", b"%x" % chance.randrange(1 << 20), data)
        if name in ("stdout", "stderr"):
            noise = chance.choices(INNOCENT, k=4)
            data = b"".join(line + b"\n" for line in noise) + data + b"\n" + b"\n".join(reversed(noise))
        changed[name] = data
    return changed


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FAILING), st.integers(0, 2**32))
def test_another_run_of_the_same_bug_has_the_same_signature(run: tuple[str, str], seed: int) -> None:
    fault, observer = run
    files = recordings.run_files(fault, observer)
    before, after = signature_of(fault, observer, files), signature_of(fault, observer, noisy(files, seed))
    assert (before and (before.fine, before.coarse)) == (after and (after.fine, after.coarse))


TRIPLES = st.one_of(st.none(), st.tuples(*[st.integers(0, 1000)] * 3))
ADDRESSES = st.one_of(st.none(), st.integers(0, 2**63))


MOVING = st.fixed_dictionaries(
    {
        "address": ADDRESSES,
        "pc": ADDRESSES,
        "thread": TRIPLES,
        "block": TRIPLES,
        "folder": st.sampled_from(["/a/", "/home/x y/", "C:\\b\\", ""]),
        "log_line": st.integers(1, 10**6),
        "found_by": st.sampled_from(["memcheck", "coredump", "blocking"]),
        "reason": st.text(max_size=20),
        "distance": st.integers(0, 10**9),
        "call": st.sampled_from([None, "cudaMemcpy", "cudaFree"]),
    }
)


@given(MOVING)
@settings(max_examples=200, deadline=None)
def test_nothing_that_moves_is_in_a_signature(moving: dict[str, Any]) -> None:
    caused = Caused(
        kernel="attn<(int)4, float>",
        file=f"{moving['folder']}attn.cu",
        line=41,
        pc=moving["pc"],
        block=moving["block"],
        thread=moving["thread"],
        access="write",
        space="global",
        size=4,
        address=moving["address"],
        allocation=Allocation(moving["address"] or 1, 64, moving["distance"], "after", "scratch"),
        log_line=moving["log_line"],
    )
    noticed = Noticed(
        moving["call"], f"{moving['folder']}host.cpp", moving["log_line"], moving["log_line"], moving["reason"]
    )
    fault = Fault(FaultKind.OUT_OF_BOUNDS, "cudaErrorLaunchFailure", 719, noticed, caused, moving["found_by"], "x")
    made = signature(Verdict(Outcome.FAULT, moving["reason"] or "x", fault))
    assert made is not None
    assert made.fine == "v1/fault/out-of-bounds/write/global/attn<N, float>/attn.cu:41"
    assert made.coarse == "v1/fault/memory-access/attn"


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(list(FaultKind)), st.integers(1, 9999))
@settings(max_examples=200, deadline=None)
def test_any_names_make_a_key_of_one_line_with_the_parts_apart(
    kernel: str, file: str, kind: FaultKind, line: int
) -> None:
    made = signature(Verdict(Outcome.FAULT, "x", Fault(kind, caused=Caused(kernel=kernel, file=file, line=line))))
    assert made is not None
    assert made.fine.split("/")[:3] == ["v1", "fault", kind.value]
    assert len(made.fine.splitlines()) == len(made.coarse.splitlines()) == 1
    is_host = kind.value.startswith("host-") or kind is FaultKind.DIED_AFTER_FINISH
    assert made.fine.count("/") == (4 if is_host else 6)
    assert made.coarse.count("/") == 3
