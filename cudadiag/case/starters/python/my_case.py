"""The function under test. An exception, a signal, a CUDA error and a hang are all noticed; so is a returned time."""

import time


def run(n: int, kind: str) -> dict[str, float]:
    start = time.perf_counter()
    table = [[i + 2 * j for j in range(n)] for i in range(n)]
    total = sum(map(sum, table)) if kind == "row" else sum(sum(row[j] for row in table) for j in range(n))
    if 2 * total != 3 * n * n * (n - 1):
        raise AssertionError(f"twice the sum is {2 * total}, not {3 * n * n * (n - 1)}")
    return {"us_per_call": (time.perf_counter() - start) * 1e6}
