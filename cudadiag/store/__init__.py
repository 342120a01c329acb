"""Where a run is kept: its folder under `.cudadiag/`, and the ledger, the JSON lines of everything probed."""
