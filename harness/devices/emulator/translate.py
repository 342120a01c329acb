"""A Unit -> the text of one LLVM module: every function of the unit, the helpers they asked for, and what a launch must
know about the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import arith, ops_atomic, ops_flow, ops_memory, ops_warp, support
from .builder import Unsupported, host_local, slot_name
from .function import FunctionBuilder
from .layout import CONTEXT, FUEL_CHUNK, QUEUE_ENTRIES, QUEUE_ENTRY, Code, Status
from .ptx import Function, Instruction, Label
from .regions import Region, regions
from .unit import RECURSION_BYTES, Unit, instructions

Emitter = Callable[[FunctionBuilder, Instruction], None]

EMITTERS: dict[str, Emitter] = {
    **arith.EMITTERS,
    **ops_memory.EMITTERS,
    **ops_flow.EMITTERS,
    **ops_warp.EMITTERS,
    **ops_atomic.EMITTERS,
}


class Refused(Exception):
    """The unit holds something that is not emulated; the text names it and its line."""


@dataclass(frozen=True)
class KernelInfo:
    """What a launch needs to know besides the code. Sizes in bytes; `params` are (offset, size, PTX type) in order."""

    name: str
    params: tuple[tuple[int, int, str], ...]
    params_size: int
    shared_static: int
    shared_regions: tuple[tuple[str, int, int], ...]
    shared_dynamic: int
    local_bytes: int
    state_bytes: int
    recursive: bool
    max_threads: int
    required_threads: tuple[int, ...]
    globals: tuple[str, ...]
    ptx_instructions: int


def translate(unit: Unit, extra_helpers: tuple[str, ...] = ()) -> str:
    """The unit's LLVM IR. Raises Refused for the first instruction that is not emulated."""
    helpers: set[str] = set(extra_helpers)
    declared: set[str] = set()
    bodies = []
    for function in unit.functions.values():
        text, builder = _translate_function(unit, function)
        helpers |= builder.helpers
        declared |= builder.declared
        bodies += [*builder.constants, text]
    own = support.with_dependencies(n for n in helpers if n in support.HELPERS)
    texts = [support.HELPERS[n] for n in sorted(own)]
    texts.append(arith.helpers(sorted(n for n in helpers if n not in support.HELPERS)))
    return _assemble(declared, texts, bodies)


def _assemble(declared: set[str], helpers: list[str], bodies: list[str]) -> str:
    """One module; a `declare` line that several pieces bring is kept once."""
    rest = []
    for line in "\n".join(helpers).split("\n"):
        if line.startswith("declare "):
            declared.add(line.strip())
        else:
            rest.append(line)
    metadata = '!0 = !{!"branch_weights", i32 1, i32 100000}\n!1 = !{}\n'
    return "\n".join([*sorted(declared), *rest, *bodies, metadata])


def _translate_function(unit: Unit, function: Function) -> tuple[str, FunctionBuilder]:
    b = FunctionBuilder(unit, function)
    _place_parameters(b)
    if function.name in unit.recursive and not unit.host:
        _check_stack(b)
    run = _Body(b)
    run.emit()
    return _function_text(b), b


def _place_parameters(b: FunctionBuilder) -> None:
    if b.function.entry:
        at = 0
        for p in b.function.params:
            at = (at + p.align - 1) // p.align * p.align
            b.params[p.name] = at
            at += p.size
        return
    b.params.update({p.name: n for n, p in enumerate(b.function.params)})
    b.params.update({p.name: -1 for p in b.function.returns})


def _check_stack(b: FunctionBuilder) -> None:
    """At the entry of a function that may recurse: is there room for its frames?"""
    limit = b.context("local_size")
    top = b.emit(f"add i32 {b.local_base()}, {b.frame.local_size}")
    bad = b.emit(f"icmp ugt i32 {top}, {limit}")
    if b.suspends:
        end = b.emit(f"getelementptr i8, ptr %st, i64 {b.context('stride')}")
        end = b.emit(f"getelementptr i8, ptr {end}, i64 {-QUEUE_ENTRIES * QUEUE_ENTRY}")
        frame_end = b.emit(f"getelementptr i8, ptr {b.save_base()}, i64 {b.frame.save_size + 16}")
        bad = b.emit(f"or i1 {bad}, {b.emit(f'icmp ugt ptr {frame_end}, {end}')}")
    b.fault_if(bad, Code.STACK, b.emit(f"zext i32 {top} to i64"))


