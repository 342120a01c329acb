"""A tiny machine for arithmetic alone: runs every thread of a straight PTX kernel in a loop, with raw host pointers.

It shares the emitters with the emulated device and nothing else, so arithmetic can be tested in milliseconds, without
NVRTC, a scheduler or the memory checker.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from harness.devices.emulator import arith
from harness.devices.emulator.builder import Builder, slot_name
from harness.devices.emulator.ptx import WIDTH, Addr, Instruction, Label, Operand, Reg, Sym, Vec
from harness.devices.emulator.ptx_reader import parse

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class ScalarBuilder(Builder):
    """Registers as slots, parameters as arguments %p0, %p1, ..., the thread's index as %i."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.params = {p.name: (f"%p{n}", 8 * p.size) for n, p in enumerate(function.params)}
        self.ended = False

    def special(self, name: str) -> tuple[str, int]:
        return {"%tid.x": "%i", "%ctaid.x": "0", "%ntid.x": "1"}[name], 32

    def pointer(self, op: Operand) -> str:
        assert isinstance(op, Addr)
        assert isinstance(op.base, Reg)
        address = self.emit(f"add i64 {self.operand(op.base, 'b64')}, {op.offset}")
        return self.emit(f"inttoptr i64 {address} to ptr")

    def run(self) -> str:
        """The body's IR. Anything but arithmetic, moves, loads, stores and branches raises KeyError."""
        for item in self.function.body or ():
            if isinstance(item, Label):
                self._start(_safe(item.name))
            elif item.guard is None:
                self._one(item)
            else:
                taken, other = self.fresh("yes"), self.fresh("no")
                self.line(f"br i1 {self.operand(item.guard, 'pred')}, label %{taken}, label %{other}")
                self.label(taken)
                self.ended = False
                self._one(item)
                self._start(other)
        if not self.ended:
            self.line("br label %next")
        return "\n".join(self.lines)

    def _start(self, name: str) -> None:
        if not self.ended:
            self.line(f"br label %{name}")
        self.label(name)
        self.ended = False

    def _one(self, x: Instruction) -> None:
        own = getattr(self, f"_do_{x.opcode}", None)
        if own is not None:
            own(x)
        else:
            arith.EMITTERS[x.opcode](self, x)

    def _do_mov(self, x: Instruction) -> None:
        kind = x.type
        if isinstance(x.operands[0], Vec):
            part = WIDTH[kind] // len(x.operands[0].items)
            whole = self.operand(x.operands[1], kind)
            for n, item in enumerate(x.operands[0].items):
                moved = self.emit(f"lshr i{WIDTH[kind]} {whole}, {n * part}")
                self.store(item, f"b{part}", self.emit(f"trunc i{WIDTH[kind]} {moved} to i{part}"))
        elif isinstance(x.operands[1], Vec):
            part, total = WIDTH[kind] // len(x.operands[1].items), "0"
            for n, item in enumerate(x.operands[1].items):
                wide = self.emit(f"zext i{part} {self.operand(item, f'b{part}')} to i{WIDTH[kind]}")
                moved = self.emit(f"shl i{WIDTH[kind]} {wide}, {n * part}")
                total = self.emit(f"or i{WIDTH[kind]} {total}, {moved}")
            self.store(x.operands[0], kind, total)
        else:
            self.store(x.operands[0], kind, self.operand(x.operands[1], kind))

    def _do_cvta(self, x: Instruction) -> None:
        self.store(x.operands[0], "b64", self.operand(x.operands[1], "b64"))

    def _do_ld(self, x: Instruction) -> None:
        address = x.operands[1]
        if "param" in x.mods:
            assert isinstance(address, Addr)
            assert isinstance(address.base, Sym)
            value, bits = self.params[address.base.name]
            self.store(x.operands[0], f"b{bits}", value)
            return
        value = self.emit(f"load i{WIDTH[x.type]}, ptr {self.pointer(address)}, align 1")
        self.store(x.operands[0], x.type, value)

    def _do_st(self, x: Instruction) -> None:
        value = self.operand(x.operands[1], x.type)
        self.line(f"store i{WIDTH[x.type]} {value}, ptr {self.pointer(x.operands[0])}, align 1")

    def _do_bra(self, x: Instruction) -> None:
        target = x.operands[0]
        assert isinstance(target, Sym)
        self.line(f"br label %{_safe(target.name)}")
        self.ended = True

    def _do_ret(self, x: Instruction) -> None:
        self.line("br label %next")
        self.ended = True


def _safe(name: str) -> str:
    return "L" + name.replace("$", "_")


class Compiled:
    """A PTX kernel as a native function over all its threads."""

    def __init__(self, ptx: str, optimise: bool = False) -> None:
        module = parse(ptx)
        (function,) = [f for f in module.functions.values() if f.entry]
        builder = ScalarBuilder(function)
        body = builder.run()
        kinds = [f"i{8 * p.size}" for p in function.params]
        self.types = [ctypes.c_uint64 if kind == "i64" else ctypes.c_uint32 for kind in kinds]
        slots = "".join(f"  {slot_name(r)} = alloca i{w}\n" for r, w in builder.slots.items())
        zeros = "".join(f"  store i{w} 0, ptr {slot_name(r)}\n" for r, w in builder.slots.items())
        head = ", ".join(f"{kind} %p{n}" for n, kind in enumerate(kinds))
        text = (
            f"define void @kernel({head}, i32 %threads) {{\nentry:\n{slots}  %at = alloca i32\n"
            "  store i32 0, ptr %at\n  br label %loop\nloop:\n  %i = load i32, ptr %at\n"
            f"  %more = icmp ult i32 %i, %threads\n  br i1 %more, label %thread, label %done\nthread:\n{zeros}{body}\n"
            "next:\n  %j = add i32 %i, 1\n  store i32 %j, ptr %at\n  br label %loop\ndone:\n  ret void\n}\n"
            '!0 = !{!"branch_weights", i32 1, i32 100000}\n'
        )
        helpers = arith.helpers(sorted(builder.helpers))
        declared = {line for line in helpers.split("\n") if line.startswith("declare")} | builder.declared
        rest = "\n".join(line for line in helpers.split("\n") if not line.startswith("declare"))
        self.ir = "\n".join(sorted(declared)) + "\n" + rest + text
        self.engine = _engine(self.ir, optimise)
        address = self.engine.get_function_address("kernel")
        self.call = ctypes.CFUNCTYPE(None, *self.types, ctypes.c_uint32)(address)

    def run(self, inputs: list[np.ndarray], outputs: list[np.ndarray], threads: int) -> None:
        """Parameters: pointers to the inputs and outputs, then the number of threads."""
        addresses = [array.ctypes.data for array in (*inputs, *outputs)]
        extra = [threads] * (len(self.types) - len(addresses))
        self.call(*addresses, *extra, threads)


def _engine(ir: str, optimise: bool) -> Any:
    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=1 if optimise else 0)
    module = llvm.parse_assembly(ir)
    module.verify()
    if optimise:
        tuning = llvm.create_pipeline_tuning_options(speed_level=1)
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
