"""Emitters: branches, calls, returns, traps, and the calls that Python serves (printf, assert, malloc, free)."""

from __future__ import annotations

from .builder import Unsupported
from .function import FunctionBuilder
from .layout import Code, Status, Wait
from .liveness import branch_targets
from .ptx import Function, Instruction, Label, Reg, Variable
from .unit import HOST_FUNCTIONS, CallSite, call_site


def block_label(name: str) -> str:
    """IR label of a PTX label."""
    return "L." + "".join(c if c.isalnum() else "_" for c in name)


def _is_backward(b: FunctionBuilder, target: str) -> bool:
    body = b.function.body or ()
    return any(isinstance(item, Label) and item.name == target for item in body[: b.index])


def branch(b: FunctionBuilder, x: Instruction) -> None:
    """bra"""
    targets = branch_targets(b.function, x)
    if len(targets) != 1:
        b.unsupported(x)
    if _is_backward(b, targets[0]):
        b.burn_fuel()
    b.end(f"br label %{block_label(targets[0])}")


def branch_indexed(b: FunctionBuilder, x: Instruction) -> None:
    """brx.idx"""
    targets = branch_targets(b.function, x)
    if not targets:
        b.unsupported(x)
    if any(_is_backward(b, t) for t in targets):
        b.burn_fuel()
    index, beyond = b.operand(x.operands[0], "u32"), b.fresh("beyond")
    cases = " ".join(f"i32 {n}, label %{block_label(t)}" for n, t in enumerate(targets))
    b.end(f"switch i32 {index}, label %{beyond} [ {cases} ]")
    b.label(beyond)
    b.ended = False
    b.fault(Code.BAD_BRANCH, b.emit(f"zext i32 {index} to i64"))


def leave(b: FunctionBuilder, x: Instruction) -> None:
    """ret, exit"""
    left = b.function.entry or x.opcode == "exit"
    b.end(f"ret i32 {int(Status.EXITED if left else Status.RETURNED)}")


def trap(b: FunctionBuilder, x: Instruction) -> None:
    """trap, brkpt"""
    b.fault(Code.TRAP)


def illegal(b: FunctionBuilder, x: Instruction) -> None:
    """The instruction a planted case overwrote."""
    b.fault(Code.ILLEGAL)


def call(b: FunctionBuilder, x: Instruction) -> None:
    """call, direct and indirect"""
    site = call_site(x)
    if isinstance(site.target, str) and site.target in HOST_FUNCTIONS and not b.host:
        _call_host(b, x, site)
        return
    arguments = [_pointer(b, name) for name in site.arguments]
    result = _pointer(b, site.results[0]) if site.results else "null"
    suspends = not b.host and b.unit.call_suspends(x)
    callee_save = "null"
    if suspends:
        callee_save = b.emit(f"getelementptr i8, ptr {b.save_base()}, i64 {b.frame.save_size}")
        b.line(f"store i64 0, ptr {callee_save}")
    again = b.fresh("call")
    b.begin(again)
    if suspends:  # on resumption the pointers are computed again: they are constants of the frame
        callee_save = b.emit(f"getelementptr i8, ptr {b.save_base()}, i64 {b.frame.save_size}")
        arguments = [_pointer(b, name) for name in site.arguments]
        result = _pointer(b, site.results[0]) if site.results else "null"
    answer = _invoke(b, x, site, callee_save, result, arguments)
    if b.host:
        return
    done = b.fresh("called")
    stopped = b.fresh("stopped")
    b.end(f"br i1 {b.emit(f'icmp eq i32 {answer}, 0')}, label %{done}, label %{stopped}")
    b.label(stopped)
    b.ended = False
    if suspends:
        _propagate(b, answer, again)
    else:
        b.end(f"ret i32 {answer}")
    b.label(done)
    b.ended = False


def _propagate(b: FunctionBuilder, answer: str, again: str) -> None:
    """The callee waits (save and return the same; later call it again) or the thread is over (just return)."""
    over = b.emit(f"icmp eq i32 {answer}, {int(Status.EXITED)}")
    over = b.emit(f"or i1 {over}, {b.emit(f'icmp eq i32 {answer}, {int(Status.FAULT)}')}")
    final, waits = b.split(over, "over")
    b.label(final)
    b.end(f"ret i32 {answer}")
    b.label(waits)
    b.ended = False
    b.suspend(answer)
    b.end(f"br label %{again}")


