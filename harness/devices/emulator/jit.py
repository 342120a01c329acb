"""LLVM IR -> machine code in memory: compile to an object (bytes to be cached), load an object, find its functions."""

from __future__ import annotations

import ctypes
import functools
import struct
from dataclasses import dataclass
from typing import Any

import llvmlite
import llvmlite.binding as llvm

O0, O1 = 0, 1
O0_ABOVE = 6000
"""PTX instructions above which a kernel is compiled without optimisation: O1 costs about 0.5 ms an instruction."""


class LinkError(Exception):
    """An object needs a symbol this process does not have."""


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def host_key() -> str:
    """What the machine code depends on besides the IR: LLVM, this package's target choice, the CPU and its features."""
    _initialise()
    features = llvm.get_host_cpu_features().flatten()
    return f"{llvmlite.__version__} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"


def _target_machine(level: int) -> Any:
    _initialise()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=level, jit=True)


_PASSES = (
    "always_inliner", "sroa", "simplify_cfg", "instruction_combine", "loop_simplify", "lcssa", "loop_rotate",
    "simplify_cfg",
)  # fmt: skip
"""What O1 runs: code within 5 % of LLVM's own O1 pipeline (measured on verify_attn) in 60 % of its time. Nothing
vectorises: the bodies of threads are full of checks and branches."""


def compile_ir(ir: str, level: int) -> bytes:
    """Object code of an IR text. Level O1 optimises, O0 only generates code."""
    machine = _target_machine(level)
    module = llvm.parse_assembly(ir)
    module.triple = llvm.get_process_triple()
    if level != O0:
        manager = llvm.create_new_module_pass_manager()
        for name in _PASSES:
            getattr(manager, f"add_{name}_pass")()
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
        manager.run(module, builder)
    return bytes(machine.emit_object(module))


@dataclass(frozen=True)
class Loaded:
    """An object in memory. Its code is valid as long as this lives."""

    engine: Any

    def address(self, name: str) -> int:
        """Address of a function; LinkError if the object lacks it."""
        found = int(self.engine.get_function_address(name))
        if not found:
            raise LinkError(f"no function {name} in the object")
        return found


def load(image: bytes) -> Loaded:
    """Load an object. Raises LinkError where a symbol is missing (MCJIT itself would crash at the call)."""
    missing = [name for name in undefined_symbols(image) if not _is_known(name)]
    if missing:
        raise LinkError(f"symbols this process lacks: {', '.join(sorted(missing))}")
    machine = _target_machine(O0)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(image))
    engine.finalize_object()
    return Loaded(engine)


@functools.cache
def _is_known(name: str) -> bool:
    """Make a symbol of this process (libc, libm) known to LLVM; False where there is none."""
    if llvm.address_of_symbol(name) is not None:
        return True
    for library in (None, "libm.so.6"):
        try:
            found = getattr(ctypes.CDLL(library), name)
        except (AttributeError, OSError):
            continue
        llvm.add_symbol(name, ctypes.cast(found, ctypes.c_void_p).value)
        return True
    return False


def undefined_symbols(image: bytes) -> list[str]:
    """Names an ELF64 object needs from outside. Raises LinkError for another format."""
    if image[:5] != b"\x7fELF\x02" or len(image) < 64:
        raise LinkError("not an ELF64 object")
    try:
        return _undefined(image)
    except (struct.error, IndexError) as error:
        raise LinkError(f"damaged object: {error}") from None


def _undefined(image: bytes) -> list[str]:
    start, size, count = struct.unpack_from("<Q", image, 40)[0], *struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, start + n * size) for n in range(count)]
    names: list[str] = []
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        at, length, strings = section[4], section[5], sections[section[6]][4]
        for offset in range(at + 24, at + length, 24):
            name, _, _, index = struct.unpack_from("<IBBH", image, offset)
            if index == 0 and name:
                end = image.index(b"\0", strings + name)
                names.append(image[strings + name : end].decode())
    return names
