"""Running small kernels on the emulated device in tests: numpy in, numpy out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.devices.emulator import EmulatedDevice


@dataclass
class Ran:
    """What a launch left: the arrays by name afterwards, the error (None if it passed), the checker's records."""

    arrays: dict[str, np.ndarray]
    error: Any
    records: list[dict[str, Any]]
    device: EmulatedDevice

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]


_DTYPES = {"bool": "bool"}


def launch(
    source: str, entry: str, grid: Any, block: Any, args: list[Any], *, shared: int = 0, ptx: bool = False,
    options: tuple[str, ...] = (), plant: dict[str, Any] | None = None, path: str = "/src/kernel.cu",
    device: EmulatedDevice | None = None, **settings: Any,
) -> Ran:  # fmt: skip
    """Compile and run once. An argument is a (name, array) pair, an (dtype, value) scalar, or a bare address."""
    device = device or EmulatedDevice(**settings)
    module = device.load_ptx(source, path, plant) if ptx else device.compile(source, path, options, plant)
    kernel = device.kernel(module, entry)
    places: dict[str, tuple[int, np.ndarray]] = {}
    values: list[tuple[str, Any]] = []
    for arg in args:
        if isinstance(arg, tuple) and isinstance(arg[1], np.ndarray):
            name, array = arg
            address = device.allocate(array.nbytes, name)
            device.write(address, array.tobytes())
            places[name] = (address, array)
            values.append(("pointer", address))
        else:
            values.append(arg)
    error = None
    try:
        device.launch(kernel, dim3(grid), dim3(block), shared, values)
        device.synchronise()
    except Exception as caught:
        if not hasattr(caught, "cuda_name"):
            raise
        error = caught
    arrays = {n: _read(device, a, array) for n, (a, array) in places.items()}
    return Ran(arrays, error, device.records(), device)


def dim3(extent: Any) -> tuple[int, int, int]:
    extents = (extent,) if isinstance(extent, int) else tuple(extent)
    return (*extents, 1, 1)[:3]


def _read(device: EmulatedDevice, address: int, array: np.ndarray) -> np.ndarray:
    """The array's memory, also after a fault (when the device itself refuses every call)."""
    data = device.memory.read(address, array.nbytes)
    return np.frombuffer(data, array.dtype).reshape(array.shape).copy()


def source_file(folder: Path, name: str) -> str:
    return (folder / name).read_text()
