"""No memory, or too much asked of a block: PyTorch's allocator, JAX, Triton, TensorFlow, the host's memory killer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from cudadiag.model import FaultKind
from cudadiag.triage.readers.python_frames import is_source_line, noticed_in, python_place
from cudadiag.triage.sign import Role, Sign
from cudadiag.triage.spot import Spot
from cudadiag.triage.wording import Wording, WordingReader, wording

_OOM = FaultKind.OUT_OF_MEMORY


def _device_memory(pattern: str, name: str = "cudaErrorMemoryAllocation") -> Wording:
    return wording(
        pattern, Role.RESOURCE, "out-of-memory", "the device had no memory left", kind=_OOM, name=name, number=2
    )


def _killed(pattern: str, words: str) -> Wording:
    return wording(pattern, Role.RESOURCE, "host-memory", words, kind=FaultKind.HOST_SIGNAL, name="SIGKILL", number=9)


_ROWS = (
    wording(
        r"OutOfResources: out of resource: (?P<call>[\w ]+?),? ?Required: ?(?P<number>\d{1,9})",
        Role.RESOURCE, "kernel-over-limit", "a Triton kernel asks for more than a block may have",
        kind=FaultKind.LAUNCH_LIMIT, name="OutOfResources",
    ),
    wording(
        r"(?i)(?:ptxas )?(?:fatal|error)\s*:.*uses too much (?:shared data|local|parameter)",
        Role.RESOURCE, "kernel-over-limit", "the kernel asks for more than a block may have",
        kind=FaultKind.LAUNCH_LIMIT, name="ptxas",
    ),
    _device_memory(
        r"CUDA out of memory\. Tried to allocate|OutOfMemoryError: CUDA out of memory|CUDA out of memory\.",
    ),
    _device_memory(
        r"RESOURCE_EXHAUSTED: |Resource exhausted: Out of memory|Allocator \(GPU_\d+_bfc\) ran out of memory|"
        r"OOM when allocating tensor",
        name="RESOURCE_EXHAUSTED",
    ),
    _device_memory(
        r"cupy\S*OutOfMemoryError: Out of memory allocating|rmm::(?:bad_alloc|out_of_memory)"
        r"|MemoryError: std::bad_alloc: "
        r"out_of_memory: (?:CUDA|RMM)",
    ),
    _device_memory(
        r"(?i)allocating [\d.,]+ [MG]i?B on device \d+: cudaMalloc failed: out of memory"
        r"|failed to allocate CUDA\d+ buffer|"
        r"unable to allocate CUDA\d+ buffer",
    ),
    wording(
        r"No available memory for the cache blocks|Not enough memory\. Please try to (?:increase|decrease)|"
        r"Free memory on device .{0,80}is less than desired GPU memory utilization|"
        r"larger than the (?:maximum|available) number of tokens that can be stored in KV cache|"
        r"KV cache is needed, which is larger than the available KV cache memory",
        Role.RESOURCE, "out-of-memory", "the server's own sum says that the device's memory does not suffice",
        kind=_OOM, weak=True,
    ),
    _killed(
        r"(?i)out of memory: killed process (?P<number>\d{1,9})|oom-kill:|memory cgroup out of memory|"
        r"invoked oom-killer|"
        r"oom_reaper: reaped process|Detected \d+ oom[-_]kill event|task \d+: Out Of Memory",
        "the system's memory killer ended the process",
    ),
    _killed(r"OOMKilled(?!\W{1,4}[Ff]alse)", "the container went over its memory limit and was killed"),
    wording(
        r"OutOfMemoryError: Task was killed due to the node running low on memory|"
        r"workers? .{0,30}killed due to memory pressure|DefaultCPUAllocator: (?:can't|not enough)|"
        r"Cannot allocate memory|numpy\S*ArrayMemoryError|^MemoryError\b|std::bad_alloc\s*$|bad_alloc$",
        Role.RESOURCE, "host-memory", "the host had no memory left", kind=_OOM, weak=True,
    ),
    wording(
        r"No space left on device", Role.RESOURCE, "disk-full", "a disk is full (also /dev/shm)", weak=True,
    ),
    wording(
        r"DataLoader worker \(pid\D{0,6}\d+\) is killed by signal: Bus error|out of shared memory\b",
        Role.RESOURCE, "shared-memory", "the container's /dev/shm is too small",
        kind=FaultKind.HOST_SIGNAL, name="SIGBUS", number=7,
    ),
)  # fmt: skip


class Memory:
    """The reader: rows as above, with the place a traceback adds."""

    name = "memory"

    def __init__(self) -> None:
        self._rows = WordingReader(self.name, _ROWS)

    def read(self, spot: Spot) -> Iterator[Sign]:
        if is_source_line(spot):
            return
        for sign in self._rows.read(spot):
            if sign.cause == "kernel-over-limit":
                sign = dataclasses.replace(sign, number=None)
            elif sign.cause == "host-memory" and sign.kind is FaultKind.HOST_SIGNAL:
                sign = dataclasses.replace(sign, number=9)
            yield dataclasses.replace(sign, noticed=noticed_in(python_place(spot), spot, sign.words))
