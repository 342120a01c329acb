"""The function under test. An exception, a signal, a CUDA error and a hang are all noticed; so is a returned time."""

import time


def run(n: int, kind: str) -> dict[str, float]:
    start = time.perf_counter()
    table = [[i + j for j in range(n)] for i in range(n)]
    total = sum(map(sum, table if kind == "row" else zip(*table)))
    if total != n * n * (n - 1):
        raise AssertionError("the sum is %d, not %d" % (total, n * n * (n - 1)))
    return {"us_per_call": (time.perf_counter() - start) * 1e6}
