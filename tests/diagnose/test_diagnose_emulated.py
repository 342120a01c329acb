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
    assert found["cause"] == "integer-overflow"
    why = part(found, "integer-overflow")["why"]
    assert "2^32 elements of 4 bytes before byte 8590080000 of `p` (index 2147520000 wrapped to -2147447296)" in why


def test_a_byte_offset_that_overflows_is_found_too(tmp_path: Path) -> None:
    (tmp_path / "byte_offset.cu").write_text(BYTES)
    (tmp_path / "byte_offset.yaml").write_text(BYTES_CASE)
    found = diagnosed(tmp_path, "byte_offset.yaml", "rows=40000")
    assert found["cause"] == "integer-overflow"
    why = part(found, "integer-overflow")["why"]
    assert "2^32 bytes before byte " in why
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
