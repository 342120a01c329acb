"""pytest that survives a poisoned CUDA context: tests run in child processes that are checked after every phase and
replaced when they are dead, hung or poisoned.

The parent (`controller`, `process`, `items`) never imports a test module and never touches CUDA. The child's half
(`child/`) is loaded by file path in a fresh interpreter. What a fault is called is decided elsewhere: `incident.Name`.
"""
