"""cudadiag finds out why a CUDA program crashes. This half decides things and runs nothing (see `harness`)."""

__version__ = "0.1.0"
