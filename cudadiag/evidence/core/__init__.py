"""A reader of GPU core files in plain Python: no GPU, no toolkit, only pyelftools."""

from cudadiag.evidence.core.reader import read_core
from cudadiag.evidence.core.reading import CoreException, CoreKernel, CoreReading

__all__ = ["CoreException", "CoreKernel", "CoreReading", "read_core"]
