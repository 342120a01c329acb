"""What there is on this machine: every part cudadiag can use, whether it is here, and how to get it."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from cudadiag import __version__
from cudadiag.errors import CudadiagError
from cudadiag.session.check import Check
from cudadiag.session.devices import choose
from cudadiag.session.machine import Machine, this_machine
from harness import sanitizer, tools
from harness.devices import compiler
from harness.kernellog import KernelLog

# Wheels of headers, and a file of theirs that a toolkit's folder has as well.
HEADERS = {
    "CUDA runtime headers": ("nvidia-cuda-runtime", "cuda_fp16.h"),
    "CUDA compiler headers (crt)": ("nvidia-cuda-crt", "crt"),
    "CUDA C++ core library (cccl)": ("nvidia-cuda-cccl", "cuda/std"),
}
INSTALL = "pip install 'cudadiag[kernel]'"


def survey() -> list[Check]:
    """All checks, in the order they are shown. Asks NVML, starts `compute-sanitizer --help`; no CUDA context."""
    machine = this_machine()
    has_gpu = bool(machine.gpus)
    return [
        Check("cudadiag", "ok", f"{__version__}, Python {platform.python_version()} on {platform.machine()}"),
        _driver(machine),
        _gpus(machine),
        *_packages(),
        _emulator(has_gpu),
        _device(),
        _sanitizer(has_gpu),
        _binary("nvdisasm", "pip install 'cudadiag[sanitizer]'", "names the instruction at a fault"),
        _binary("cuda-gdb", "in the CUDA toolkit; it has no wheel", "a second opinion on core files"),
        _binary("nvcc", "in the CUDA toolkit; only cases with a `build:` need it", "builds C++ programs"),
        _kernel_log(),
    ]


def _driver(machine: Machine) -> Check:
    if machine.problem is not None:
        return Check(
            "NVIDIA driver",
            "missing",
            f"here, but it does not work: {machine.problem}",
            "`nvidia-smi` and `dmesg | grep NVRM` say more; --device emulator or none works meanwhile",
        )
    if not machine.has_driver:
        return Check("NVIDIA driver", "absent", "none")
    return Check(
        "NVIDIA driver", "ok", f"{machine.driver or 'version unknown'}, CUDA up to {machine.cuda or 'unknown'}"
    )


def _gpus(machine: Machine) -> Check:
    if machine.broken:
        words = "; ".join([*machine.broken, *(gpu.words() for gpu in machine.gpus)])
        return Check("GPUs", "missing", words, "`nvidia-smi` and `dmesg | grep NVRM` say more of the one that is lost")
    if machine.gpus:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        limited = f" (CUDA_VISIBLE_DEVICES={visible})" if visible is not None else ""
        return Check("GPUs", "ok", "; ".join(gpu.words() for gpu in machine.gpus) + limited)
    return Check("GPUs", "absent", "none: kernel cases run on the emulated device")


def _packages() -> list[Check]:
    nvrtc = _version("nvidia-cuda-nvrtc")
    name = "NVRTC (compiles kernel cases)"
    if nvrtc is None:
        checks = [Check(name, "missing", "not installed", INSTALL)]
    else:
        checks = [Check(name, "ok", f"nvidia-cuda-nvrtc {nvrtc}")]
    return checks + [_headers(name, package, part) for name, (package, part) in HEADERS.items()]


def _headers(name: str, package: str, part: str) -> Check:
    """Kernels that include no CUDA header compile without them."""
    version = _version(package)
    if version:
        return Check(name, "ok", f"{package} {version}")
    for folder in compiler.header_folders():
        for place in (folder, os.path.join(folder, "cccl")):
            if os.path.exists(os.path.join(place, part)):
                return Check(name, "ok", f"in {place}")
    return Check(name, "absent", "not installed; sources that include its headers need it", INSTALL)


def _emulator(has_gpu: bool) -> Check:
    version = _version("llvmlite")
    if version and _version("nvidia-cuda-nvrtc"):
        return Check("emulated device", "ok", f"llvmlite {version}, {os.cpu_count()} CPUs")
    state = "absent" if has_gpu else "missing"
    return Check("emulated device", state, "llvmlite or NVRTC is not installed", "pip install 'cudadiag[emulator]'")


def _device() -> Check:
    """What `--device auto` takes here, by the same rules."""
    try:
        choice = choose("auto", needs_device=True)
    except CudadiagError as problem:
        return Check("--device auto", "missing", problem.message, problem.hint)
    return Check("--device auto", "ok", ", ".join(choice.labels))


def _sanitizer(has_gpu: bool) -> Check:
    try:
        tool = sanitizer.find()
    except sanitizer.ToolMissing as problem:
        state = "missing" if has_gpu else "absent"
        return Check("compute-sanitizer", state, str(problem).split(":")[0], "pip install 'cudadiag[sanitizer]'")
    return Check("compute-sanitizer", "ok", f"{tool.version} at {tool.path}")


def _binary(name: str, how: str, use: str) -> Check:
    path = tools.find(name)
    if path:
        return Check(name, "ok", path)
    return Check(name, "absent", f"not found; {use}", how)


def _kernel_log() -> Check:
    with KernelLog() as log:
        readable = log.facts().readable
    if readable:
        return Check("kernel log (Xid)", "ok", "readable")
    return Check(
        "kernel log (Xid)",
        "unknown",
        "not readable: Xid lines cannot be seen, which does not mean that there are none",
        "run as root, or `sysctl kernel.dmesg_restrict=0`; in a container give it /dev/kmsg",
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
