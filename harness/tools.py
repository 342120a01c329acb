"""NVIDIA's tools that are programs of their own: where they lie."""

from __future__ import annotations

import shutil


def find(name: str) -> str | None:
    """A tool's path: the pip wheels, conda, the toolkit, PATH, in this order; None where it is nowhere."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility

        found = find_nvidia_binary_utility(name)
    except (ImportError, AttributeError, ValueError, RuntimeError):  # none, or an old one that does not know the tool
        found = None
    return str(found) if found else shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
