"""What `--cuda-isolate=auto` costs for each passing test, beside plain pytest and pytest-forked, in one run.

    python benchmarks/pytest_isolation.py [--tests 400] [--rounds 3] [--limit-ms 5] [--forked PYTHON] [--setup CODE]

Each way runs a suite of N empty tests and one of a single test; the difference over N - 1 is the cost of a test,
start-up left out. The ways are timed in turn; processor time is shown beside, for machines that do other work as well.
`--forked` names an interpreter that has pytest-forked (with a pytest it works with); it is compared with plain pytest
of its own. `--setup` is code of the test file, such as "import torch; torch.zeros(1, device='cuda')" on a GPU. Exits 1
when isolation costs more than the limit over plain.
"""

from __future__ import annotations

import argparse
import os
import resource
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


def timed(python: str, folder: Path, words: tuple[str, ...]) -> tuple[float, float]:
    """Seconds and processor seconds of one pytest run with all its processes. It must pass."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    begun, used = time.perf_counter(), processor_s()
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
    return took, processor_s() - used


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(
    ways: dict[str, tuple[str, tuple[str, ...]]], tests: int, rounds: int, setup: str
) -> dict[str, tuple[float, float]]:
    """Milliseconds and processor milliseconds a test of each way, medians over the rounds."""
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as place:
        many, one = suite(Path(place) / "many", tests, setup), suite(Path(place) / "one", 1, setup)
        for _ in range(rounds):
            for name, (python, words) in ways.items():
                (wall, used), (base, base_used) = timed(python, many, words), timed(python, one, words)
                costs[name].append(((wall - base) * 1e3 / (tests - 1), (used - base_used) * 1e3 / (tests - 1)))
    return {name: (_median(values, 0), _median(values, 1)) for name, values in costs.items()}


def _median(values: list[tuple[float, float]], column: int) -> float:
    return statistics.median(value[column] for value in values)


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
    costs = measure(ways, chosen.tests, chosen.rounds, chosen.setup)
    print(f"a passing test costs, median of {chosen.rounds} (ms)   wall  over plain   processor  over plain")
    for name, (wall, used) in costs.items():
        base_wall, base_used = costs["plain there" if name == "pytest-forked" else "plain"]
        print(f"{name:42} {wall:6.2f} {wall - base_wall:+11.2f} {used:11.2f} {used - base_used:+11.2f}")
    return int(costs["auto"][0] - costs["plain"][0] > chosen.limit_ms)


if __name__ == "__main__":
    sys.exit(main())
