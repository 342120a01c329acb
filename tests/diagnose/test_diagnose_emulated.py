"""What diagnosis says of faults on the emulated device, in real runs: no more than that device can know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from test_diagnose_cli import EMULATED, document

pytestmark = EMULATED

BYTES = """
extern "C" __global__ void mark(char* p, int rows, int pitch) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) *reinterpret_cast<float*>(p + row * pitch) = row;  // the offset in bytes has 32 bits
}
"""
BYTES_CASE = """
case: byte_offset
target:
  kernel:
    source: byte_offset.cu
    entry: mark
    grid: ceil_div(rows, 256)
    block: 256
    args:
      - {scratch: p, dtype: float32, shape: [rows, pitch // 4]}
      - {scalar: rows, dtype: int32}
      - {scalar: pitch, dtype: int32}
sweep:
  rows: [35792, 40000]
set: {pitch: 60000}
"""


def diagnosed(folder: Path, case: str, shape: str, *more: str) -> dict[str, Any]:
    words = ["diagnose", case, "--device", "emulator", "--shape", shape, *more]
    return document(folder, *words, expect=1)


def part(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(part for part in found["explanations"] if part["name"] == name)


def test_an_index_that_overflows_names_the_place_that_was_meant(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "int32_overflow", "rows=35793")
    assert found["cause"] == "out-of-bounds"  # the address is shown, a wrap only fits it
    told = part(found, "integer-overflow")
    assert (told["status"], told["strength"]) == ("supported", "suggested")
    wrap = "2^32 elements of 4 bytes before byte 8590080000 of `p` (index 2147520000 wraps to -2147447296)"
    assert wrap in told["why"]
    assert found["next_step"] == f"look whether that line computes its index in 32 bits: the address is {wrap}"


def test_a_byte_offset_that_overflows_is_found_too(tmp_path: Path) -> None:
    (tmp_path / "byte_offset.cu").write_text(BYTES)
    (tmp_path / "byte_offset.yaml").write_text(BYTES_CASE)
    found = diagnosed(tmp_path, "byte_offset.yaml", "rows=40000")
    why = part(found, "integer-overflow")["why"]
    assert "2^32 bytes before byte " in why
    assert why.partition("the address is ")[2] in found["next_step"]
    meant = int(why.partition("before byte ")[2].split()[0])
    assert meant % 60000 == 0
    assert meant >= 1 << 31


def test_a_jump_to_an_odd_address_is_no_misaligned_access(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "bad_pc", "raw=7")
    assert found["cause"] == "wild-jump"
    assert part(found, "wild-jump")["why"] == "a jump to 0x7 in call_raw at bad_pc.cu:9: 716 at `call`"
    assert part(found, "misalignment")["status"] == "refuted"
    assert "round" not in found["next_step"]


def test_a_misaligned_access_is_still_one(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "misaligned", "offset=1")
    assert found["cause"] == "misalignment"
    assert part(found, "misalignment")["strength"] == "shown"
    assert part(found, "wild-jump")["status"] == "refuted"


def test_an_illegal_instruction_there_says_little_of_a_gpus_compiler(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "illegal_instruction", "n=5")
    assert found["cause"] == "miscompile"
    told = part(found, "miscompile")
    assert told["strength"] == "suggested"
    assert "the emulated device has a compiler of its own" in told["why"]
    assert "compiler version" not in found["next_step"]


def test_a_null_pointer_from_the_devices_heap_is_called_so(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "device_heap", "bytes=68719476736")
    assert part(found, "out-of-bounds")["why"] == "write of 4 bytes in use_heap at device_heap.cu:5, a null pointer"
    assert found["agreement"]["where"] == "a null pointer"
    assert part(found, "memory-exhausted")["status"] == "untested"
    chance = part(found, "hardware-or-chance")
    assert chance["status"] == "refuted"
    assert chance["why"] == "3 of 3 failed in fresh processes; the emulated device has no hardware"
    assert part(found, "uninitialised")["status"] == "untested"
    assert "up to its fault" in part(found, "stack-overflow")["why"]


def test_a_far_read_blames_no_buffer(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "oob_read", "index=8589934592")
    assert part(found, "out-of-bounds")["why"].endswith("far from every buffer, nearest is `out`")


def test_what_was_too_large_is_said(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "oom", "gib=4096")
    assert "out of memory for `p` (4096.0 GiB), 16.0 GiB were free" in part(found, "memory-exhausted")["why"]


def test_a_freed_buffer_and_a_grid_of_nothing_have_next_steps_of_their_own(tmp_path: Path) -> None:
    found = document(tmp_path, "diagnose", "use_after_free", "--device", "emulator", expect=1)
    assert found["next_step"].startswith("find who frees `p` before this access")
    found = diagnosed(tmp_path, "grid_zero", "n=0")
    assert found["next_step"].startswith("launch nothing where there is nothing to do")


def test_with_the_memory_of_a_gpu_a_wrong_result_sends_to_the_exact_one(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "verify_attn", "streams=1,q_len=9,prefix=4096", "--memory", "hardware")
    assert found["cause"] == "wrong-result"
    assert found["sureness"].startswith("suggested")
    assert found["next_step"].startswith("run it with --memory exact, which checks every access")


def test_a_number_that_only_a_text_tells_is_not_the_devices_word(tmp_path: Path) -> None:
    text = "CUDA error: an illegal memory access was encountered (700) cudaErrorIllegalAddress"
    found = document(tmp_path, "diagnose", "--device", "none", "--", "sh", "-c", f"echo '{text}'; exit 1", expect=1)
    told = " ".join(part["why"] for part in found["explanations"])
    assert "the program printed cudaErrorIllegalAddress (700)" in told
    assert "the device reported" not in told
    assert part(found, "hardware-or-chance")["status"] == "untested"


def case(folder: Path, name: str, source: str, arguments: str, sweep: str, *, block: str = "1", more: str = "") -> str:
    """A case with one kernel of one block."""
    (folder / f"{name}.cu").write_text(source)
    text = (
        f"case: {name}\ntarget:\n  kernel:\n    source: {name}.cu\n    entry: {name}\n    grid: 1\n    block: {block}\n"
    )
    (folder / f"{name}.yaml").write_text(
        f"{text}    args:\n{arguments}{more}sweep:\n  {sweep}\nlimits: {{timeout: 6}}\n"
    )
    return f"{name}.yaml"


def test_an_index_that_is_wrong_by_itself_is_not_shown_to_have_wrapped(tmp_path: Path) -> None:
    source = 'extern "C" __global__ void mark(unsigned char* p, long long at) { p[at] = 1; }\n'
    arguments = "      - {scratch: p, dtype: uint8, shape: [4295032832]}\n      - {scalar: at, dtype: int64}\n"
    name = case(tmp_path, "mark", source, arguments, "at: [0, -20000000]")
    found = diagnosed(tmp_path, name, "at=-20000000")
    assert found["cause"] == "out-of-bounds"
    assert part(found, "out-of-bounds")["strength"] == "shown"
    assert part(found, "integer-overflow")["strength"] == "suggested"
    assert "index 4274967296 wraps to -20000000" in found["next_step"]


PRODUCT = """
extern "C" __global__ void scaled(float* p, int rows, int pitch) {
  p[rows * pitch / 100000000] = 1.0f;  // the product wraps, the quotient would be 24
}
"""
COUNTER = """
extern "C" __global__ void count(volatile float* p, int n) {
  unsigned short i = 0;
  while (i < n) {  // never, from 65536 on
    p[i & 63] = i;
    ++i;
  }
}
"""
SMALL = "      - {scratch: p, dtype: float32, shape: [64]}\n"


def test_a_small_buffer_excludes_no_number_that_wraps_on_the_way(tmp_path: Path) -> None:
    arguments = (
        f"{SMALL}      - {{scalar: rows, dtype: int32}}\n      - {{scalar: pitch, dtype: int32, value: 60000}}\n"
    )
    name = case(tmp_path, "scaled", PRODUCT, arguments, "rows: [30000, 40000]")
    found = diagnosed(tmp_path, name, "rows=40000")
    assert "72 bytes before the start of `p`" in part(found, "out-of-bounds")["why"]
    assert part(found, "integer-overflow")["status"] == "untested"
    name = case(tmp_path, "count", COUNTER, f"{SMALL}      - {{scalar: n, dtype: int32}}\n", "n: [1000, 70000]")
    found = diagnosed(tmp_path, name, "n=70000")
    assert found["cause"] == "endless-wait"
    told = part(found, "integer-overflow")
    assert told["status"] == "untested"
    assert "the largest buffer, `p`, has 256 bytes: no index into it wraps, but a number on the way" in told["why"]


WAITS = """
extern "C" __global__ void waits(const volatile int* flag) {
  if (threadIdx.x == 0) {
    while (flag[0] == 0) {
    }
  } else {
    while (flag[1] == 0) {
    }
  }
}
"""


def test_every_place_at_which_threads_stand_is_named_with_how_many(tmp_path: Path) -> None:
    arguments = "      - {in: flag, dtype: int32, shape: [2], fill: {kind: value, value: ready}}\n"
    name = case(tmp_path, "waits", WAITS, arguments, "ready: [1, 0]", block="8")
    why = part(diagnosed(tmp_path, name, "ready=0"), "endless-wait")["why"]
    assert why == "its threads stand in waits at waits.cu:7 (7), waits.cu:4 (1)"
    found = diagnosed(tmp_path, "hang", "ready=0")
    assert part(found, "endless-wait")["why"] == "a thread stands in wait_for at hang.cu:4"


def test_a_wrong_result_is_not_shown_to_be_nothing_else_where_two_checkers_are_missing(tmp_path: Path) -> None:
    """It reads a scratch that nobody wrote, which initcheck would record."""
    source = 'extern "C" __global__ void twice(const float* p, float* out) { out[threadIdx.x] = p[threadIdx.x] * 2; }\n'
    (tmp_path / "zeros.py").write_text("import numpy as np\n\n\ndef zeros(n):\n    return np.zeros(n, np.float32)\n")
    arguments = "      - {scratch: p, dtype: float32, shape: [n]}\n      - {out: out, dtype: float32, shape: [n]}\n"
    reference = "    reference: zeros.py:zeros\n"
    name = case(tmp_path, "twice", source, arguments, "n: [32, 64]", block="n", more=reference)
    found = diagnosed(tmp_path, name, "n=64")
    told = part(found, "wrong-result")
    assert (found["cause"], told["strength"]) == ("wrong-result", "suggested")
    assert "clean under the emulated device's memory check; not checked by racecheck, initcheck" in told["why"]


def test_an_allocation_that_fails_first_of_all_refutes_what_kernels_do(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "oom", "gib=4096")
    for name in ("integer-overflow", "out-of-bounds", "miscompile", "race", "uninitialised"):
        assert part(found, name)["why"] == "it fails before the kernel runs (out-of-memory)"
    assert "4096.0 GiB is more than the device has (16.0 GiB)" in part(found, "memory-exhausted")["why"]
    assert found["next_step"].startswith("look at how that size is computed")
