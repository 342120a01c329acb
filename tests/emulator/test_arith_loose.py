"""Registers that keep any NaN inside a chain of arithmetic: nobody may see which NaN the CPU made."""

from __future__ import annotations

import numpy as np
from emulated import launch

from harness.devices.emulator.loose import flushed_registers, loose_registers
from harness.devices.emulator.ptx_reader import parse

KERNEL = """
extern "C" __global__ void watch(const unsigned* in, unsigned* out, int n) {
  float sum = 0.0f, product = 1.0f;
  for (int i = 0; i < n; ++i) { sum += __uint_as_float(in[i]); product = product * __uint_as_float(in[i]) - sum; }
  float either = n > 5 ? sum : __uint_as_float(in[0]);
  out[0] = __float_as_uint(sum);
  out[1] = __float_as_uint(product) ^ 1u;
  out[2] = __float_as_uint(either);
  out[3] = __float_as_uint(__shfl_sync(0xffffffffu, sum, 0));
  out[4] = __float_as_uint(n > 100 ? sum : fmaxf(sum, product));
  out[5] = sum != sum;
  atomicExch(out + 6, __float_as_uint(sum));
  ((float*)out)[7] = sum / product;
}
"""


def test_a_chain_of_arithmetic_ends_in_the_gpus_nan() -> None:
    infinity, negative = 0x7F800000, 0xFF800000
    for values in ([infinity, negative, 0x3F800000], [0x7F812345, 0x40000000, 0], [0xFFC00001, 1, 2]):
        ran = launch(
            KERNEL, "watch", 1, 32, [("in", np.array(values, np.uint32)), ("out", np.zeros(8, np.uint32)), ("int32", 3)]
        )
        assert ran.error is None
        out = [int(v) for v in ran["out"]]
        assert out == [0x7FFFFFFF, 0x7FFFFFFE, values[0], *[0x7FFFFFFF] * 2, 1, *[0x7FFFFFFF] * 2]


BODY = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .f32 %f<20>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
  ld.global.f32 %f1, [%rd1];
  mov.f32 %f2, 0f00000000;
  fma.rn.f32 %f2, %f1, %f1, %f2;
  add.f32 %f3, %f2, %f1;
  mov.f32 %f4, %f3;
  mov.f32 %f5, %f1;
  add.f32 %f5, %f5, %f4;
  mov.f32 %f6, %f5;
  mul.f32 %f6, %f6, %f6;
  mov.f32 %f7, 0f7FC00000;
  add.f32 %f7, %f7, %f1;
  selp.f32 %f8, %f2, %f4, %p1;
  selp.f32 %f9, %f2, %f1, %p1;
  mov.b32 %r1, %f3;
  shfl.sync.idx.b32 %f10|%p2, %f2, 0, 31, -1;
  st.global.f32 [%rd1], %f2;
  ret;
}
"""


def test_only_registers_that_arithmetic_alone_writes_are_loose() -> None:
    assert loose_registers(parse(BODY).functions["k"]) == {"%f2", "%f3", "%f4", "%f8", "%r1"}


FLUSHED = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .f32 %f<20>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [p];
  ld.global.f32 %f1, [%rd1];
  mov.f32 %f2, 0f3F800000;
  fma.rn.ftz.f32 %f2, %f1, %f1, %f2;
  add.f32 %f3, %f2, %f1;
  cvt.rn.f32.s32 %f4, %r1;
  mov.f32 %f5, %f2;
  mov.f32 %f6, 0f00000001;
  add.ftz.f32 %f6, %f6, %f6;
  min.ftz.f32 %f7, %f1, %f1;
  ret;
}
"""


def test_registers_that_only_flushing_instructions_write_hold_no_subnormal() -> None:
    assert flushed_registers(parse(FLUSHED).functions["k"]) == {"%f2", "%f4", "%f5", "%f7"}
