"""GPUs as NVML lists them, with a stand-in for its module: no machine here has one that fell off the bus."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cudadiag.errors import Undecided
from cudadiag.session import survey
from cudadiag.session.devices import choose
from cudadiag.session.machine import Machine, _gpus


class NvmlError(Exception):
    pass


class NotSupported(NvmlError):
    pass


class Nvml:
    """Two GPUs; `lost` of them do not answer. `ecc`: what the counters say, by name."""

    NVMLError, NVMLError_NotSupported = NvmlError, NotSupported
    NVML_DEVICE_MIG_ENABLE, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 1, 0

    def __init__(self, lost: tuple[int, ...] = (), *, memory: bool = True, ecc: dict[str, Any] | None = None) -> None:
        self.lost, self.memory, self.ecc = lost, memory, ecc

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index in self.lost:
            raise NvmlError("GPU is lost")
        return index

    def nvmlDeviceGetMigMode(self, handle: int) -> Any:
        raise NotSupported

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return 12, 1

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        if not self.memory:
            raise NotSupported
        return SimpleNamespace(total=8 << 30, free=7 << 30)

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"some GPU"

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, counter: int) -> int:
        if self.ecc is None:
            raise NotSupported
        return int(self.ecc["errors"])

    def nvmlDeviceGetRemappedRows(self, handle: int) -> tuple[int, int, int, int]:
        if self.ecc is None or "rows" not in self.ecc:
            raise NotSupported
        rows: tuple[int, int, int, int] = self.ecc["rows"]
        return rows


def test_a_lost_gpu_hides_no_other_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus, broken = _gpus(Nvml((0,)))
    assert [gpu.uuid for gpu in gpus] == ["GPU-1"]
    assert broken == ["GPU 0: GPU is lost"]
    machine = Machine(True, gpus=tuple(gpus), broken=tuple(broken))
    assert choose("auto", needs_device=True, look=lambda: machine, environment={}, busy=lambda _: False).gpus == (
        gpus[0],
    )
    check = survey._gpus(machine)
    assert check.state == "missing"
    assert "GPU 0: GPU is lost" in check.found


def test_where_all_are_lost_that_is_the_reason() -> None:
    gpus, broken = _gpus(Nvml((0, 1)))
    machine = Machine(True, gpus=tuple(gpus), broken=tuple(broken))
    with pytest.raises(Undecided, match=r"no GPU answers .*GPU 1: GPU is lost"):
        choose("auto", needs_device=True, look=lambda: machine, environment={}, busy=lambda _: False)


def test_memory_shared_with_the_host_has_no_size_of_its_own() -> None:
    gpus, broken = _gpus(Nvml(memory=False))
    assert not broken
    assert gpus[0].free_bytes is None
    assert "memory of unknown size" in gpus[0].words()


@pytest.mark.parametrize(
    ("ecc", "troubles"),
    [
        (None, None),
        ({"errors": 0}, ()),
        ({"errors": 0, "rows": (5, 0, 0, 0)}, ()),
        ({"errors": 2}, ("2 uncorrected ECC errors since the driver was loaded",)),
        (
            {"errors": 0, "rows": (0, 1, 1, 1)},
            (
                "a row of memory could not be remapped",
                "a row of memory waits to be remapped at the next reset",
            ),
        ),
    ],
)
def test_failing_memory_is_told_in_words(ecc: dict[str, Any] | None, troubles: tuple[str, ...] | None) -> None:
    assert _gpus(Nvml(ecc=ecc))[0][0].troubles == troubles
