"""The rules of --device, over machines of every kind."""

from __future__ import annotations

import pytest

from cudadiag.errors import Undecided, UsageError
from cudadiag.session.devices import choose
from cudadiag.session.machine import Gpu, Machine

A = Gpu(0, "GPU-aaaa1111", "NVIDIA H200", 90, 150 << 30, 149 << 30)
B = Gpu(1, "GPU-bbbb2222", "NVIDIA H200", 90, 150 << 30, 149 << 30)
M = Gpu(2, "MIG-cccc3333", "NVIDIA H200", 90, 18 << 30, 18 << 30)
BARE = Machine(has_driver=False)
GOOD = Machine(has_driver=True, driver="580.1", gpus=(A, B, M))
BROKEN = Machine(has_driver=True, problem="Driver/library version mismatch")


def labels(word: str, machine: Machine, visible: str | None = None, *, needs_device: bool = True) -> tuple[str, ...]:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return choose(word, needs_device=needs_device, look=lambda: machine, environment=environment).labels


def test_auto_takes_a_gpu_where_there_is_one() -> None:
    assert labels("auto", GOOD) == ("cuda:GPU-aaaa1111",)
    assert labels("auto", GOOD, needs_device=False) == ("cuda:GPU-aaaa1111",)


def test_auto_without_a_driver_takes_the_emulator_for_kernels_and_says_so() -> None:
    choice = choose("auto", needs_device=True, look=lambda: BARE, environment={})
    assert choice.labels == ("emulator",)
    assert choice.note is not None
    assert "emulated device" in choice.note


def test_auto_without_a_driver_runs_a_program_as_it_is() -> None:
    assert labels("auto", BARE, needs_device=False) == ("none",)


@pytest.mark.parametrize("word", ["auto", "cuda", "cuda:0", "GPU-aaaa"])
@pytest.mark.parametrize("needs_device", [True, False])
def test_a_broken_driver_is_never_a_reason_to_take_something_else(word: str, needs_device: bool) -> None:
    with pytest.raises(Undecided, match="does not work: Driver/library version mismatch"):
        labels(word, BROKEN, needs_device=needs_device)


def test_the_emulator_and_none_need_no_look_at_the_machine() -> None:
    def look() -> Machine:
        raise AssertionError("looked")

    assert choose("emulator", needs_device=True, look=look).labels == ("emulator",)
    assert choose("none", needs_device=False, look=look).labels == ("none",)


def test_a_kernel_cannot_run_on_no_device() -> None:
    with pytest.raises(UsageError, match="kernel target needs a device"):
        labels("none", GOOD)


def test_cuda_takes_all_and_a_list_takes_those() -> None:
    assert labels("cuda", GOOD) == (A.label, B.label, M.label)
    assert labels("cuda:1,cuda:0", GOOD) == (B.label, A.label)
    assert labels("MIG-cccc3333", GOOD) == (M.label,)
    assert labels("cuda:GPU-bbbb", GOOD) == (B.label,)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("1", (B.label,)),
        ("1,0", (B.label, A.label)),
        ("GPU-bbbb", (B.label,)),
        ("0,7,1", (A.label,)),  # CUDA stops at the first that names no device
        ("2", (M.label,)),
        ("MIG-cccc3333", (M.label,)),
    ],
)
def test_cuda_visible_devices_is_respected(visible: str, expected: tuple[str, ...]) -> None:
    assert labels("cuda", GOOD, visible) == expected


def test_numbers_count_the_visible_devices() -> None:
    assert labels("cuda:0", GOOD, "1") == (B.label,)
    with pytest.raises(Undecided, match="only device 0 is visible"):
        labels("cuda:1", GOOD, "1")


def test_hidden_gpus_are_undecided_not_the_emulator() -> None:
    with pytest.raises(Undecided, match="CUDA_VISIBLE_DEVICES hides all GPUs"):
        labels("auto", GOOD, "")


@pytest.mark.parametrize("word", ["gpu", "cuda:", "cuda:x", "0,foo", "EMULATOR", ""])
def test_a_word_that_is_no_device_is_wrong_use(word: str) -> None:
    with pytest.raises(UsageError):
        labels(word, GOOD)


@pytest.mark.parametrize("word", ["cuda", "cuda:0", "GPU-aaaa1111"])
def test_a_gpu_asked_for_by_name_is_never_replaced(word: str) -> None:
    with pytest.raises(Undecided, match="no NVIDIA driver"):
        labels(word, BARE)


def test_a_device_named_twice_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="named twice"):
        labels("cuda:0,GPU-aaaa", GOOD)


@pytest.mark.parametrize("word", ["emulator,none", "cuda:0,emulator", "auto, cuda:1", "cuda,cuda:0"])
def test_a_word_for_itself_among_several_devices_is_wrong_use(word: str) -> None:
    with pytest.raises(UsageError, match="stands alone"):
        labels(word, GOOD)


@pytest.mark.parametrize("word", ["auto", "cuda", "cuda:0"])
def test_a_gpu_comes_with_the_version_of_its_driver(word: str) -> None:
    chosen = choose(word, needs_device=True, look=lambda: GOOD, environment={}, busy=lambda label: False)
    assert chosen.driver == GOOD.driver
    assert chosen.driver is not None
