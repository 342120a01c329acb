"""CUDA C++ to machine code, or to PTX, for one architecture by NVRTC: no driver and no GPU needed. Loaded by path in
the child."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_ARCHITECTURE = ("-arch", "--gpu-architecture")


def compile_cubin(
    source: str, path: str, options: Sequence[str], capability: tuple[int, int], interface: Any
) -> tuple[bytes, str]:
    """(machine code, compiler's log) of `source`, named `path` in diagnostics and line information.

    Machine code and not PTX: a driver older than NVRTC refuses its PTX, but runs its machine code. An `-arch` among
    the options wins over the device's own. Raises CompileError with the whole log, NotSupported where NVRTC is
    missing or does not know the architecture.
    """
    nvrtc = _nvrtc(interface)
    chosen = _options(nvrtc, source, options, capability, interface)
    code, log = _compile(nvrtc, source, path, chosen, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, interface)
    if not code:  # a virtual architecture (compute_90) among the options gives PTX only
        raise interface.CompileError("the options ask for PTX, not for machine code: use -arch=sm_NN")
    return code, log


def compile_ptx(
    source: str, path: str, options: Sequence[str], capability: tuple[int, int], interface: Any
) -> tuple[bytes, str]:
    """(PTX with its closing zero, compiler's log), for the driver to compile. Raises what `compile_cubin` raises."""
    nvrtc = _nvrtc(interface)
    chosen = [
        option.replace("sm_", "compute_") if option.startswith(_ARCHITECTURE) else option
        for option in _options(nvrtc, source, options, capability, interface)
    ]
    return _compile(nvrtc, source, path, chosen, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, interface)


def _options(nvrtc: Any, source: str, options: Sequence[str], capability: tuple[int, int], interface: Any) -> list[str]:
    chosen = list(options)
    if not any(option.startswith(_ARCHITECTURE) for option in chosen):
        _require_architecture(nvrtc, capability, interface)
        chosen.insert(0, f"--gpu-architecture=sm_{capability[0]}{capability[1]}")
    if not any(option.startswith(("-std", "--std")) for option in chosen):
        chosen.insert(0, "--std=c++17")
    if not any(option in ("-G", "--device-debug") for option in chosen):  # which brings lines of its own
        chosen.insert(0, "-lineinfo")
    if "#include" in source:
        chosen += ["-I" + folder for folder in header_folders()]
    return chosen


def _compile(
    nvrtc: Any, source: str, path: str, options: Sequence[str], ask_size: Any, ask: Any, interface: Any
) -> tuple[bytes, str]:
    """(what `ask` gives of the compiled program, the log)."""
    program = _check(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), path.encode(), 0, [], []), interface)
    try:
        words = [option.encode() for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
        log = _text(nvrtc, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program, interface)
        log_text = log.rstrip(b"\0").decode("utf-8", "replace")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise interface.CompileError(log_text or _describe(nvrtc, status))
        return _text(nvrtc, ask_size, ask, program, interface), log_text
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def version(interface: Any) -> str:
    """NVRTC's version, "13.0"."""
    nvrtc = _nvrtc(interface)
    status, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}" if status == nvrtc.nvrtcResult.NVRTC_SUCCESS else "unknown"


def header_folders() -> list[str]:
    """Folders of the toolkit's headers: the wheels', conda's or the toolkit's as cuda.pathfinder finds them.

    The runtime's wheel leaves `crt/` to another one; where that is not installed a toolkit's folder is added. Last
    come empty stand-ins for the host's headers (<cmath>, <cstdint>, ...), whose contents NVRTC has built in: with them
    a source compiles here as it does for the emulated device.
    """
    found: list[str] = []
    try:
        from cuda.pathfinder import find_nvidia_header_directory as find

        found = [folder for folder in (find("cudart"), find("cccl")) if folder]
    except (ImportError, AttributeError, RuntimeError):  # an old pathfinder, or none
        pass
    if not any(os.path.isdir(os.path.join(folder, "crt")) for folder in found):
        homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
        toolkits = [os.path.join(home, "include") for home in homes if home]
        found += [folder for folder in toolkits if os.path.isdir(os.path.join(folder, "crt"))][:1]
    found += [inner for folder in found if os.path.isdir(inner := os.path.join(folder, "cccl")) and inner not in found]
    return [*found, os.path.join(os.path.dirname(os.path.abspath(__file__)), "emulator", "include")]


def _nvrtc(interface: Any) -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # loads the library
    except (ImportError, RuntimeError) as error:
        raise interface.NotSupported(f"NVRTC cannot be loaded ({error}): pip install 'cudadiag[kernel]'") from error
    return nvrtc


def _require_architecture(nvrtc: Any, capability: tuple[int, int], interface: Any) -> None:
    known = _check(nvrtc, nvrtc.nvrtcGetSupportedArchs(), interface)
    wanted = capability[0] * 10 + capability[1]
    if wanted not in list(known):
        names = ", ".join(f"sm_{number}" for number in known)
        raise interface.NotSupported(
            f"this NVRTC ({version(interface)}) does not compile for sm_{wanted}, only {names}"
        )


def _text(nvrtc: Any, ask_size: Any, ask: Any, program: Any, interface: Any) -> bytes:
    buffer = bytearray(_check(nvrtc, ask_size(program), interface))
    _check(nvrtc, ask(program, buffer), interface)
    return bytes(buffer)


def _check(nvrtc: Any, answer: tuple[Any, ...], interface: Any) -> Any:
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise interface.CompileError(_describe(nvrtc, status))
    return values[0] if values else None


def _describe(nvrtc: Any, status: Any) -> str:
    _, text = nvrtc.nvrtcGetErrorString(status)
    return f"NVRTC: {text.decode()}"
