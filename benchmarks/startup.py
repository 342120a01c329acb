"""What starting cudadiag costs beside starting Python: `python benchmarks/startup.py [--json] [--runs N]`.

Medians of one session, the commands taking turns, so that a busy machine slows all of them alike. Goals: under
0.2 s for `cudadiag --help`; for `cudadiag run -- PROGRAM` under 0.5 s more than the program.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

GOAL_HELP_S = 0.2


def commands(store: str) -> dict[str, list[str]]:
    cudadiag = [sys.executable, "-m", "cudadiag"]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "cudadiag --version": [*cudadiag, "--version"],
        "cudadiag --help": [*cudadiag, "--help"],
        "cudadiag bisect --help": [*cudadiag, "bisect", "--help"],
        "cudadiag run -- true": [*cudadiag, "run", "--store", store, "--device", "none", "--", "true"],
        "cudadiag bisect -- true": [*cudadiag, "bisect", "--store", store, "--device", "none", "--", "true"],
    }


def measure(runs: int) -> dict[str, list[float]]:
    """Seconds of each run of each command."""
    with tempfile.TemporaryDirectory() as store:
        table = commands(store)
        seconds: dict[str, list[float]] = {name: [] for name in table}
        for _ in range(runs):
            for name, words in table.items():
                began = time.perf_counter()
                subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
                seconds[name].append(time.perf_counter() - began)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    seconds = measure(options.runs)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    if options.json:
        print(json.dumps({"median_s": medians, "runs": options.runs, "goal_help_s": GOAL_HELP_S}))
    else:
        for name, median in medians.items():
            print(f"{name:<26} {median * 1000:7.1f} ms   best {min(seconds[name]) * 1000:7.1f} ms")
    return 0 if medians["cudadiag --help"] < GOAL_HELP_S else 1


if __name__ == "__main__":
    sys.exit(main())
