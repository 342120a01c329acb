"""How fast the emulated device is: verify_attn on one and on two cores, cold and cached compilation, launches; and
beside Numba's simulator where numba is installed.

    python benchmarks/emulator_speed.py

Prints one line per measurement: name, value, unit, and the target where there is one.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from harness.devices.emulator import EmulatedDevice

ROOT = Path(__file__).parent.parent
ATTENTION = ROOT / "cases" / "ddtree" / "verify_attn.cu"
HEADS, Q_LEN, PREFIX, LATENT, ROPE = 2, 33, 1024, 512, 64
SAXPY = """extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }"""


def report(name: str, value: float, unit: str, target: str = "") -> None:
    print(f"{name:<58} {value:>10.4g} {unit:<8} {target}")


def best(body: Callable[[], object], times: int = 5) -> float:
    """The shortest of some runs, in seconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        body()
        taken.append(time.perf_counter() - start)
    return min(taken)


def attention(**settings: Any) -> tuple[EmulatedDevice, Callable[[], None], dict[str, float]]:
    """A device, a function that launches verify_attn_ok once, and the seconds its compilation took."""
    device = EmulatedDevice(**settings)
    start = time.perf_counter()
    module = device.compile(ATTENTION.read_text(), str(ATTENTION), [f"-DLATENT={LATENT}", f"-DROPE={ROPE}"])
    kernel = device.kernel(module, "verify_attn")
    times = {"compile": time.perf_counter() - start}
    length, width = PREFIX + Q_LEN, LATENT + ROPE
    rng = np.random.default_rng(0)
    shapes = {"q": (1, Q_LEN, HEADS, width), "kv": (1, length, width), "out": (1, Q_LEN, HEADS, LATENT)}
    buffers = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    buffers["vis"] = np.tril(np.ones((1, Q_LEN, Q_LEN), np.uint8))
    buffers["scores"] = np.zeros((1, HEADS, Q_LEN, length), np.float32)
    args: list[tuple[str, Any]] = []
    for name in ("q", "kv", "vis", "out", "scores"):
        address = device.allocate(buffers[name].nbytes, name)
        device.write(address, buffers[name].tobytes())
        args.append(("pointer", address))
    args += [("int32", Q_LEN), ("int32", PREFIX)]
    return device, lambda: device.launch(kernel, (HEADS, 1, 1), (128, 1, 1), 0, args), times


def speed(folder: Path) -> None:
    counting, launch, _ = attention(workers=1, count=True, cache=folder)
    launch()
    executed = counting.instructions
    report("verify_attn: thread-instructions of one launch", executed / 1e6, "M")
    seconds = {}
    for workers in (1, 2):
        _, launch, _ = attention(workers=workers, cache=folder)
        seconds[workers] = best(launch)
        target = ">= 1" if workers == 1 else ""
        report(f"verify_attn: checked, {workers} core(s)", executed / seconds[workers] / 1e9, "G/s", target)
    report("verify_attn: two cores against one", seconds[1] / seconds[2], "x", ">= 1.5")


def compilation(folder: Path) -> None:
    attention(cache=folder / "warm-up")  # load NVRTC and LLVM once
    _, _, cold = attention(cache=folder / "cold")
    report("NVRTC + translation + LLVM, cold", cold["compile"], "s", "< 0.6")
    _, launch, cached = attention(cache=folder / "cold")
    report("the same from the cache", cached["compile"] * 1e3, "ms", "< 30")
    launch()


def launches(folder: Path) -> tuple[float, float]:
    device = EmulatedDevice(cache=folder, workers=1)
    kernel = device.kernel(device.compile(SAXPY, "/saxpy.cu", []), "saxpy")
    n = 4096
    x, y = device.allocate(4 * n, "x"), device.allocate(4 * n, "y")
    for address in (x, y):
        device.write(address, np.ones(n, np.float32).tobytes())
    args = [("float32", 2.0), ("pointer", x), ("pointer", y), ("int32", n)]
    one = best(lambda: device.launch(kernel, (1, 1, 1), (1, 1, 1), 0, args), 200)
    many = best(lambda: device.launch(kernel, (16, 1, 1), (256, 1, 1), 0, args), 50)
    report("launch of one thread", one * 1e6, "us")
    report("saxpy of 4096 elements", many * 1e3, "ms")
    return one, many


def simulator(ours: float) -> None:
    if importlib.util.find_spec("numba") is None:
        print("numba is not installed: no comparison with its simulator")
        return
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    global cuda  # the simulator puts its own stand-in for the module among the kernel's globals
    from numba import cuda

    @cuda.jit  # type: ignore[misc]
    def saxpy(a: float, x: Any, y: Any) -> None:
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < x.size:
            y[i] = a * x[i] + y[i]

    x, y = np.ones(4096, np.float32), np.ones(4096, np.float32)
    theirs = best(lambda: saxpy[16, 256](2.0, x, y), 2)
    report("saxpy of 4096 elements, Numba's simulator", theirs * 1e3, "ms")
    report("emulated device against Numba's simulator", theirs / ours, "x")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        speed(folder)
        compilation(folder)
        _, many = launches(folder)
        simulator(many)


if __name__ == "__main__":
    main()
