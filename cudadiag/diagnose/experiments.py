"""The experiments: other ways to run the shape in question. Each is one kind of process; nothing here runs one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Experiment(StrEnum):
    """`as-judged` is the case's own observer (blocking by default), in the form in which the shape fails."""

    AS_JUDGED = "as-judged"
    REPEAT = "repeat"
    PLAIN = "plain"
    BLOCKING = "blocking"
    MEMCHECK = "memcheck"
    RACECHECK = "racecheck"
    INITCHECK = "initcheck"
    SYNCCHECK = "synccheck"
    COREDUMP = "coredump"
    ALONE = "alone"
    UNOPTIMISED = "unoptimised"
    BY_DRIVER = "by-driver"
    OTHER_GPU = "other-gpu"


REBUILT = (Experiment.UNOPTIMISED, Experiment.BY_DRIVER)
"""Experiments with other machine code than the program's own."""
TOOLS = (Experiment.MEMCHECK, Experiment.RACECHECK, Experiment.INITCHECK, Experiment.SYNCCHECK)
FIRST_LOGGING_DRIVER = 575
PURPOSE = "diagnose"
"""Of the probes that experiments make; their tag is the experiment's name."""
REPEATS = 2
"""Further runs in fresh processes. With the first that is three alike, or not."""


@dataclass(frozen=True)
class Setting:
    """Where the experiments would run, and what is there for them. A text says why something cannot be had."""

    device: str  # "cuda", "emulator" or "none"
    target: str  # "kernel", "python" or "command"
    memory_model: str = "exact"
    observer: str = "blocking"  # the one that judges
    gpus: int = 0  # that the run uses
    gpus_here: int = 0  # that it could use
    troubles: tuple[str, ...] | None = None  # of the GPUs' memory, as NVML counts them; None where nobody could tell
    tool_problem: str | None = None  # why compute-sanitizer cannot be used
    can_sequence: bool = False
    capability: int | None = None  # of the first GPU: 10 * major + minor
    driver: str | None = None  # version of the driver; None where nobody could tell
    built_for: tuple[str, ...] = ()  # architectures the program holds code for; () where nobody could tell

    @property
    def has_driver_log(self) -> bool:
        """Whether the driver writes the errors of CUDA calls to CUDA_LOG_FILE, as it does since 575 (CUDA 12.9)."""
        if self.device != "cuda":
            return False
        major = (self.driver or "").partition(".")[0]
        return not major.isdigit() or int(major) >= FIRST_LOGGING_DRIVER

    def problem(self, experiment: Experiment) -> str | None:
        """Why this experiment is not possible here; None where it is."""
        if experiment in TOOLS:
            return self._tool_problem(experiment)
        if experiment is Experiment.COREDUMP and self.device != "cuda":
            return "core files need a GPU"
        if experiment in (Experiment.PLAIN, Experiment.BLOCKING) and self.device == "none":
            return "no CUDA device is in use"
        if experiment is Experiment.UNOPTIMISED and (self.device, self.target) != ("cuda", "kernel"):
            return "only kernels compiled for a GPU can be compiled without optimisation"
        if experiment is Experiment.BY_DRIVER:
            return self._driver_problem()
        if experiment is Experiment.OTHER_GPU and self.gpus < 2:
            return self._one_gpu
        return None

    @property
    def _one_gpu(self) -> str:
        if self.gpus_here > 1:
            return f"the run uses one of {self.gpus_here} GPUs (--device cuda takes all)"
        return "there is no other GPU"

    def _driver_problem(self) -> str | None:
        """Why the driver cannot make the machine code."""
        if self.device != "cuda":
            return "only a GPU's driver compiles PTX"
        if self.target == "kernel":
            return None
        if self.target == "python":
            return "which code a Python program loads is its own affair"
        if not any(self.capability is not None and is_ptx_for(name, self.capability) for name in self.built_for):
            return "no PTX for this GPU was found in the program"
        return None

    def _tool_problem(self, experiment: Experiment) -> str | None:
        if self.device == "none":
            return "compute-sanitizer needs a CUDA device"
        if self.device == "emulator":
            if experiment is Experiment.MEMCHECK:
                return None if self.memory_model == "exact" else "the emulated device checks only pages (--memory)"
            return "the emulated device checks memory accesses only"
        return self.tool_problem

    def observer_of(self, experiment: Experiment) -> str:
        """Under which observer an experiment's process runs."""
        named = experiment in (*TOOLS, Experiment.PLAIN, Experiment.BLOCKING, Experiment.COREDUMP)
        return experiment.value if named else self.observer


def is_ptx_for(name: str, capability: int) -> bool:
    """Whether `compute_90`, `compute_90a` (that one architecture) or `compute_100f` (its family) can be compiled for a
    device of this capability (10 * major + minor). False for machine code."""
    kind, _, version = name.partition("_")
    number = int(version.rstrip("af"))
    if kind != "compute":
        return False
    if version.endswith("a"):
        return number == capability
    return number <= capability and (not version.endswith("f") or number // 10 == capability // 10)
