"""One shape of a `kernel` target on a device: allocate, fill, launch, synchronise, check, time, free.

The schema of a step is in harness/targets/kernel.py. Loaded by path in the child.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from typing import Any

_INPUTS = ("in", "inout")
_OUTPUTS = ("out", "inout")
_KERNEL_FACTS = ("registers", "shared_static", "local_bytes", "max_threads")


class Step:
    """Runs one step; `facts` grows as it goes, so that what is known before a fault is reported with it."""

    def __init__(self, target: dict[str, Any], step: dict[str, Any], tools: Any, where: dict[str, Any]) -> None:
        self.target = target
        self.step = step
        self.tools = tools
        self.where = where
        self.facts: dict[str, Any] = {}
        self.buffers = {buffer["name"]: buffer for buffer in step["buffers"]}
        self.address: dict[str, int] = {}
        self.initial: dict[str, bytes] = {}

    def run(self) -> None:
        """Raises what the device, the user's fill or the reference raises; the report's `step` says where."""
        device, report = self.tools.device, self.tools.report
        kernels = self._compile()
        self._allocate()
        self._launch(kernels, announce=True)
        report.crumb("synchronise", self.where)
        device.synchronise()
        self.facts["synchronised"] = True
        if self.target.get("check", True):
            report.crumb("check", self.where)
            self._check()
        if self.target.get("timing"):
            self._time(kernels, int(self.target["timing"]["launches"]))
        self._free()

    def _compile(self) -> list[Any]:
        report, device = self.tools.report, self.tools.device
        sources = sorted({kernel["source"] for kernel in self.step["kernels"]})
        report.crumb("compile", {"sources": sources, **self.where})
        begun = time.perf_counter()
        compiled = [device.kernel(self.tools.module(spec), spec["entry"]) for spec in self.step["kernels"]]
        self.facts["compile_s"] = time.perf_counter() - begun
        self.facts["kernels"] = [
            {"entry": spec["entry"], **{name: getattr(kernel, name) for name in _KERNEL_FACTS if hasattr(kernel, name)}}
            for spec, kernel in zip(self.step["kernels"], compiled)  # noqa: B905 - Python 3.8 has no strict=
        ]
        return compiled

    def _allocate(self) -> None:
        tools = self.tools
        described = [
            {key: buffer.get(key) for key in ("name", "role", "dtype", "shape", "fill", "seed")}
            for buffer in self.step["buffers"]
        ]
        tools.report.crumb("allocate", {"buffers": described, **self.where})
        memory = tools.device.facts()
        self.facts["memory"] = {"total": memory.get("total_memory"), "free_before": memory.get("free_memory")}
        table = self.facts["buffers"] = []
        for buffer in self.step["buffers"]:
            nbytes = tools.fills.elements(buffer) * tools.dtypes.size(buffer["dtype"])
            address = tools.device.allocate(nbytes, buffer["name"])
            self.address[buffer["name"]] = address
            kept = {key: buffer[key] for key in ("name", "role", "dtype", "shape")}
            table.append({**kept, "address": address, "size": nbytes})
        tools.report.result(**self.facts)  # addresses must be known even if the driver aborts the process
        for buffer in self.step["buffers"]:
            self._fill(buffer)

    def _fill(self, buffer: dict[str, Any]) -> None:
        tools, name = self.tools, buffer["name"]
        if buffer["role"] in _INPUTS:
            self.initial[name] = tools.filler.contents(buffer, self.step.get("params", {}))
        elif buffer["role"] == "out" and tools.poisons:
            self.initial[name] = tools.dtypes.poison(buffer["dtype"]) * tools.fills.elements(buffer)
        if self.initial.get(name):
            tools.device.write(self.address[name], self.initial[name])

    def _launch(self, kernels: list[Any], announce: bool) -> None:
        for index, (spec, kernel) in enumerate(zip(self.step["kernels"], kernels)):  # noqa: B905
            if announce:
                detail = {key: spec.get(key) for key in ("entry", "grid", "block", "shared", "cluster", "args")}
                self.tools.report.crumb("launch", {"kernel": index, **detail, **self.where})
            cluster = spec.get("cluster")
            self.tools.device.launch(
                kernel,
                tuple(spec["grid"]),
                tuple(spec["block"]),
                int(spec.get("shared") or 0),
                [self._argument(argument) for argument in spec["args"]],
                tuple(cluster) if cluster else None,
            )

    def _argument(self, argument: Any) -> tuple[str, Any]:
        if isinstance(argument, str):
            if argument not in self.address:
                raise ValueError(f"argument {argument!r} is no buffer; buffers are {', '.join(self.address)}")
            return ("pointer", self.address[argument])
        return (argument["dtype"], argument["scalar"])

    def _check(self) -> None:
        expected = self._expected()
        outputs: dict[str, Any] = {}
        unchecked: dict[str, Any] = {}
        for name, buffer in self.buffers.items():
            if buffer["role"] not in _OUTPUTS:
                continue
            data = self._read(name)
            if name in expected:
                outputs[name] = self._compare(buffer, data, expected[name])
            else:
                unchecked[name] = {"elements": self.tools.fills.elements(buffer)}
                if buffer["role"] == "out" and self.tools.poisons:
                    unchecked[name]["poison_left"] = self.tools.dtypes.count_poison(buffer["dtype"], data)
        changed = [n for n, b in self.buffers.items() if b["role"] == "in" and self._read(n) != self.initial[n]]
        self.facts["comparison"] = {"outputs": outputs, "unchecked": unchecked, "changed_inputs": changed}

    def _read(self, name: str) -> bytes:
        buffer = self.buffers[name]
        nbytes = self.tools.fills.elements(buffer) * self.tools.dtypes.size(buffer["dtype"])
        return bytes(self.tools.device.read(self.address[name], nbytes)) if nbytes else b""

    def _expected(self) -> dict[str, Any]:
        """What the reference says, by output; {} without one. Raises ValueError where it does not fit the outputs."""
        reference = self.step.get("reference")
        if reference is None:
            return {}
        tools = self.tools
        offered = dict(self.step.get("params", {}))
        for spec in self.step["kernels"]:
            for argument in spec["args"]:
                if isinstance(argument, dict) and argument.get("name"):
                    offered[argument["name"]] = argument["scalar"]
        for name, buffer in self.buffers.items():
            if buffer["role"] in _INPUTS:
                shape = tuple(buffer["shape"])
                offered[name] = tools.dtypes.to_numpy(tools.numpy, buffer["dtype"], self.initial[name], shape).copy()
        begun = time.perf_counter()
        answer = tools.call_user(reference, offered)
        self.facts["reference_s"] = time.perf_counter() - begun
        return self._by_output(answer)

    def _by_output(self, answer: Any) -> dict[str, Any]:
        outputs = [name for name, buffer in self.buffers.items() if buffer["role"] in _OUTPUTS]
        if isinstance(answer, dict):
            strangers = sorted(set(answer) - set(outputs))
            if strangers:
                raise ValueError(f"the reference names {', '.join(strangers)}; outputs are {', '.join(outputs)}")
            return answer
        if len(outputs) != 1:
            raise ValueError(f"the reference must return a dict: outputs are {', '.join(outputs) or 'none'}")
        return {outputs[0]: answer}

    def _compare(self, buffer: dict[str, Any], data: bytes, expected: Any) -> dict[str, Any]:
        tools, dtype, shape = self.tools, buffer["dtype"], tuple(buffer["shape"])
        # A bool is compared as the byte that it is: any other byte than 0 and 1 would pass for True.
        got = tools.dtypes.to_numpy(tools.numpy, "uint8" if dtype == "bool" else dtype, data, shape)
        expected = tools.numpy.asarray(expected)
        if expected.size != got.size:
            raise ValueError(f"the reference gives {buffer['name']} shape {expected.shape}, the buffer has {shape}")
        expected = expected.reshape(shape)
        if got.dtype.kind in "iu":
            expected = (expected.astype(bool) if dtype == "bool" else expected).astype(got.dtype)
        poisoned = buffer["role"] == "out" and tools.poisons
        poison = tools.dtypes.poison_mask(tools.numpy, dtype, data, shape) if poisoned else None
        tolerance = tools.compare.tolerance_for(buffer["name"], dtype, self.step.get("tolerance"))
        return dict(tools.compare.compare(tools.numpy, got, expected, poison, tolerance))

    def _time(self, kernels: list[Any], launches: int) -> None:
        """Every launch between two events of its own; what a launch changes is put back before it, outside of them."""
        device, report = self.tools.device, self.tools.report
        report.crumb("launch", {"timing": launches, **self.where})
        taken = []
        for _ in range(launches):
            for name, buffer in self.buffers.items():
                if buffer["role"] == "inout" and self.initial.get(name):
                    device.write(self.address[name], self.initial[name])
            taken.append(float(device.elapsed_us(lambda: self._launch(kernels, announce=False))))
        report.crumb("synchronise", {"timing": launches, **self.where})
        device.synchronise()
        self.facts["launch_us"] = taken
        self.facts["us_per_call"] = sorted(taken)[len(taken) // 2] if taken else None

    def _free(self) -> None:
        device = self.tools.device
        self.facts["memory"]["free_after"] = device.facts().get("free_memory")
        for buffer in reversed(self.step["buffers"]):
            if buffer.get("free", True) and self.address[buffer["name"]]:
                device.free(self.address[buffer["name"]])
