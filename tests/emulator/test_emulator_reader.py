"""The PTX reader: what it makes of each construct, and that it refuses the rest with a line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices.emulator.ptx import Addr, Function, Imm, Instruction, Pair, PtxError, Reg, Sink, Sym, Vec
from harness.devices.emulator.ptx_reader import outline, parse

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def body(text: str, declared: str = ".reg .b32 %r<9>; .reg .pred %p<3>; .reg .b64 %rd<4>;") -> Function:
    return parse(f"{HEAD}.visible .entry k(.param .u64 a)\n{{\n{declared}\n{text}\n}}\n").functions["k"]


def one(text: str) -> Instruction:
    (found,) = (i for i in body(text).body or () if isinstance(i, Instruction))
    return found


def test_an_instruction_in_all_its_parts() -> None:
    x = one("@!%p1 ld.global.v2.u32 {%r1, _}, [%rd1+-8];")
    assert (x.opcode, x.mods, x.type) == ("ld", ("global", "v2", "u32"), "u32")
    assert x.guard == Reg("%p1", negated=True)
    assert x.operands == (Vec((Reg("%r1"), Sink())), Addr(Reg("%rd1"), -8))
    assert x.ptx_line == 7


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("mov.u32 %r1, 0x10;", Imm(16)),
        ("mov.u32 %r1, -5;", Imm(-5)),
        ("mov.u32 %r1, 017;", Imm(15)),
        ("mov.u32 %r1, 4294967295U;", Imm(4294967295)),
        ("mov.f32 %r1, 0f3F800000;", Imm(0x3F800000, "f32")),
        ("mov.f64 %rd1, 0d3FF0000000000000;", Imm(0x3FF0000000000000, "f64")),
        ("mov.u64 %rd1, table+16;", Sym("table", 16)),
        ("mov.u32 %r1, %tid.x;", Reg("%tid.x")),
    ],
)
def test_operands(text: str, operand: object) -> None:
    assert one(text).operands[1] == operand


def test_two_destinations() -> None:
    assert one("setp.lt.s32 %p1|%p2, %r1, %r2;").operands[0] == Pair(Reg("%p1"), Reg("%p2"))


def test_names_declared_in_nested_braces_are_unique() -> None:
    function = body("{ .reg .b16 low, high; mov.b32 {low, high}, %r1; }\n{ .reg .b32 low; mov.u32 low, 1; }")
    first, second = (i for i in function.body or () if isinstance(i, Instruction))
    inner = first.operands[0]
    assert isinstance(inner, Vec)
    names = [op.name for op in inner.items if isinstance(op, Reg)]
    assert [function.width(n) for n in names] == [16, 16]
    assert isinstance(second.operands[0], Reg)
    assert second.operands[0].name not in names
    assert function.width(second.operands[0].name) == 32


def test_inlining_chain_from_loc_and_debug_strings() -> None:
    text = """.visible .entry k() {
.loc 1 10 3
.loc 2 20 5, function_name $L__info_string0+4, inlined_at 1 10 3
trap;
ret;
}
.file 1 "/a/k.cu"
.file 2 "/a/h.cuh"
.section .debug_str {
$L__info_string0:
.b8 97,98,99,0
.b8 112,117,116,0
}
"""
    function = parse(HEAD + text).functions["k"]
    x = next(i for i in function.body or () if isinstance(i, Instruction))
    assert x.loc is not None
    assert (x.loc.file, x.loc.line, x.loc.function) == ("/a/h.cuh", 20, "put")
    assert x.loc.parent is not None
    assert (x.loc.parent.file, x.loc.parent.line) == ("/a/k.cu", 10)


def test_line_zero_keeps_the_line_before() -> None:
    text = '.visible .entry k() {\n.loc 1 10 3\n.loc 1 0 3\nret;\n}\n.file 1 "/a/k.cu"\n'
    x = (parse(HEAD + text).functions["k"].body or ())[0]
    assert isinstance(x, Instruction)
    assert x.loc is not None
    assert x.loc.line == 10


def test_variables_with_initialisers() -> None:
    text = ".global .align 8 .u64 t[2] = {f, generic(v)+8};\n.const .f32 c = 0f40000000;\n"
    module = parse(HEAD + text + ".extern .shared .align 16 .b8 s[];\n")
    t, c, s = (module.variables[n] for n in "tcs")
    assert (t.size, t.init) == (16, (Sym("f"), Sym("v", 8)))
    assert (c.space, c.size, c.init) == ("const", 4, (Imm(0x40000000, "f32"),))
    assert (s.space, s.size, s.align, s.array) == ("shared", 0, 16, True)


def test_tables_prototypes_and_directives() -> None:
    function = parse(
        HEAD
        + """.visible .entry k(.param .u64 a) .maxntid 128, 1, 1 {
        .reg .b64 %rd<2>; .reg .b32 %r<2>;
        A: table: .branchtargets A, B;
        proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[24]);
        { .param .b32 r; .param .b64 p; .param .align 8 .b8 q[24]; call (r), %rd1, (p, q), proto; }
        brx.idx %r1, table; B: ret; }"""
    ).functions["k"]
    assert function.tables["table"] == ("A", "B")
    assert [v.size for v in function.prototypes["proto"].params] == [8, 24]
    assert function.directives["maxntid"] == (128, 1, 1)


def test_the_outline_has_the_same_functions_and_variables_without_bodies() -> None:
    text = HEAD + ".global .u32 v;\n.visible .entry k(.param .u64 a) { ret; }\n.func f() { ret; }\n"
    whole, short = parse(text), outline(text)
    assert list(whole.functions) == list(short.functions) == ["k", "f"]
    assert short.functions["k"].params == whole.functions["k"].params
    assert short.functions["k"].body == ()
    assert short.variables == whole.variables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int main() {}", "this is not PTX"),
        (HEAD + ".visible .entry k() {\nld.u32 %r1, [%rd1+%rd2];\n}", "line 5"),
        (HEAD + ".visible .entry k() {\nret;", "not closed"),
        (HEAD + "\n.global .u128x t;", "line 5"),
        (HEAD + ".visible .entry k() {\n\n.strange thing;\n}", "line 6"),
    ],
)
def test_what_is_not_known_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        parse(text)


@settings(max_examples=100, deadline=None)
@given(st.text() | st.text(alphabet='{}()[].;:,@%$_abcr<>=+-0123456789 \n"/').map(lambda t: HEAD + t))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except PtxError:
        pass
