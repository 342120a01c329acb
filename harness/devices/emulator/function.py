"""FunctionBuilder: the builder of one translated function, with what only the emulated machine knows: the context and
the thread in memory, checked addresses, faults, suspension, fuel.

A function becomes `i32 f(st, ctx, ...)`. It returns a `Status`: RETURNED, or why it stopped. A thread that waits has
stored its live registers and its resume point in its save frame; called again, the function goes on from there. Faults
are plain returns. So there are no signals and no unwinding, and all state of a thread is in memory.
"""

from __future__ import annotations

from .builder import Builder, Unsupported, host_local
from .layout import (
    CONTEXT,
    IR_TYPE,
    KINDS,
    PARAM_WINDOW,
    THREAD,
    THREAD_SIZE,
    Code,
    Status,
)
from .ptx import Addr, Function, Instruction, Operand, Reg, Sym
from .regions import Group
from .special import SPECIAL
from .unit import Unit

INVARIANT = ", !invariant.load !1"


class FunctionBuilder(Builder):
    """Builds one function of a Unit. Emitters of the non-arithmetic families take this class."""

    def __init__(self, unit: Unit, function: Function) -> None:
        super().__init__(function)
        self.unit = unit
        self.host = unit.host
        self.frame = unit.frames[function.name]
        self.suspends = function.name in unit.suspending
        self.site = unit.first_site.get(function.name, 0)  # of the instruction being translated
        self.index = 0  # its position in the body
        self.ended = False  # the current basic block has its terminator
        self.resumes: list[str] = []
        self.prologue: list[str] = []
        self.known: dict[str, str] = {}
        self.params: dict[str, int] = {}
        self.temporary: dict[str, int] = {}
        self.has_fuel = False
        self.constants: list[str] = []
        self.covered: frozenset[int] = frozenset()  # accesses that a region's check has found right

    # -- registers -------------------------------------------------------------------------------------------------

    def width(self, register: str) -> int:
        return self.temporary.get(register) or super().width(register)

    def _register(self, name: str) -> tuple[str, int]:
        if name in self.temporary:
            return self.value_of(name, self.temporary[name]), self.temporary[name]
        return super()._register(name)

    def scratch(self, bits: int) -> Reg:
        """A new register that is not in the PTX."""
        name = f"%.scratch{len(self.temporary)}"
        self.temporary[name] = bits
        return Reg(name)

    def special(self, name: str) -> tuple[str, int]:
        maker = SPECIAL.get(name)
        if maker is None or self.host:
            raise Unsupported(f"special register {name}")
        return maker(self)

    # -- context and thread ------------------------------------------------------------------------------------------

    def once(self, key: str, lines: list[str]) -> str:
        """A value computed at function entry: the last of `lines` defines `%key`."""
        if key not in self.known:
            self.known[key] = f"%{key}"
            self.prologue += lines
        return self.known[key]

    def context(self, field: str) -> str:
        """A field of the Context that does not change while this function runs."""
        return self._field("ctx", field, CONTEXT[field])

    def thread(self, field: str) -> str:
        """A field of the Thread that never changes (its indices)."""
        return self._field("st", field, THREAD[field])

    def _field(self, base: str, field: str, offset: int) -> str:
        key = f"{base}.{field}"
        kind = IR_TYPE[KINDS[base][field]]
        pointer = f"  %{key}.p = getelementptr i8, ptr %{base}, i64 {offset}"
        return self.once(key, [pointer, f"  %{key} = load {kind}, ptr %{key}.p{INVARIANT}"])

    def thread_load(self, field: str) -> str:
        """A field of the Thread as it is now."""
        pointer = self.emit(f"getelementptr i8, ptr %st, i64 {THREAD[field]}")
        return self.emit(f"load {IR_TYPE[KINDS['st'][field]]}, ptr {pointer}")

    def thread_store(self, field: str, value: str | int) -> None:
        pointer = self.emit(f"getelementptr i8, ptr %st, i64 {THREAD[field]}")
        self.line(f"store {IR_TYPE[KINDS['st'][field]]} {value}, ptr {pointer}")

    def local_memory(self) -> str:
        """Host pointer of this thread's local memory."""
        if not self.function.entry:
            return "%lm"
        base, stride, linear = self.context("local"), self.context("local_stride"), self.thread("linear")
        return self.once(
            "lm",
            [
                f"  %lm.i = zext i32 {linear} to i64",
                f"  %lm.o = mul i64 %lm.i, {stride}",
                f"  %lm = getelementptr i8, ptr {base}, i64 %lm.o",
            ],
        )

    def local_base(self) -> str:
        """Local address where this function's frame starts (i32)."""
        return "0" if self.function.entry else "%lb"

    def save_base(self) -> str:
        """Host pointer of this function's save frame."""
        if not self.function.entry:
            return "%save"
        return self.once("save", [f"  %save = getelementptr i8, ptr %st, i64 {THREAD_SIZE}"])

    # -- blocks ------------------------------------------------------------------------------------------------------

    def begin(self, label: str) -> None:
        """Start a basic block, falling into it from the one before unless that has ended."""
        if not self.ended:
            self.line(f"br label %{label}")
        self.label(label)
        self.ended = False

    def end(self, terminator: str) -> None:
        self.line(terminator)
        self.ended = True

    def split(self, condition: str, stem: str, cold: bool = False) -> tuple[str, str]:
        """Branch on an i1: labels (taken, other). Neither is started."""
        taken, other = self.fresh(stem), self.fresh(stem)
        self.end(f"br i1 {condition}, label %{taken}, label %{other}" + (", !prof !0" if cold else ""))
        return taken, other

    # -- faults ------------------------------------------------------------------------------------------------------

    def fault(self, code: Code, address: str = "0", size: int = 0) -> None:
        """Stop the kernel here. The block ends."""
        if self.host:
            self.end("unreachable")
            return
        self.need("emu.fault")
        self.line(f"call void @emu.fault(ptr %ctx, i32 {int(code)}, i32 {self.site}, i64 {address}, i32 {size})")
        self.end(f"ret i32 {int(Status.FAULT)}")

    def fault_if(self, bad: str, code: Code, address: str = "0", size: int = 0) -> None:
        """Stop the kernel where the i1 `bad` holds; else go on."""
        flt, ok = self.split(bad, "flt", cold=True)
        self.label(flt, keep=True)
        self.fault(code, address, size)
        self.label(ok, keep=True)
        self.ended = False

    # -- suspension --------------------------------------------------------------------------------------------------

    def suspend(self, status: str | int) -> None:
        """Hand over to the scheduler with `status`; the next call of this function continues after this point."""
        number = len(self.resumes) + 1
        label = self.fresh("resume")
        self.resumes.append(label)
        base, live = self.save_base(), self.frame.live.get(self.index, [])
        for register in live:
            bits, pointer = (
                self.width(register),
                self.emit(f"getelementptr i8, ptr {base}, i64 {self.frame.slots[register]}"),
            )
            self.line(f"store i{bits} {self.value_of(register, bits)}, ptr {pointer}")
        self.line(f"store i64 {number}, ptr {base}")
        self.end(f"ret i32 {status}")
        self.label(label)
        self.ended = False
        for register in live:
            bits, pointer = (
                self.width(register),
                self.emit(f"getelementptr i8, ptr {base}, i64 {self.frame.slots[register]}"),
            )
            self.line(f"store i{bits} {self.emit(f'load i{bits}, ptr {pointer}')}, ptr {self.slot(register)}")

    def wait(self, op: int, status: Status, **fields: str | int) -> None:
        """Suspend until the scheduler has carried out `op`; `fields` are stored in the Thread first."""
        for field, value in {"op": op, "site": self.site, **fields}.items():
            self.thread_store(field, value)
        self.suspend(int(status))

    def give_way(self) -> None:
        """Let other threads run, stay runnable."""
        if not self.host:
            self.thread_store("site", self.site)
            self.suspend(int(Status.YIELD))

    # -- addresses ---------------------------------------------------------------------------------------------------

    def symbol(self, name: Sym) -> str:
        value = self._symbol(name.name)
        if not name.offset:
            return value
        return self.emit(f"add i64 {value}, {name.offset}")

    def _symbol(self, name: str) -> str:
        unit = self.unit
        if name in unit.shared.offsets:
            return str(unit.shared.offsets[name])
        if name in self.frame.locals:
            if self.host:
                return self.emit(f"ptrtoint ptr {host_local(name)} to i64")
            return self.emit(f"zext i32 {self.emit(f'add i32 {self.local_base()}, {self.frame.locals[name]}')} to i64")
        if name in unit.globals:
            pointer = self.emit(f"getelementptr i64, ptr {self.context('globals')}, i64 {unit.globals[name]}")
            return self.emit(f"load i64, ptr {pointer}{INVARIANT}")
        if name in unit.addresses:
            return str(unit.addresses[name])
        if name in self.params and self.function.entry:
            return str(PARAM_WINDOW + self.params[name])
        if name == "WARP_SZ":
            return "32"
        raise Unsupported(f"symbol {name}")

    def parameter(self, name: str) -> str | None:
        """Host pointer of a parameter or a call's `.param` variable; None if `name` is neither."""
        if name in self.params:
            offset = self.params[name]
            if self.function.entry:
                return self.emit(f"getelementptr i8, ptr {self.context('params')}, i64 {offset}")
            return "%ret" if offset < 0 else f"%p{offset}"
        variable = self.function.variables.get(name)
        if variable is None or variable.space != "param":
            return None
        if self.suspends:
            return self.emit(f"getelementptr i8, ptr {self.save_base()}, i64 {self.frame.params[name]}")
        return host_local(name)

    def is_kernel_parameter(self, op: Operand) -> bool:
        """Whether an address names a parameter of the kernel itself, which nothing changes."""
        named = isinstance(op, Addr) and isinstance(op.base, Sym) and op.base.name in self.params
        return named and self.function.entry and not self.host

    def address(self, op: Addr) -> str:
        """The address an operand names, as i64. A 32-bit register's sum wraps at 32 bits, as on hardware."""
        base = op.base
        if isinstance(base, Reg) and self.width(base.name) == 32:
            value = self.operand(base, "b32")
            value = self.emit(f"add i32 {value}, {op.offset}") if op.offset else value
            return self.emit(f"zext i32 {value} to i64")
        if isinstance(base, Sym):
            value = self.symbol(base)
        else:
            value = self.operand(base, "b64") if isinstance(base, Reg) else str(base.value)
        return self.emit(f"add i64 {value}, {op.offset}") if op.offset else value

    # -- checked access ----------------------------------------------------------------------------------------------

    def access(self, x: Instruction, op: Addr, space: str, size: int) -> str:
        """Host pointer for an access of `size` bytes (a power of two, its own alignment) that has been checked."""
        if space == "param":
            return self._param_access(x, op, size)
        address = self.address(op)
        if self.host:
            return self.emit(f"inttoptr i64 {address} to ptr")
        if space in ("global", "const"):
            return self._device_access(address, size)
        if space == "shared":
            return self._shared_access(address, size)
        if space == "local":
            self._limit(address, size, self._local_top())
            return self.emit(f"getelementptr i8, ptr {self.local_memory()}, i64 {address}")
        return self._generic_access(address, size)

    def _param_access(self, x: Instruction, op: Addr, size: int) -> str:
        pointer = self.parameter(op.base.name) if isinstance(op.base, Sym) else None
        if pointer is not None:
            return self.emit(f"getelementptr i8, ptr {pointer}, i64 {op.offset}") if op.offset else pointer
        if not self.function.entry or self.host:
            self.unsupported(x)
        address = self.address(op)
        offset = self.emit(f"sub i64 {address}, {PARAM_WINDOW}")
        self._limit(offset, size, self.emit(f"zext i32 {self.context('params_size')} to i64"), address)
        return self.emit(f"getelementptr i8, ptr {self.context('params')}, i64 {offset}")

    def _device_access(self, address: str, size: int) -> str:
        offset = self.emit(f"sub i64 {address}, {self.context('base')}")
        if self.index not in self.covered:
            self.fault_if(self._outside_device(offset, size, size), Code.ACCESS, address, size)
        return self.emit(f"getelementptr i8, ptr {self.context('arena')}, i64 {offset}")

    def _outside_device(self, offset: str, span: int, align: int, phase: int = 0) -> str:
        """i1: not all of [offset, offset + span) is accessible, or offset + phase is no multiple of align. One load and
        one comparison: the table has the accessible bytes from the start of each granule; its last entry is 0."""
        granule = self._least(self.emit(f"lshr i64 {offset}, 9"), self.context("granules"))
        entry = self.emit(f"getelementptr i16, ptr {self.context('valid')}, i64 {granule}")
        return self._outside(self.emit(f"load i16, ptr {entry}{INVARIANT}"), offset, 511, span, align, phase)

    def _least(self, first: str, second: str) -> str:
        return self.intrinsic("llvm.umin.i64", "i64", [("i64", first), ("i64", second)])

    def _outside(self, valid: str, offset: str, mask: int, span: int, align: int, phase: int) -> str:
        valid = self.emit(f"zext i16 {valid} to i32")
        low = self.emit(f"and i32 {self.emit(f'trunc i64 {offset} to i32')}, {mask}")
        bad = self.emit(f"icmp ugt i32 {self.emit(f'add i32 {low}, {span}')}, {valid}")
        return self._or_odd(bad, "i32", low, align, phase)

    def _or_odd(self, bad: str, kind: str, address: str, align: int, phase: int) -> str:
        """i1: `bad`, or address + phase is no multiple of align."""
        if align == 1:
            return bad
        address = self.emit(f"add {kind} {address}, {phase}") if phase else address
        odd = self.emit(f"icmp ne {kind} {self.emit(f'and {kind} {address}, {align - 1}')}, 0")
        return self.emit(f"or i1 {bad}, {odd}")

    def _shared_access(self, address: str, size: int) -> str:
        if self.index not in self.covered:
            self.fault_if(self._outside_shared(address, size, size), Code.ACCESS, address, size)
        return self.emit(f"getelementptr i8, ptr {self.context('shared')}, i64 {address}")

    def _outside_shared(self, address: str, span: int, align: int, phase: int = 0) -> str:
        limit = self.once("shared.limit", [f"  %shared.limit = zext i32 {self.context('shared_size')} to i64"])
        if not self.unit.shared.checked_by_table:
            return self._outside_limit(address, span, align, limit, phase)
        last = self.once("shared.last", [f"  %shared.last = add i64 {limit}, 16"])
        unit = self.emit(f"lshr i64 {self._least(address, last)}, 4")
        entry = self.emit(f"getelementptr i16, ptr {self.context('shared_valid')}, i64 {unit}")
        return self._outside(self.emit(f"load i16, ptr {entry}{INVARIANT}"), address, 15, span, align, phase)

    def check_group(self, group: Group, first_site: int) -> None:
        """The check of a region's group; where it fails, the first access that is wrong is the fault. `first_site` is
        the instruction number of the region's first instruction."""
        address = self.address(Addr(group.base, group.low))
        if group.space == "shared":
            bad = self._outside_shared(address, group.span, group.align, group.phase)
        else:
            offset = self.emit(f"sub i64 {address}, {self.context('base')}")
            bad = self._outside_device(offset, group.span, group.align, group.phase)
        look, right = self.split(bad, "group", cold=True)
        self.label(look, keep=True)
        rows = [(a.offset - group.low, a.size, first_site + a.index - self.index) for a in group.accesses]
        table = self.fresh(f'@"table.{self.function.name}.') + '"'
        numbers = ", ".join(f"i32 {v}" for row in rows for v in row)
        self.constants.append(f"{table} = private constant [{3 * len(rows)} x i32] [{numbers}]")
        mask = str((1 << 32) - 1) if self.width(group.base.name) == 32 else "-1"
        arguments = [("ptr", "%ctx"), ("i64", address), ("i64", mask), ("ptr", table), ("i32", str(len(rows)))]
        found = self.call(f"emu.find.{'shared' if group.space == 'shared' else 'device'}", "i1", arguments)
        wrong = self.fresh("wrong")
        self.end(f"br i1 {found}, label %{wrong}, label %{right}")
        self.label(wrong, keep=True)
        self.end(f"ret i32 {int(Status.FAULT)}")
        self.label(right, keep=True)
        self.ended = False

    def _local_top(self) -> str:
        top = self.emit(f"add i32 {self.local_base()}, {self.frame.local_size}")
        return self.emit(f"zext i32 {top} to i64")

    def _limit(self, address: str, size: int, limit: str, shown: str | None = None) -> None:
        """Fault unless address + size <= limit and the address is a multiple of size."""
        self.fault_if(self._outside_limit(address, size, size, limit), Code.ACCESS, shown or address, size)

    def _outside_limit(self, address: str, span: int, align: int, limit: str, phase: int = 0) -> str:
        over = self.emit(f"icmp ugt i64 {self.emit(f'add i64 {address}, {span}')}, {limit}")
        wrapped = self.emit(f"icmp ugt i64 {address}, {limit}")
        bad = self.emit(f"or i1 {over}, {wrapped}")
        return self._or_odd(bad, "i64", address, align, phase)

    def _generic_access(self, address: str, size: int) -> str:
        top = self._local_top()
        values = [("ptr", "%ctx"), ("i64", address), ("i64", str(size)), ("ptr", self.local_memory()), ("i64", top)]
        pointer = self.call("emu.generic", "ptr", values)
        self.fault_if(self.emit(f"icmp eq ptr {pointer}, null"), Code.ACCESS, address, size)
        return pointer

    # -- fuel --------------------------------------------------------------------------------------------------------

    def burn_fuel(self) -> None:
        """On a backward branch: count the turn; every FUEL_CHUNK turns ask whether the time is up."""
        if self.host:
            return
        self.has_fuel = True
        left = self.emit(f"add i64 {self.emit('load i64, ptr %fuel')}, -1")
        self.line(f"store i64 {left}, ptr %fuel")
        empty, go = self.split(self.emit(f"icmp eq i64 {left}, 0"), "fuel", cold=True)
        self.label(empty)
        self.ended = False
        more = self.call("emu.refuel", "i64", [("ptr", "%ctx")])
        self.line(f"store i64 {more}, ptr %fuel")
        self.fault_if(self.emit(f"icmp eq i64 {more}, 0"), Code.HANG)
        self.end(f"br label %{go}")
        self.label(go)
        self.ended = False
