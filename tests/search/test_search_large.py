"""A sweep of 100 000 shapes: answered in seconds of search, within a gigabyte."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

from searching import run, sweep

from cudadiag.model import Claim


def peak_kib() -> int:
    """The peak of this process's own memory. Not getrusage's: that begins with the size of the process it was forked
    from, which in a test run may have taken a gigabyte."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]


def search_a_hundred_thousand() -> dict[str, object]:
    subject = sweep(a=range(1, 317), b=range(1, 317))
    failing = [a * b > 54321 for a, b in subject.shapes]  # type: ignore[operator]
    start = time.process_time()
    found, _ = run(subject, lambda i: failing[i])
    return {
        "spent_s": time.process_time() - start,
        "peak_kib": peak_kib(),
        "first_right": found.first == failing.index(True),
        "implied": found.claim is Claim.IMPLIED,
        "rule": found.rules[0].text,
        "exact": [p != "pass" for p in found.predicted] == failing,
    }


def test_a_hundred_thousand_shapes_in_seconds() -> None:
    """In a process of its own: the peak of memory is the search's, not that of the tests before it."""
    ran = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=200, check=True)
    found = json.loads(ran.stdout)
    assert found["first_right"]
    assert found["implied"]
    assert found["exact"]
    assert found["rule"] in ("a * b > 54321", "a * b > 54320", "a * b >= 54322")
    assert found["spent_s"] < 30, "5 s on a quiet machine"
    assert found["peak_kib"] < 400 << 10, "140 MiB at the time of writing"


def test_one_axis_of_a_hundred_thousand_values() -> None:
    subject = sweep(n=range(1, 100_001))
    found, seen = run(subject, lambda i: i >= 73210)
    assert found.first == 73210
    assert found.counts.attacks_earlier == 32
    assert found.counts.exception_bound is not None
    assert len(seen) < 150


if __name__ == "__main__":
    print(json.dumps(search_a_hundred_thousand()))
