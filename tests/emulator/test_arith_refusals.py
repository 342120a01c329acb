"""What arithmetic must refuse, and what its helper functions may need from outside."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_forms import forms, kernel

from harness.devices.emulator import arith, jit
from harness.devices.emulator.arith import text
from harness.devices.emulator.builder import Unsupported

REFUSED = [
    "add.rn.relu.f32", "add.rna.f32", "add.ftz.f64", "add.sat.f64", "add.sat.u32", "add.sat.s64", "add.rz.f16",
    "add.ftz.bf16",
    "mul.s32", "mul.wide.u64", "mul.rn.s32", "mad.lo.sat.s32", "mul24.s32", "fma.f32", "fma.rn.relu.f32", "fma.f64",
    "div.f32", "div.rn.sat.f32", "div.approx.f64", "rcp.f32", "rcp.approx.f64", "sqrt.f64", "sqrt.approx.f64",
    "rsqrt.f32", "sin.f32", "tanh.approx.ftz.f32", "ex2.f32", "min.xorsign.f32", "min.NaN.f64", "max.abs.f32",
    "min.relu.u32", "neg.u32", "abs.ftz.f64", "shl.f32", "shf.l.b32", "prmt.b32.b5e", "bfind.b32", "setp.lt.b32",
    "setp.lo.s32", "setp.eq.ftz.f64", "setp.f32", "set.lt.u64.f32", "testp.small.f32", "cvt.f16.f32", "cvt.rn.f32.f16",
    "cvt.s32.f32", "cvt.rn.s32.f32", "cvt.rzi.f32.s32", "cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.f16.f32",
    "cvt.rs.f16x2.f32", "cvt.rni.f32.f64", "cvt.ftz.s32.s64", "cvt.rm.bf16x2.f32", "dp2a.u32.u32", "dp4a.lo.u32.u32",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(Unsupported):
        translate(name)


def translate(name: str) -> None:
    operands = "p, a0, a1" if name.startswith(("setp", "testp")) else "d0, a0, a1, a2"
    forms.__wrapped__((f"{name} {operands};",), ("b64", "b64", "b64"), ("b64",))


ACCEPTED = [
    "add.f32",
    "mul.lo.s32",
    "fma.rn.f16",
    "cvt.rn.f16.f32",
    "setp.lt.f32",
    "min.f32",
    "shr.u32",
    "lg2.approx.f32",
]

KNOWN = {"ftz", "sat", "rn", "rz", "rm", "rp", "relu", "cc", "lo", "hi", "wide", "approx", "abs", "nan", "num"} | {
    *("and", "or", "xor", "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu")
}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ACCEPTED), st.from_regex(r"[a-z][a-z0-9]{1,8}", fullmatch=True), st.integers(0, 3))
def test_an_unknown_modifier_is_never_ignored(name: str, modifier: str, place: int) -> None:
    if modifier in KNOWN:
        return
    opcode, *mods = name.split(".")
    mods.insert(min(place, len(mods) - 1), modifier)
    with pytest.raises(Unsupported):
        translate(".".join([opcode, *mods]))


def test_every_helper_compiles_and_needs_nothing_but_fma() -> None:
    """Even for the oldest x86-64 or the plainest host, where LLVM would call a library for half, floor or trunc."""
    names = text.known()
    assert len(names) > 50
    module = llvm.parse_assembly(arith.helpers(names).replace("define internal", "define"))
    triple = llvm.get_process_triple()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu="", features="", opt=1)
    module.triple = triple
    module.verify()
    missing = set(jit.undefined_symbols(machine.emit_object(module)))
    assert missing <= {"fma", "_GLOBAL_OFFSET_TABLE_"}


def test_a_helper_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError):
        arith.helpers(["cd_no_such_helper"])


def test_f32_results_hold_the_one_nan_of_a_gpu() -> None:
    """Payloads and signs of NaN operands, and x86's own negative NaN, must not come through."""
    texts = ("add.f32", "sub.rn.f32", "mul.rz.f32", "div.rn.f32", "min.f32", "max.NaN.f32")
    nan = [0x7F800001, 0xFFC12345, 0x7FC00000, 0xFF800000]
    other = [0xFFFFFFFF, 0x7FA00000, 0x7F900000, 0x7F800000]
    results = forms(texts, ("f32", "f32"), ("f32",))(nan, other)
    assert results[0] == [0x7FFFFFFF] * 4
    for result in results[1:]:
        assert result[:3] == [0x7FFFFFFF] * 3


def test_a_move_keeps_the_payload_of_a_nan() -> None:
    assert "mov" not in arith.EMITTERS
    texts = ("selp.f32 d0, a0, a1, p;",)
    assert "selp" in kernel(texts, ("f32", "f32"), ("f32",))
    assert forms(texts, ("f32", "f32"), ("f32",))([1], [0x7F812345])[0] == [0x7F812345]
