"""What a probe costs beyond running the command: an empty command through `run_probe` against `subprocess.run` of it.

    python benchmarks/probe_overhead.py [--rounds 50] [--limit-ms 15]

Both are timed in turn in one run, with the streams captured by both. Prints medians, their difference and ratio;
exits 1 when the difference is over the limit.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.guardian import Guardian
from harness.launcher import run_probe
from harness.records import ProbeRequest


def timed(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return (time.perf_counter() - begun) * 1e3


def measure(command: list[str], rounds: int) -> tuple[list[float], list[float]]:
    """(milliseconds through a probe, milliseconds through subprocess.run), one pair a round, taken in turn."""
    probes, plain = [], []
    with tempfile.TemporaryDirectory() as place, Guardian() as guardian:
        for number in range(rounds + 3):
            folder = Path(place) / str(number)
            folder.mkdir()
            request = ProbeRequest({"kind": "command", "argv": command}, str(folder))
            probes.append(timed(lambda request=request: run_probe(request, guardian)))  # type: ignore[misc]
            plain.append(
                timed(lambda: subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False))
            )
    return probes[3:], plain[3:]  # the first ones import modules


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=50)
    options.add_argument("--limit-ms", type=float, default=15.0)
    chosen = options.parse_args()
    probes, plain = measure(["true"], chosen.rounds)
    probe_ms, plain_ms = statistics.median(probes), statistics.median(plain)
    difference = statistics.median([a - b for a, b in zip(probes, plain, strict=True)])
    print(f"probe {probe_ms:.2f} ms, subprocess.run {plain_ms:.2f} ms (medians of {chosen.rounds})")
    print(f"difference {difference:.2f} ms, ratio {probe_ms / plain_ms:.2f}")
    return int(difference > chosen.limit_ms)


if __name__ == "__main__":
    sys.exit(main())
