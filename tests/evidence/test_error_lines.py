"""Error lines in the wordings of programs, frameworks and macros."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cudadiag.evidence import ErrorLine, error_lines, first_error, recognise
from cudadiag.evidence.codes import codes_by_name, codes_by_text
from cudadiag.evidence.error_lines import _VAGUE_TEXTS

WORDINGS: list[tuple[str, dict[str, Any]]] = [
    ("cuda an illegal memory access was encountered @38", {"number": 700, "line": 38}),
    ("code=716 name=cudaErrorMisalignedAddress call=cudaMemcpy(d, h, 4)", {"number": 716, "call": "cudaMemcpy"}),
    ('code=700(cudaErrorIllegalAddress) "cudaDeviceSynchronize()"', {"number": 700, "call": "cudaDeviceSynchronize"}),
    (
        'CUDA error at a.cu:12 code=77(cudaErrorIllegalAddress) "cudaFree(p)"',
        {"number": 700, "file": "a.cu", "line": 12, "call": "cudaFree", "name": "cudaErrorIllegalAddress"},
    ),
    ("GPUassert: an illegal memory access was encountered file.cu 54", {"number": 700, "file": "file.cu", "line": 54}),
    (
        "Error invalid configuration argument at line 54 in file /src/ops.cu",
        {"number": 9, "file": "/src/ops.cu", "line": 54},
    ),
    ("CUDA driver error (file.hpp:65): 715", {"number": 715, "file": "file.hpp", "line": 65}),
    ("CUDA error 77 in step 4", {"number": 700}),
    ("THCudaCheck FAIL file=a.cu line=278 error=77 : something", {"number": 700, "file": "a.cu", "line": 278}),
    ("THCudaCheck FAIL file=a.cu line=278 error=4 : unspecified launch failure", {"number": 719, "line": 278}),
    ("RuntimeError: CUDA error: misaligned address", {"number": 716, "name": "cudaErrorMisalignedAddress"}),
    ("torch.AcceleratorError: CUDA error: device-side assert triggered", {"number": 710}),
    ("Search for `cudaErrorMisalignedAddress' in https://docs.nvidia.com/", {"number": 716}),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", {"number": 2}),
    (
        "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access",
        {"number": 700, "name": "cudaErrorIllegalAddress"},
    ),
    ("cupy.cuda.driver.CUDADriverError: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access", {"number": 700}),
    (
        "numba.cuda.cudadrv.driver.CudaAPIError: [700] Call to cuMemcpyDtoH results in CUDA_ERROR_ILLEGAL_ADDRESS",
        {"number": 700, "call": "cuMemcpyDtoH"},
    ),
    (
        "INTERNAL: Failed to synchronize: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered",
        {"number": 700},
    ),
    ("cuda.core._utils.cuda_utils.CUDAError: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", {"number": 719}),
    ("ERR 716 <CUresult.CUDA_ERROR_MISALIGNED_ADDRESS: 716>", {"number": 716}),
    ("700 cudaErrorIllegalAddress", {"number": 700}),
    ("terminate: CUDA_ERROR_BRAND_NEW (1234) from cuNewThing", {"number": 1234, "name": "CUDA_ERROR_BRAND_NEW"}),
    ("ggml CUDA error: an illegal memory access was encountered", {"number": 700}),
    ("  what():  CUDA error: out of memory", {"number": 2}),
    ("  Cuda failure ops.cu:90 'invalid device function'", {"number": 98, "file": "ops.cu", "line": 90}),
]

INNOCENT = [
    "0 cudaSuccess",
    "cudaErrorCheck() wraps every call",
    "the host ran out of memory while it was sorting",
    "CUDA error checking is on",
    "cuda errors: none",
    "no error",
    "operation not supported by this file system",
    "CUDA kernel errors might be asynchronously reported at some other API call",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "CUDA error: 3 kernels failed to load",
    "========= Program hit cudaErrorInvalidValue (error 1) on CUDA API call to cudaFree.",
]


@pytest.mark.parametrize(("text", "fields"), WORDINGS)
def test_a_wording_is_recognised(text: str, fields: dict[str, Any]) -> None:
    found = error_lines(text.encode())
    assert len(found) == 1, found
    assert {key: getattr(found[0], key) for key in fields} == fields


@pytest.mark.parametrize("text", INNOCENT)
def test_a_line_that_tells_of_no_error_gives_none(text: str) -> None:
    assert error_lines(text.encode()) == ()


def test_two_processes_in_one_line_give_two_errors() -> None:
    text = "CUDA Error: 700an illegal memory access was encounteredCUDA Error: 716 misaligned address"
    assert [line.number for line in recognise(text)] == [700, 716]


def test_lines_are_counted_from_1_and_end_at_carriage_returns_too() -> None:
    text = b"a\nb\n 10% done\r 20% done\rCUDA error: misaligned address\r 30%\nCUDA error: unspecified launch failure\n"
    assert [(line.number, line.log_line) for line in error_lines(text)] == [(716, 3), (719, 4)]


def test_a_device_assert_tells_where_on_the_device_and_counts_its_threads() -> None:
    text = b"".join(
        b"[rank 3] ../aten/src/Indexing.cu:93: void at::native::gather<(int)4>(long const*): block: [3,0,0], "
        b"thread: [%d,0,0] Assertion `ind >=0 && ind < size` failed.\n" % thread
        for thread in range(69, 96)
    )
    (found,) = error_lines(text)
    assert found == ErrorLine(
        log_line=1,
        raw=found.raw,
        name="cudaErrorAssert",
        number=710,
        text="Assertion `ind >=0 && ind < size` failed",
        file="../aten/src/Indexing.cu",
        line=93,
        is_assert=True,
        kernel="at::native::gather<(int)4>",
        block=(3, 0, 0),
        thread=(69, 0, 0),
        condition="ind >=0 && ind < size",
        count=27,
    )


def test_an_assert_of_the_host_is_no_device_assert() -> None:
    assert error_lines(b"bench: a.cpp:7: int main(): Assertion `x' failed.\n") == ()


def test_the_first_error_is_completed_by_the_next_lines_about_the_same_code() -> None:
    text = b"cuda misaligned address @90\ncode=716 name=cudaErrorMisalignedAddress call=cudaDeviceSynchronize()\n"
    first = first_error(error_lines(text))
    assert first is not None
    assert (first.number, first.line, first.call, first.log_line) == (716, 90, "cudaDeviceSynchronize", 1)


def test_the_first_error_is_not_completed_from_afar_nor_by_another_code() -> None:
    far = b"cuda misaligned address @90\n" + b"x\n" * 9 + b"code=716 call=cudaFree(a)\n"
    other = b"cuda misaligned address @90\ncode=700 call=cudaFree(a)\n"
    for text in (far, other):
        first = first_error(error_lines(text))
        assert first is not None
        assert first.call is None


def test_not_ready_and_asserts_are_no_first_error() -> None:
    text = b"cudaErrorNotReady\na.cu:9: k: block: [0,0,0], thread: [0,0,0] Assertion `x` failed.\n"
    text += b"CUDA error: misaligned address\n"
    first = first_error(error_lines(text))
    assert first is not None
    assert first.number == 716


def test_a_flood_of_errors_is_bounded_and_repeats_are_counted() -> None:
    many = b"".join(b"CUDA error at f%d.cu:%d code=700\n" % (i, i) for i in range(5000))
    assert len(error_lines(many)) == 200
    (same,) = error_lines(b"CUDA error: misaligned address\n" * 5000)
    assert same.count == 5000


def test_any_encoding_is_read() -> None:
    assert [line.number for line in error_lines("größe: CUDA error: misaligned address\n".encode("latin-1"))] == [716]
    assert [line.number for line in error_lines(b"\xff\xfe\x00CUDA error: misaligned address\x00\n")] == [716]


def test_every_text_of_cuda_that_stands_alone_is_found_by_the_quick_search() -> None:
    for text, code in codes_by_text().items():
        if text not in _VAGUE_TEXTS:
            found = error_lines(f"worker 3: {text}\n".encode())
            assert [line.number for line in found] == [code.number], text


def test_every_name_of_cuda_is_found() -> None:
    for name, code in codes_by_name().items():
        if code.number != 0:
            assert [line.number for line in error_lines(f"failed: {name}\n".encode())] == [code.number], name


def test_an_error_far_inside_a_very_long_line_is_found_with_its_neighbourhood_only() -> None:
    text = (
        b"x" * 100_000
        + b" CUDA error: misaligned address "
        + b"y" * 100_000
        + b" cudaErrorIllegalAddress "
        + b"z" * 50_000
    )
    found = error_lines(text)
    assert [line.number for line in found] == [716, 700]
    assert all(len(line.raw) <= 400 for line in found)


def test_sixteen_megabytes_of_a_chatty_log_take_seconds() -> None:
    line = b"INFO [cuda_engine.py:123] step 17 throughput 1234.5 tok/s, gpu memory 81 %, error rate 0.01, no failures\n"
    data = line * ((16 << 20) // len(line))
    started = time.process_time()
    assert error_lines(data) == ()
    assert time.process_time() - started < 10
