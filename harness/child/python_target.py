"""Runs the `python` target: the schema is in harness/targets/python.py. Loaded by path in the child."""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from typing import Any


def run(request: dict[str, Any], report: Any, load: Any) -> int:
    """Call the user's function for each step; returns the process's exit code."""
    target = request["target"]
    errors = load("errors", "child", "errors.py")
    usercode = load("usercode", "child", "usercode.py")
    cuda_sync = load("cuda_sync", "child", "cuda_sync.py")
    sys.argv = [target["file"]]
    try:
        report.crumb("import", {"file": target["file"], "function": target["function"]})
        function = usercode.load_function(target["file"], target["function"])
        results = _run_steps(target, function, report, cuda_sync)
    except SystemExit as end:
        described = dict(errors.describe(end, report.step), exit_code=end.code)
        report.result(error=described)
        raise
    except BaseException as error:
        report.result(error=errors.describe(error, report.step))
        if isinstance(error, KeyboardInterrupt):
            raise
        errors.show(error)
        return 1
    finally:
        allocator = caching_allocator()
        if allocator is not None:
            report.result(caching_allocator=allocator)
    report.result(finished=True, **results)
    report.crumb("finished")
    return 0


def _run_steps(target: dict[str, Any], function: Any, report: Any, cuda_sync: Any) -> dict[str, Any]:
    """The result of the last step, and of all under "steps" in a sequence."""
    steps = target.get("steps")
    done: list[Any] = []
    for index, step in enumerate(steps if steps is not None else [target]):
        where = {"step": index, "shape": step.get("shape", {})} if steps is not None else {}
        report.crumb("launch", {"kwargs": step.get("kwargs", {}), **where})
        begun = time.perf_counter()
        returned = function(**step.get("kwargs", {}))
        facts = {"call_s": time.perf_counter() - begun, "returned": plain(returned)}
        if isinstance(returned, dict) and isinstance(returned.get("us_per_call"), (int, float)):
            facts["us_per_call"] = float(returned["us_per_call"])
        report.crumb("synchronise", where)
        facts["synchronised"] = cuda_sync.synchronise()
        done.append(facts)
        if steps is not None:
            report.result(steps=done)
    last = done[-1] if done else {}
    return dict(last, steps=done) if steps is not None else last


def caching_allocator() -> str | None:
    """The allocator that hands out pieces of larger allocations, where the program has one in use: overruns into a
    neighbouring piece do not show then. None where there is none, or where it was turned off.

    Asked of what the program imported; nothing is imported for it.
    """
    torch = sys.modules.get("torch")
    if torch is None or "PYTORCH_NO_CUDA_MEMORY_CACHING" in os.environ:  # torch asks no more of it
        return None
    try:
        return "torch" if torch.cuda.is_initialized() else None
    except (AttributeError, ImportError, RuntimeError, TypeError):  # half imported, or another of that name
        return None


def plain(value: object) -> object:
    """The value if it is JSON, else its repr, cut."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)[:2000]
    return value if len(text) <= 65536 else text[:2000] + os.linesep + "... (cut)"