class _Body:
    """Translates the statements of a function in order."""

    def __init__(self, b: FunctionBuilder) -> None:
        self.b = b
        self.counting = b.unit.options.count and not b.host
        self.count_at = -1
        self.count = 0
        self.body = b.function.body or ()
        self.site = b.site
        self.regions: dict[int, Region] = {}
        if not b.host:
            self.regions = regions(b.function, set(b.unit.points(b.function)))

    def emit(self) -> None:
        b = self.b
        self._start_count()
        index = 0
        while index < len(self.body):
            region = self.regions.get(index)
            if region is None:
                self._item(index)
                index += 1
            else:
                self._start_block()
                self._region(region)
                index = region.last + 1
        self._flush_count()
        if not b.ended:
            b.end(f"ret i32 {int(Status.EXITED if b.function.entry else Status.RETURNED)}")

    def _item(self, index: int) -> None:
        item = self.body[index]
        if isinstance(item, Label):
            self._flush_count()
            self.b.begin(ops_flow.block_label(item.name))
            self._start_count()
        else:
            self._start_block()
            self.count += 1
            self._at(index, item)

    def _at(self, index: int, x: Instruction) -> None:
        """Translate the instruction at `index`, setting where the builder is."""
        self.b.index, self.b.site = index, self.site
        self.site += 1
        self._instruction(x)

    def _start_block(self) -> None:
        """After a jump: code that nothing falls into."""
        if self.b.ended:
            self._flush_count()
            self.b.begin(self.b.fresh("after"))
            self._start_count()

    def _region(self, region: Region) -> None:
        """A region's checks, then its code without them."""
        b = self.b
        b.index = region.first
        for group in region.groups:
            b.check_group(group, self.site)
        b.covered = region.members
        for index in range(region.first, region.last + 1):
            self._item(index)
        b.covered = frozenset()

    def _instruction(self, x: Instruction) -> None:
        b = self.b
        emitter = EMITTERS.get(x.opcode)
        try:
            if emitter is None:
                raise Unsupported(x.name)
            if x.guard is None:
                emitter(b, x)
            else:
                self._guarded(emitter, x)
        except Unsupported as error:
            raise Refused(f"PTX instruction {x.name} at line {x.ptx_line} is not emulated{_why(x, error)}") from None

    def _guarded(self, emitter: Emitter, x: Instruction) -> None:
        b = self.b
        assert x.guard is not None
        taken, other = b.split(b.operand(x.guard, "pred"), "if")
        b.label(taken)
        b.ended = False
        emitter(b, x)
        b.begin(other)

    def _start_count(self) -> None:
        if self.counting:
            self.count_at, self.count = len(self.b.lines), 0
            self.b.lines.append("")

    def _flush_count(self) -> None:
        """Add the block's instructions to the worker's count, at the block's start."""
        if not self.counting or self.count_at < 0:
            return
        b = self.b
        pointer, old, new = f"%n{self.count_at}.p", f"%n{self.count_at}.o", f"%n{self.count_at}.n"
        b.lines[self.count_at] = (
            f"  {pointer} = getelementptr i8, ptr %ctx, i64 {CONTEXT['instructions']}\n"
            f"  {old} = load i64, ptr {pointer}\n  {new} = add i64 {old}, {self.count}\n"
            f"  store i64 {new}, ptr {pointer}"
        )


def _why(x: Instruction, error: Unsupported) -> str:
    detail = str(error)
    return "" if detail == x.name else f" ({detail})"


def _function_text(b: FunctionBuilder) -> str:
    function = b.function
    lines = [_signature(b), "entry:"]
    for register, bits in {**b.slots, **b.temporary}.items():
        lines += [f"  {slot_name(register)} = alloca i{bits}", f"  store i{bits} 0, ptr {slot_name(register)}"]
    for v in function.variables.values():
        if (v.space == "param" and not b.suspends) or (v.space == "local" and b.host):
            lines.append(f"  {host_local(v.name)} = alloca [{max(v.size, 1)} x i8], align 16")
    if b.has_fuel:
        lines += ["  %fuel = alloca i64", f"  store i64 {FUEL_CHUNK}, ptr %fuel"]
    resumes = b.save_base() if b.resumes else ""
    lines += b.prologue
    if b.resumes:
        cases = " ".join(f"i64 {n}, label %{label}" for n, label in enumerate(b.resumes, 1))
        lines += [f"  %resume = load i64, ptr {resumes}", f"  switch i64 %resume, label %start [ {cases} ]"]
    else:
        lines.append("  br label %start")
    return "\n".join([*lines, "start:", *b.lines, "}"])


def _signature(b: FunctionBuilder) -> str:
    name = ops_flow.function_name(b.function.name)
    if b.function.entry:
        return f"define i32 {name}(ptr noalias %st, ptr noalias %ctx) nounwind {{"
    parameters = "".join(f", ptr %p{n}" for n in range(len(b.function.params)))
    linkage = "" if b.host else "internal "
    return (
        f"define {linkage}i32 {name}(ptr %st, ptr %ctx, ptr %save, ptr %lm, i32 %lb, ptr %ret{parameters}) nounwind {{"
    )


def kernel_info(unit: Unit, recursion_bytes: int = RECURSION_BYTES) -> KernelInfo:
    """What a launch must know about the unit's kernel."""
    kernel = unit.entry
    params, at = [], 0
    for p in kernel.params:
        at = (at + p.align - 1) // p.align * p.align
        params.append((at, p.size, p.type))
        at += p.size
    uses_queue = any(x.opcode == "cp" for _, x in unit.sites)
    queue = QUEUE_ENTRIES * QUEUE_ENTRY if uses_queue or unit.recursive & unit.suspending else 0
    limit = kernel.directives.get("maxntid") or kernel.directives.get("reqntid") or (1024,)
    threads = 1
    for extent in limit:
        threads *= extent
    return KernelInfo(
        kernel.name, tuple(params), at, unit.shared.real, tuple(unit.shared.regions), unit.shared.dynamic,
        unit.local_bytes(recursion_bytes), unit.state_bytes(recursion_bytes) + queue, bool(unit.recursive),
        min(threads, 1024), kernel.directives.get("reqntid", ()), tuple(unit.globals),
        sum(1 for f in unit.functions.values() for _ in instructions(f)),
    )  # fmt: skip
