"""How fast `triage` goes through a log without faults, against grep with the same patterns; and its memory on 2 GB.

    python benchmarks/triage_throughput.py [--megabytes 256] [--big]

The log is made here: lines as servers and training loops write them, none of which is a complaint. grep runs in the
C locale with the pattern file that triage's own quick scan uses. `--big` reads 2 GB (made as it is read) and prints the
peak memory of the process.
"""

from __future__ import annotations

import argparse
import importlib.resources
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cudadiag.triage import blocks, scan, tell
from cudadiag.triage.prefilter import PATTERN_FILE, has_automaton

BIG_BYTES = 2 << 30


def quiet_lines(count: int) -> bytes:
    """Lines of a healthy server and training loop."""
    dice = random.Random(7)
    parts = []
    for step in range(count):
        clock = f"{step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d}"
        parts.append(
            dice.choice(
                (
                    f"INFO 06-12 {clock} [loggers.py:87] Engine 000: Avg prompt throughput: {dice.random() * 4000:.1f} "
                    f"tokens/s, Avg generation throughput: {dice.random() * 900 + 1:.1f} tokens/s, Running: 3 reqs\n",
                    f'INFO:     172.27.0.4:{dice.randrange(1024, 65535)} - "POST /v1/completions HTTP/1.0" 200 OK\n',
                    f"[2026-02-12 {clock} TP0] Prefill batch, #new-seq: 5, #new-token: 8192, #cached-token: {step}, "
                    "token usage: 0.13, #running-req: 18\n",
                    f"step {step} | loss {dice.random():.4f} | lr 3.0e-04 | norm {dice.random():.3f} | 341 ms/step\n",
                    f"epoch 3: {step % 100:3d}%|{'#' * (step % 20):<20}| {step}/100000 [01:12<01:48, 5.5it/s]\r",
                )
            )
        )
    return "".join(parts).encode()


def best_of(times: int, run: object) -> float:
    """The shortest wall time of several runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()  # type: ignore[operator]
        found.append(time.perf_counter() - start)
    return min(found)


def compare(megabytes: int) -> int:
    part = quiet_lines(20_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quiet.log"
        with open(path, "wb") as file:
            while file.tell() < megabytes << 20:
                file.write(part)
        size = path.stat().st_size / 1e6
        patterns = Path(folder) / "patterns"
        patterns.write_bytes(importlib.resources.files("cudadiag.data").joinpath(PATTERN_FILE).read_bytes())
        command = ["grep", "-E", "-c", "-f", str(patterns), str(path)]
        environment = {**os.environ, "LC_ALL": "C"}
        hits = subprocess.run(command, env=environment, capture_output=True, check=False).stdout.decode().strip()
        theirs = best_of(2, lambda: subprocess.run(command, env=environment, capture_output=True, check=False))
        ours = best_of(2, lambda: tell([scan(blocks(open(path, "rb")))]))  # noqa: SIM115
    print(f"{size:.0f} MB, {hits} lines hit, quick scan: {'google-re2' if has_automaton() else 'Python re'}")
    print(f"grep    {size / theirs:7.1f} MB/s")
    print(f"triage  {size / ours:7.1f} MB/s  ({theirs / ours:.2f} of grep)")
    return 0 if ours <= 10 * theirs else 1


def big() -> int:
    part = quiet_lines(20_000)

    def stream() -> Iterator[bytes]:
        left = BIG_BYTES
        while left > 0:
            yield part
            left -= len(part)
        yield b'CUDA error at k.cu:7 code=700(cudaErrorIllegalAddress) "cudaDeviceSynchronize()"\n'

    start = time.perf_counter()
    story = tell([scan(stream())])
    wall = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"2 GB in {wall:.1f} s, peak memory {peak:.0f} MB: {story.summary}")
    return 0 if peak < 200 and story.fault is not None and story.fault.number == 700 else 1


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--big", action="store_true")
    options = parser.parse_args(words)
    return big() if options.big else compare(options.megabytes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
