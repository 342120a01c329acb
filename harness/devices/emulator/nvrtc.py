"""CUDA C++ -> PTX with NVRTC from its pip wheel: no GPU, no driver."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ARCHITECTURE = "compute_80"
"""The oldest form of PTX that NVRTC writes for everything cudadiag's cases use; the emulated device reports 8.0."""
SHIMS = Path(__file__).parent / "include"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">\n]+)[>"]', re.M)
_COMPUTED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(?![<\"\s])", re.M)


class NvrtcMissing(Exception):
    """NVRTC's library or its binding is not installed; the text says which extra brings it."""


class Refused(Exception):
    """NVRTC refused the source; `log` is its whole output."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


def _binding() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise NvrtcMissing(f"{error}; install cudadiag[emulator]") from None
    return nvrtc


def _checked(answer: tuple[Any, ...]) -> Any:
    if int(answer[0]):
        raise RuntimeError(f"NVRTC: {answer[0]}")
    return answer[1] if len(answer) == 2 else answer[1:]


def identity() -> str:
    """What tells one NVRTC from another, without loading it where the pip wheel has it (loading takes 50 ms)."""
    for base in _wheel_folders():
        for library in sorted(base.glob("cu*/lib/libnvrtc.so*")) + sorted(base.glob("cuda_nvrtc/lib/libnvrtc.so*")):
            held = library.stat()
            return f"{library} {held.st_size} {held.st_mtime_ns}"
    return version()


def _wheel_folders() -> list[Path]:
    found = importlib.util.find_spec("nvidia")
    return [Path(base) for base in found.submodule_search_locations or ()] if found else []


def version() -> str:
    """NVRTC's version, such as "13.5"."""
    try:
        return ".".join(str(part) for part in _checked(_binding().nvrtcVersion()))
    except RuntimeError as error:
        raise NvrtcMissing(str(error)) from None


def include_folders() -> list[Path]:
    """Header folders of the pip wheels (CUDA runtime, CCCL), after this package's shims."""
    folders = [SHIMS]
    for base in _wheel_folders():
        for pattern in ("cu*/include", "cuda_runtime/include", "cuda_cccl/include"):
            for found in sorted(base.glob(pattern)):
                folders += [found, *(p for p in (found / "cccl",) if p.is_dir())]
    return folders


def compile_to_ptx(source: str, path: str, options: Sequence[str], *, line_info: bool = True) -> str:
    """PTX of a CUDA C++ text named `path` in diagnostics. `options` go to NVRTC after ours. Raises Refused."""
    nvrtc = _binding()
    flags = [f"--gpu-architecture={ARCHITECTURE}", *(["-lineinfo"] if line_info else [])]
    if not any(o.startswith(("--std", "-std")) for o in options):
        flags.append("--std=c++17")
    flags += [*options, f"-I{Path(path).parent}", *(f"-I{folder}" for folder in include_folders())]
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), path.encode(), 0, [], []))
    try:
        answer = nvrtc.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
        if int(answer[0]):
            raise Refused(_text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program))
        return _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(size: Any, get: Any, program: Any) -> str:
    buffer = bytearray(_checked(size(program)))
    get(program, buffer)
    return buffer.rstrip(b"\0").decode("utf-8", "replace")


def included_text(source: str, path: str, options: Sequence[str]) -> bytes | None:
    """Everything a compilation of `source` reads besides the wheels' own headers, in one piece, as part of a cache key.
    None where that cannot be told (an include that is computed by a macro)."""
    own = [Path(path).parent, *(Path(o[2:].strip()) for o in options if o.startswith("-I") and len(o) > 2)]
    if any(
        o in ("-I", "--include-path") or o.startswith(("--include-path=", "-include", "--pre-include")) for o in options
    ):
        return None
    seen: dict[Path, bytes] = {}
    todo = [(source, Path(path).parent)]
    while todo:
        text, folder = todo.pop()
        if _COMPUTED.search(text):
            return None
        for quote, name in _INCLUDE.findall(text):
            for base in ([folder] if quote == '"' else []) + own:
                found = (base / name).resolve()
                if found.is_file():
                    if found not in seen:
                        seen[found] = found.read_bytes()
                        todo.append((seen[found].decode("utf-8", "replace"), found.parent))
                    break
    return b"".join(str(p).encode() + b"\0" + data + b"\0" for p, data in sorted(seen.items()))
