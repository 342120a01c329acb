"""Runs the `kernel` target: the schema is in harness/targets/kernel.py. Loaded by path in the child."""

from __future__ import annotations

import importlib
import os
import sys
import time

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from typing import Any


class Tools:
    """What the steps of one target share: the device, our helper modules, numpy where needed, the compiled modules."""

    def __init__(self, request: dict[str, Any], report: Any, load: Any) -> None:
        self.target = request["target"]
        self.report = report
        self.device: Any = None
        self.dtypes = load("dtypes", "child", "dtypes.py")
        self.fills = load("fills", "child", "fills.py")
        self.compare = load("compare", "child", "compare.py")
        self.usercode = load("usercode", "child", "usercode.py")
        self.calling = load("calling", "child", "calling.py")
        # Before any of the user's folders is on the path: a numpy.py there must not be taken for the library.
        self.numpy = importlib.import_module("numpy") if self._needs_numpy() else None
        self.filler = self.fills.Filler(self.dtypes, self.numpy, self.call_user)
        # Writing an output marks it as initialised, and initcheck is there to find reads of what was never written.
        self.poisons = request["observer"] != "initcheck"
        self._modules: dict[Any, Any] = {}

    def _needs_numpy(self) -> bool:
        checked = self.target.get("check", True)
        return any(
            (checked and step.get("reference")) or any(map(self.fills.needs_numpy, step["buffers"]))
            for step in steps_of(self.target)
        )

    def call_user(self, spec: dict[str, Any], offered: dict[str, Any]) -> Any:
        function = self.usercode.load_function(spec["file"], spec["function"])
        return self.calling.call_with(function, offered)

    def module(self, kernel: dict[str, Any]) -> Any:
        """The compiled source of a kernel; each (source, define, options) is compiled once."""
        path = kernel["source"]
        defines = [f"-D{name}={_macro(value)}" for name, value in sorted((kernel.get("define") or {}).items())]
        options = [*defines, f"-I{os.path.dirname(path)}", *(kernel.get("options") or [])]
        key = (path, tuple(options))
        if key not in self._modules:
            with open(path, encoding="utf-8") as file:
                source = file.read()
            self._modules[key] = self._compiled(source, path, options)
        return self._modules[key]

    def _compiled(self, source: str, path: str, options: list[str]) -> Any:
        if self.target.get("compiler") == "driver":
            return self.device.compile_by_driver(source, path, options)
        return self.device.compile(source, path, options, self._plant(path, source))

    def _plant(self, path: str, source: str) -> dict[str, Any] | None:
        """The fault to put into this source, its marker turned into a line; None if there is none."""
        plant = self.target.get("plant")
        if not plant or plant.get("source", path) != path:
            return None
        marker = plant.get("marker")
        if marker is None:
            return dict(plant)
        lines = [number for number, line in enumerate(source.splitlines(), 1) if marker in line]
        if len(lines) != 1:
            raise ValueError(f"plant: the marker {marker!r} is on {len(lines)} lines of {path}, it must be on one")
        return {"kind": plant["kind"], "entry": plant["entry"], "line": lines[0]}


def _macro(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def steps_of(target: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = target["steps"] if target.get("steps") is not None else [target]
    return steps


def open_device(request: dict[str, Any], load: Any) -> Any:
    """The device the request names. Raises NotSupported when it names none."""
    interface = load("interface", "devices", "interface.py")
    kind, _, uuid = request["device"].partition(":")
    if kind == "cuda":
        return load("cuda_device", "devices", "cuda.py").CudaDevice(uuid, load)
    if kind == "emulator":
        emulator = load("emulator", "devices", "emulator", "__init__.py")
        # It ends a hang itself, a little before we would: only then can it say which line each lane was at.
        left_s = request["timeout_s"] - (time.monotonic() - request["result"]["started_s"])
        return emulator.EmulatedDevice(
            memory_model=request["memory_model"],
            observer=request["observer"],
            wall_limit_s=max(0.5, 0.8 * left_s),
            leak_check=request["leak_check"],
        )
    raise interface.NotSupported("a kernel target needs a device: a GPU or the emulator")


def run(request: dict[str, Any], report: Any, load: Any) -> int:
    """Run every step; returns the process's exit code."""
    errors = load("errors", "child", "errors.py")
    steps = load("kernel_step", "child", "kernel_step.py")
    done: list[dict[str, Any]] = []
    tools = None
    try:
        report.crumb("import", {})
        tools = Tools(request, report, load)
        report.crumb("context", {"device": request["device"]})
        tools.device = open_device(request, load)
        report.device(tools.device.facts())
        _run_steps(tools, steps, done)
        tools.device.close()
    except Exception as error:  # noqa: BLE001 - whatever the device or the user's code raises is the probe's fact
        _report_end(report, tools, done, error=errors.describe(error, report.step))
        _show(error, errors)
        return 1
    _report_end(report, tools, done, finished=True)
    report.crumb("finished", {})
    return 0


def _run_steps(tools: Tools, steps: Any, done: list[dict[str, Any]]) -> None:
    sequence = tools.target.get("steps") is not None
    for index, body in enumerate(steps_of(tools.target)):
        where = {"step": index, "shape": body.get("shape", {})} if sequence else {}
        step = steps.Step(tools.target, body, tools, where)
        done.append(step.facts)
        step.run()


def _report_end(report: Any, tools: Tools | None, done: list[dict[str, Any]], **end: Any) -> None:
    facts = dict(done[-1]) if done else {}
    if tools is not None and tools.target.get("steps") is not None:
        facts["steps"] = done
    if tools is not None and tools.device is not None:
        report.records(tools.device.records())
    report.result(**facts, **end)


def _show(error: Exception, errors: Any) -> None:
    """A CUDA error as one line, as a checked program prints it; a compiler's log as it is; the rest as a traceback."""
    name, number, call = (getattr(error, key, None) for key in ("cuda_name", "number", "call"))
    log = getattr(error, "log", None)
    if name is not None:
        print(f"CUDA error {number} ({name}) from {call}: {getattr(error, 'text', error)}", file=sys.stderr)
    elif isinstance(log, str):
        print(log, file=sys.stderr)
    else:
        errors.show(error)
