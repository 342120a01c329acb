"""Runs the `python` target: the schema is in harness/targets/python.py. Loaded by path in the child."""

from __future__ import annotations

import json
import os
import sys
import time


def run(request: dict, report: object, load: object) -> int:
    """Call the user's function for each step; the process's exit code. Never catches what Python itself would exit on."""
    target = request["target"]
    errors = load("errors", "child", "errors.py")  # type: ignore[operator]
    usercode = load("usercode", "child", "usercode.py")  # type: ignore[operator]
    cuda_sync = load("cuda_sync", "child", "cuda_sync.py")  # type: ignore[operator]
    sys.argv = [target["file"]]
    try:
        report.crumb("import", file=target["file"], function=target["function"])  # type: ignore[attr-defined]
        function = usercode.load_function(target["file"], target["function"])
        results = _run_steps(target, function, report, cuda_sync)
    except SystemExit as end:
        described = dict(errors.describe(end, report.step), exit_code=end.code)  # type: ignore[attr-defined]
        report.result(error=described)  # type: ignore[attr-defined]
        raise
    except BaseException as error:  # noqa: BLE001 - reported, then handed to Python as it would have been
        report.result(error=errors.describe(error, report.step))  # type: ignore[attr-defined]
        if isinstance(error, KeyboardInterrupt):
            raise
        errors.show(error)
        return 1
    report.result(finished=True, **results)  # type: ignore[attr-defined]
    report.crumb("finished")  # type: ignore[attr-defined]
    return 0


def _run_steps(target: dict, function: object, report: object, cuda_sync: object) -> dict:
    """The result of the last step, and of all under "steps" in a sequence."""
    steps = target.get("steps")
    done = []  # type: list
    for index, step in enumerate(steps if steps is not None else [target]):
        where = {"step": index, "shape": step.get("shape", {})} if steps is not None else {}
        report.crumb("launch", kwargs=step.get("kwargs", {}), **where)  # type: ignore[attr-defined]
        begun = time.perf_counter()
        returned = function(**step.get("kwargs", {}))  # type: ignore[operator]
        facts = {"call_s": time.perf_counter() - begun, "returned": plain(returned)}
        if isinstance(returned, dict) and isinstance(returned.get("us_per_call"), (int, float)):
            facts["us_per_call"] = float(returned["us_per_call"])
        report.crumb("synchronise", **where)  # type: ignore[attr-defined]
        facts["synchronised"] = cuda_sync.synchronise()  # type: ignore[attr-defined]
        done.append(facts)
        if steps is not None:
            report.result(steps=done)  # type: ignore[attr-defined]
    last = done[-1] if done else {}
    return dict(last, steps=done) if steps is not None else last


def plain(value: object) -> object:
    """The value if it is JSON, else its repr, cut."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)[:2000]
    return value if len(text) <= 65536 else text[:2000] + os.linesep + "... (cut)"
