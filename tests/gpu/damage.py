"""Builds rebuilt.cu and damages its machine code, not its PTX: as a compiler's mistake would leave it.

    python tests/gpu/damage.py FOLDER     # FOLDER/illegal: an instruction that is none; FOLDER/silent: a store left out

Needs nvcc. The driver runs the machine code, unless it is told to compile the PTX (CUDA_FORCE_PTX_JIT=1).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness import tools
from harness.devices.cubin import INSTRUCTION_BYTES, Cubin

HERE = Path(__file__).resolve().parent
ELF = b"\x7fELF\x02\x01\x01\x41"  # of a cubin; the program's own has another ABI byte
STORE, NOP = 0x186, 0x118  # opcodes of STG and NOP, bits 0 to 8


def build(folder: Path, architecture: str = "sm_90") -> dict[str, Path]:
    """The two programs by name. Raises CalledProcessError, and LookupError where the code is not as expected."""
    tool = tools.find("nvcc")
    if tool is None:
        raise LookupError("nvcc was not found")
    program = folder / "whole"
    options = ["-O2", "-lineinfo", f"-arch={architecture}", "--no-compress"]
    subprocess.run([tool, *options, "-o", str(program), str(HERE / "rebuilt.cu")], check=True)
    return {"illegal": damaged(program, folder / "illegal", None), "silent": damaged(program, folder / "silent", NOP)}


def damaged(program: Path, target: Path, opcode: int | None) -> Path:
    """A copy whose store is an instruction that is none, or the kernel's own instruction of that opcode."""
    data = bytearray(program.read_bytes())
    place, name = _kernel(data)
    code = Cubin(bytes(data[place:]))
    section = code.section(".text." + name)
    assert section is not None
    begin, end = place + section.offset, place + section.offset + section.size
    pcs = range(begin, end, INSTRUCTION_BYTES)
    store = _first(data, pcs, STORE)
    word = b"\xff" * INSTRUCTION_BYTES
    if opcode is not None:
        other = _first(data, pcs, opcode)
        word = bytes(data[other : other + INSTRUCTION_BYTES])
    data[store : store + INSTRUCTION_BYTES] = word
    target.write_bytes(data)
    target.chmod(0o755)
    return target


def _kernel(data: bytearray) -> tuple[int, str]:
    """Where the cubin that holds the kernel begins, and the kernel's name in it."""
    place = -1
    while (place := data.find(ELF, place + 1)) >= 0:
        for name in Cubin(bytes(data[place:])).functions():
            if "plus_one" in name:
                return place, name
    raise LookupError("no cubin of the program holds the kernel")


def _first(data: bytearray, pcs: range, opcode: int) -> int:
    for pc in pcs:
        if int.from_bytes(data[pc : pc + 2], "little") & 0x1FF == opcode:
            return pc
    raise LookupError(f"no instruction with opcode {opcode:#x}")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    print(*build(place).values(), sep="\n")
