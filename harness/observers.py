"""The observers: what each one sets in the environment of a probe, and how it wraps the command line. One table, no
surprises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import sanitizer
from harness.records import ProbeRequest

SCRUBBED = (
    "CUDA_DEVICE_WAITS_ON_EXCEPTION",  # waits for a debugger for ever
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_LOG_FILE",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION",
    "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP",
    "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
    "CUDA_COREDUMP_FILE",
    "CUDA_COREDUMP_GENERATION_FLAGS",
    "CUDA_COREDUMP_PIPE",
    "CUDA_COREDUMP_SHOW_PROGRESS",
)
"""Never inherited by a probe, whatever the observer; an observer then sets what its row says."""

SMALL_CORE = ",".join(
    (
        "skip_nonrelocated_elf_images",
        "skip_global_memory",
        "skip_shared_memory",
        "skip_local_memory",
        "skip_constbank_memory",
    )
)


@dataclass(frozen=True)
class Observer:
    """One row of the table. `environment` may hold `{folder}`, the probe's own folder."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    driver_log: bool = False
    tool: str | None = None  # compute-sanitizer's --tool
    core: bool = False


OBSERVERS: Mapping[str, Observer] = {
    row.name: row
    for row in (
        Observer("plain", driver_log=True),
        Observer("blocking", {"CUDA_LAUNCH_BLOCKING": "1"}, driver_log=True),
        Observer("memcheck", tool="memcheck"),
        Observer("racecheck", tool="racecheck"),
        Observer("initcheck", tool="initcheck"),
        Observer("synccheck", tool="synccheck"),
        Observer(
            "coredump",
            {
                "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
                "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1",
                "CUDA_COREDUMP_FILE": "{folder}/core_%p.nvcudmp",
                "CUDA_COREDUMP_PIPE": "{folder}/corepipe_%p",
                "CUDA_COREDUMP_GENERATION_FLAGS": SMALL_CORE,
                "CUDA_COREDUMP_SHOW_PROGRESS": "1",
            },
            driver_log=True,
            core=True,
        ),
    )
}


@dataclass(frozen=True)
class Observation:
    """An observer applied to one probe: the command line and environment to use, and the files it will leave."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    driver_log: Path | None = None
    sanitizer_xml: Path | None = None
    sanitizer_log: Path | None = None
    inner_exit: Path | None = None
    core_folder: Path | None = None
    notes: tuple[str, ...] = ()


def observe(request: ProbeRequest, argv: tuple[str, ...]) -> Observation:
    """Apply the request's observer to a command line.

    Raises `sanitizer.ToolMissing` when compute-sanitizer cannot be found or asked.
    On the emulated device the sanitizer's observers wrap nothing: the emulator is its own memory checker.
    """
    row = OBSERVERS[request.observer]
    folder = Path(request.folder)
    environment = {key: value.replace("{folder}", str(folder)) for key, value in row.environment.items()}
    driver_log = folder / "driver.log" if row.driver_log else None
    if driver_log is not None:
        driver_log.touch()
        environment["CUDA_LOG_FILE"] = str(driver_log)
    core_folder = folder if row.core and request.device != "emulator" else None
    if row.tool is None or request.device == "emulator":
        return Observation(argv, environment, driver_log, core_folder=core_folder)
    wrapped = sanitizer.wrap(row.tool, argv, folder, leak_check=request.leak_check)
    return Observation(
        wrapped.argv,
        {**environment, **wrapped.environment},
        driver_log,
        sanitizer_xml=wrapped.xml,
        sanitizer_log=wrapped.log,
        inner_exit=wrapped.inner_exit,
        notes=wrapped.notes,
    )
