"""harness runs things and records facts. It decides nothing, not even whether a probe passed (see `cudadiag`)."""
