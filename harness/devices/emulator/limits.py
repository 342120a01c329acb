"""Launch limits of the emulated device (compute capability 8.0) and how the driver refuses what exceeds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .translate import KernelInfo

Dim3 = tuple[int, int, int]

LIMITS = {
    "max_threads_per_block": 1024,
    "max_block_dim_x": 1024,
    "max_block_dim_y": 1024,
    "max_block_dim_z": 64,
    "max_grid_dim_x": 2147483647,
    "max_grid_dim_y": 65535,
    "max_grid_dim_z": 65535,
    "max_shared_memory_per_block": 49152,
    "max_shared_memory_per_block_optin": 166912,
    "multiprocessor_count": 108,
    "warp_size": 32,
}


def check_launch(info: KernelInfo, grid: Dim3, block: Dim3, dynamic_shared: int) -> tuple[int, list[str]] | None:
    """None for a launch the driver takes; else the error number and the plain words of its log.

    Measured on an H200 with driver 580: an empty or too large grid, too many threads and too much shared memory return
    1 (invalid value) from the launch; the words for grid and shared memory are the driver's own.
    """
    for what, extents in (("Grid", grid), ("Block", block)):
        for axis, extent in zip("XYZ", extents, strict=True):
            most = LIMITS[f"max_{what.lower()}_dim_{axis.lower()}"]
            if extent > most:
                return 1, [f"{what} Dimension {axis} of {extent} exceeds maximum value of {most}"]
            if extent <= 0:
                return 1, [f"{what} Dimension {axis} of {extent} is not positive"]
    threads = block[0] * block[1] * block[2]
    most = LIMITS["max_threads_per_block"]
    if threads > most:
        return 1, [f"Number of threads per block {threads} exceeds maximum value of {most}"]
    if threads > info.max_threads:
        return 1, [f"Number of threads per block {threads} exceeds the kernel's launch bound of {info.max_threads}"]
    required = info.required_threads
    if required and tuple(block) != tuple(required) + (1,) * (3 - len(required)):
        return 1, [f"Block dimensions {block} differ from the kernel's required {required}"]
    return _check_shared(info, dynamic_shared)


def _check_shared(info: KernelInfo, dynamic: int) -> tuple[int, list[str]] | None:
    room = LIMITS["max_shared_memory_per_block_optin"] - info.shared_static
    if dynamic > room:
        asked = f"Requested dynamic shared memory size of {dynamic} bytes"
        return 1, [f"{asked} exceeds maximum dynamic shared memory size of {room} bytes"]
    return None
