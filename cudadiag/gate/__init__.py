"""The gate: runs chosen shapes of cases, compares what failed with a baseline of known crashes, and says what is new.

`decide` is pure; `running` runs; `outputs` write. Nothing here falls back to another device.
"""
