"""What `--cuda-isolate=auto` costs for each passing test, beside plain pytest and pytest-forked, in one run.

    python benchmarks/pytest_isolation.py [--tests 400] [--rounds 3] [--limit-ms 5] [--forked PYTHON] [--setup CODE]

Each way runs a suite of N empty tests and one of a single test; the difference over N - 1 is the cost of a test,
start-up left out. The ways are timed in turn. `--forked` names an interpreter that has pytest-forked (with a pytest it
works with); it is compared with plain pytest of its own. `--setup` is code of the test file, such as
"import torch; torch.zeros(1, device='cuda')" on a GPU. Exits 1 when isolation costs more than the limit over plain.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLAIN = ("-q", "-p", "no:cacheprovider")


def suite(folder: Path, count: int, setup: str) -> Path:
    folder.mkdir()
    (folder / "test_empty.py").write_text(
        f"import pytest\n{setup}\n@pytest.mark.parametrize('n', range({count}))\ndef test_empty(n): pass\n"
    )
    return folder


def timed(python: str, folder: Path, words: tuple[str, ...]) -> float:
    """Seconds of one pytest run, which must pass."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    begun = time.perf_counter()
    done = subprocess.run(
        [python, "-m", "pytest", *PLAIN, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - begun
    if done.returncode != 0:
        raise SystemExit(f"the benchmark's own suite failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took


def measure(
    ways: dict[str, tuple[str, tuple[str, ...]]], tests: int, rounds: int, setup: str
) -> dict[str, list[float]]:
    """Milliseconds a test of each way, one value a round."""
    costs: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as place:
        many, one = suite(Path(place) / "many", tests, setup), suite(Path(place) / "one", 1, setup)
        for _ in range(rounds):
            for name, (python, words) in ways.items():
                difference = timed(python, many, words) - timed(python, one, words)
                costs[name].append(difference * 1e3 / (tests - 1))
    return costs


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tests", type=int, default=400)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--limit-ms", type=float, default=5.0)
    options.add_argument("--forked", metavar="PYTHON", help="an interpreter with pytest-forked")
    options.add_argument("--setup", default="", metavar="CODE", help="code at the head of the test file")
    chosen = options.parse_args()
    plugin = ("-p", "cudadiag.pytest_plugin")
    ways = {
        "plain": (sys.executable, ()),
        "plugin off": (sys.executable, plugin),
        "auto": (sys.executable, (*plugin, "--cuda-isolate=auto")),
    }
    if chosen.forked:
        ways |= {"plain there": (chosen.forked, ()), "pytest-forked": (chosen.forked, ("--forked",))}
    measured = measure(ways, chosen.tests, chosen.rounds, chosen.setup)
    costs = {name: statistics.median(values) for name, values in measured.items()}
    for name, cost in costs.items():
        base = costs["plain there" if name == "pytest-forked" else "plain"]
        print(f"{name:14} {cost:7.2f} ms a test, {cost - base:+6.2f} over plain (median of {chosen.rounds})")
    return int(costs["auto"] - costs["plain"] > chosen.limit_ms)


if __name__ == "__main__":
    sys.exit(main())
