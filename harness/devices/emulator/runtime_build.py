"""Developer's tool: compile runtime.cu with NVRTC into runtime.ptx, which the package ships.

python -m harness.devices.emulator.runtime_build
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from .layout import c_header

FOLDER = Path(__file__).parent


def source() -> str:
    """The whole CUDA text of the scheduler."""
    return c_header() + (FOLDER / "runtime.cu").read_text()


def digest() -> str:
    """What runtime.ptx was made from, as its first line says."""
    return hashlib.sha256(source().encode()).hexdigest()


def main() -> None:
    """Write runtime.ptx."""
    from .nvrtc import compile_to_ptx

    ptx = compile_to_ptx(source(), "runtime.cu", ["--relocatable-device-code=true"], line_info=False)
    body = "\n".join(line for line in ptx.split("\n") if line.strip() and not line.lstrip().startswith("//"))
    (FOLDER / "runtime.ptx").write_text(f"// sha256 {digest()}\n{body}\n")


if __name__ == "__main__":
    main()
