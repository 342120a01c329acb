"""Runs a conformance case on the emulated device, from PTX."""

from __future__ import annotations

from typing import Any

import numpy as np
from conf_case import Case, out_dtypes


def run_case(device: Any, case: Case, ptx: str) -> list[np.ndarray]:
    """The bits of every output. Raises what the device raises: NotSupported, CudaError."""
    inputs = case.inputs()
    kernel = device.kernel(device.load_ptx(ptx), case.name)
    arrays = [*inputs, *(np.zeros(case.count(inputs), dtype) for dtype in out_dtypes(case))]
    addresses = []
    for number, array in enumerate(arrays):
        addresses.append(device.allocate(array.nbytes, f"buffer{number}"))
        device.write(addresses[-1], array.tobytes())
    arguments = [("pointer", address) for address in addresses] + [("uint32", len(inputs[0]))]
    device.launch(kernel, (case.blocks(inputs), 1, 1), (case.block, 1, 1), 0, arguments)
    device.synchronise()
    outputs = [
        np.frombuffer(device.read(address, array.nbytes), array.dtype)
        for address, array in zip(addresses[len(inputs) :], arrays[len(inputs) :], strict=True)
    ]
    for address in addresses:
        device.free(address)
    return outputs
