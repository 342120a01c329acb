"""Statuses of cuBLAS, cuDNN, cuFFT, cuSPARSE, NCCL and their like. A witness: beside a CUDA error it says
nothing new."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from cudadiag.model import FaultKind
from cudadiag.triage.readers.python_frames import is_source_line, noticed_in, python_place
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot

CUBLAS = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED", 7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH", 11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR", 15: "CUBLAS_STATUS_NOT_SUPPORTED", 16: "CUBLAS_STATUS_LICENSE_ERROR",
}  # fmt: skip
"""Source: enum cublasStatus_t of cublas_api.h."""
_NUMBERS = {name: number for number, name in CUBLAS.items()}

_STATUS = re.compile(
    r"\b(?P<name>(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CURAND|NVRTC|NPP)_(?:STATUS_)?[A-Z][A-Z_0-9]{3,60})\b"
    r"|\b(?P<fft>CUFFT_[A-Z_]{4,40})\b"
)
_NCCL = re.compile(
    r"\b(?P<name>nccl(?:UnhandledCudaError|InvalidUsage|InvalidArgument))\b"
    r"|NCCL error.{0,40}(?P<words>unhandled cuda error)"
)
_BARE = re.compile(
    r"(?i)\[?cublas(?:lt)? ?error\]?[\s:]{1,4}(?P<number>\d{1,3})\b"
    r"|!!!! kernel execution error\..*error: (?P<number2>\d{1,3})\)"
)
_CALL = re.compile(r"(?i)when calling\s+`?(?P<call>[\w:]+)")
_FINE = re.compile(r"_SUCCESS\b")
_COMPLAINT = re.compile(r"(?i)error|fail|exception|terminate|what\(\)|abort|status|unhandled")
_NO_MEMORY = frozenset(
    {
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
        "CUFFT_ALLOC_FAILED",
        "CUSOLVER_STATUS_ALLOC_FAILED",
        "CUSPARSE_STATUS_ALLOC_FAILED",
    }
)


class Libraries:
    """The reader."""

    name = "library"

    def read(self, spot: Spot) -> Iterator[Sign]:
        name, number = _status(spot.text)
        if name is None or _FINE.search(name) or not _COMPLAINT.search(spot.text) or is_source_line(spot):
            return
        call = _CALL.search(spot.text)
        noticed = noticed_in(python_place(spot), spot, name)
        if call:
            noticed = dataclasses.replace(noticed, call=call["call"])
        memory = name in _NO_MEMORY
        yield Sign(
            role=Role.RESOURCE if memory else Role.LIBRARY,
            log_line=spot.log_line,
            text=spot.quote,
            kind=FaultKind.OUT_OF_MEMORY if memory else FaultKind.OTHER_CUDA,
            name=name,
            number=number,
            noticed=noticed,
            words="a library gave up; it says that something failed, not what",
            weak=memory,
        )


def _status(text: str) -> tuple[str | None, int | None]:
    match = _STATUS.search(text)
    if match:
        name = match["name"] or match["fft"]
        return name, _NUMBERS.get(name)
    bare = _BARE.search(text)
    if bare:
        number = int(bare["number"] or bare["number2"])
        return CUBLAS.get(number, f"cuBLAS error {number}"), number
    nccl = _NCCL.search(text)
    if nccl:
        return nccl["name"] or "ncclUnhandledCudaError", None
    return None, None
