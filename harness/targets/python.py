"""The `python` target: a function of the user's, called in the user's interpreter.

`ProbeRequest.target`::

    {"kind": "python", "file": "/abs/bench.py", "function": "run", "kwargs": {"q_len": 9}, "shape": {...}}
    {"kind": "python", "file": "/abs/bench.py", "function": "run",
     "steps": [{"shape": {...}, "kwargs": {...}}, ...]}          # isolation: sequence, one process

The file's own folder is put first on `sys.path`, as `python bench.py` does (for a file inside a package: the folder
that holds the package). If CUDA was used, every context of the process is synchronised before `finished`, so a late
fault is caught. Breadcrumbs: import, launch (with the keyword arguments), synchronise, finished.

`ProbeFacts.result`: {"finished": true, "synchronised": ["primary context of device 0"] | [] (no CUDA was used),
"returned": the function's return value where it is JSON (numbers, text, lists, dicts; others as their repr),
"us_per_call": taken from a returned dict that has that key, "call_s": seconds in the function,
"error": {"step", "type", "text", "traceback", "cuda_name", "number", "call", "exit_code"}, "steps": [...]}.
"""

from __future__ import annotations

from harness.records import ProbeRequest
from harness.targets.command import PYTHON_ENVIRONMENT
from harness.targets.interface import ResultChannel, TargetLaunch, worker_launch


def launch(request: ProbeRequest, channel: ResultChannel) -> TargetLaunch:
    return worker_launch(request, channel, PYTHON_ENVIRONMENT)