def _pointer(b: FunctionBuilder, name: str) -> str:
    found = b.parameter(name)
    if found is None:
        raise Unsupported(f"call argument {name}")
    return found


def _invoke(b: FunctionBuilder, x: Instruction, site: CallSite, save: str, result: str, arguments: list[str]) -> str:
    """The call itself; returns the callee's Status as i32."""
    values = "".join(f", ptr {a}" for a in arguments)
    if b.host:
        tail = f"(ptr null, ptr null, ptr null, ptr null, i32 0, ptr {result}{values})"
    else:
        lower = b.emit(f"add i32 {b.local_base()}, {b.frame.local_size}")
        tail = f"(ptr %st, ptr %ctx, ptr {save}, ptr {b.local_memory()}, i32 {lower}, ptr {result}{values})"
    if isinstance(site.target, Reg):
        return _invoke_indirect(b, x, site, tail)
    if not b.host and site.target not in b.unit.functions:
        raise Unsupported(f"call of {site.target}, a function without a body,")
    return b.emit(f"call i32 {function_name(site.target)}{tail}")


def _invoke_indirect(b: FunctionBuilder, x: Instruction, site: CallSite, tail: str) -> str:
    """Any function whose address is taken and whose parameters fit; another address is a fault."""
    assert isinstance(site.target, Reg)
    address = b.operand(site.target, "b64")
    prototype = b.function.prototypes.get(site.prototype or "")
    if prototype is None:
        b.unsupported(x)
    wanted = _sizes(prototype.params), _sizes(prototype.returns)
    fits = [f for f in b.unit.functions.values() if f.name in b.unit.taken and _shape(f) == wanted]
    bad, joined = b.fresh("badcall"), b.fresh("joined")
    labels = [b.fresh("target") for _ in fits]
    cases = " ".join(f"i64 {b.unit.addresses[f.name]}, label %{t}" for f, t in zip(fits, labels, strict=True))
    b.end(f"switch i64 {address}, label %{bad} [ {cases} ]")
    answers = []
    for function, label in zip(fits, labels, strict=True):
        b.label(label)
        answers.append(f"[ {b.emit(f'call i32 {function_name(function.name)}{tail}')}, %{label} ]")
        b.end(f"br label %{joined}")
    b.label(bad)
    b.fault(Code.BAD_CALL, address)
    b.label(joined)
    b.ended = False
    return b.emit(f"phi i32 {', '.join(answers)}") if answers else "0"


def _sizes(variables: tuple[Variable, ...]) -> tuple[int, ...]:
    return tuple(v.size for v in variables)


def _shape(function: Function) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return _sizes(function.params), _sizes(function.returns)


def function_name(name: str) -> str:
    """IR name of a PTX function."""
    return f'@"f.{name}"'


_HOST_CALLS = {"vprintf": Wait.PRINTF, "__assertfail": Wait.ASSERT, "malloc": Wait.MALLOC, "free": Wait.FREE}


def _call_host(b: FunctionBuilder, x: Instruction, site: CallSite) -> None:
    """Wait while Python serves the call; the arguments are handed over in the Thread."""
    for number, name in enumerate(site.arguments[:4]):
        bits = 8 * b.function.variables[name].size
        value = b.emit(f"load i{bits}, ptr {_pointer(b, name)}")
        value = value if bits == 64 else b.emit(f"zext i{bits} {value} to i64")
        b.thread_store(f"arg{number}", value)
    b.wait(_HOST_CALLS[str(site.target)], Status.HOST)
    if site.results:
        bits = 8 * b.function.variables[site.results[0]].size
        value = b.thread_load("result")
        value = value if bits == 64 else b.emit(f"trunc i64 {value} to i{bits}")
        b.line(f"store i{bits} {value}, ptr {_pointer(b, site.results[0])}")


EMITTERS = {
    "bra": branch,
    "brx": branch_indexed,
    "ret": leave,
    "exit": leave,
    "trap": trap,
    "brkpt": trap,
    "illegal": illegal,
    "call": call,
}
