"""A sweep of 100 000 shapes: answered in seconds of search, within a gigabyte."""

from __future__ import annotations

import resource
import time

from searching import run, sweep

from cudadiag.model import Claim


def test_a_hundred_thousand_shapes_in_seconds() -> None:
    subject = sweep(a=range(1, 317), b=range(1, 317))
    failing = [a * b > 54321 for a, b in subject.shapes]  # type: ignore[operator]
    start = time.process_time()
    found, _ = run(subject, lambda i: failing[i])
    spent = time.process_time() - start
    assert found.first == failing.index(True)
    assert found.claim is Claim.IMPLIED
    assert found.rules[0].text in ("a * b > 54321", "a * b > 54320", "a * b >= 54322")
    assert [p != "pass" for p in found.predicted] == failing
    assert spent < 30, "10 s on a quiet machine"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20  # KiB


def test_one_axis_of_a_hundred_thousand_values() -> None:
    subject = sweep(n=range(1, 100_001))
    found, seen = run(subject, lambda i: i >= 73210)
    assert found.first == 73210
    assert found.counts.attacks_earlier == 32
    assert found.counts.exception_bound is not None
    assert len(seen) < 150
