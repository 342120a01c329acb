"""Which devices a run uses: the rules of --device. A driver that is there and does not work is an error, never a reason
to take another device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cudadiag.errors import Undecided, UsageError
from cudadiag.session.claims import is_claimed
from cudadiag.session.machine import Gpu, Machine, this_machine

ALONE = ("auto", "none", "emulator", "cuda")
"""Words of --device that cannot be one of several."""


@dataclass(frozen=True)
class DeviceChoice:
    """`labels`: "none", "emulator" or "cuda:UUID", one for each device; `note` tells the user what was not obvious."""

    labels: tuple[str, ...]
    gpus: tuple[Gpu, ...] = ()
    note: str | None = None
    driver: str | None = None  # version of NVML's driver, of a GPU only
    visible: int = 0  # GPUs that could have been taken

    @property
    def kind(self) -> str:
        return self.labels[0].partition(":")[0]


def choose(
    word: str,
    *,
    needs_device: bool,
    look: Callable[[], Machine] = this_machine,
    environment: Mapping[str, str] = os.environ,
    busy: Callable[[str], bool] = is_claimed,
) -> DeviceChoice:
    """The devices for a `--device` word. `needs_device`: the target cannot run without one (a kernel target). `auto`
    takes the first GPU that no other run holds (`busy`).

    Raises UsageError for a word that is none, or for a kernel target with `none`; Undecided where the device is not to
    be had.
    """
    if word == "none":
        if needs_device:
            raise UsageError(
                "--device none: a kernel target needs a device", hint="--device emulator runs it on the CPU"
            )
        return DeviceChoice(("none",))
    if word == "emulator":
        return DeviceChoice(("emulator",))
    if word not in ("auto", "cuda"):
        parts = [part.strip() for part in word.split(",")]
        alone = next((part for part in parts if part in ALONE), None)
        if alone is not None:
            raise UsageError(
                f"--device {word}: {alone} stands alone", hint="several devices are GPUs: cuda:0,cuda:1, or their UUIDs"
            )
        for part in parts:
            _check_word(part)
    machine = look()
    if word == "auto":
        return _auto(machine, needs_device, environment, busy)
    gpus = _named(word, machine, environment)
    visible = len(_visible(machine, environment))
    return DeviceChoice(tuple(gpu.label for gpu in gpus), tuple(gpus), driver=machine.driver, visible=visible)


def _check_word(word: str) -> None:
    name = word.removeprefix("cuda:")
    if not name.startswith(("GPU-", "MIG-")) and not (name.isdigit() and word.startswith("cuda:")):
        hint = "auto, none, emulator, cuda, cuda:N, or a UUID: GPU-... or MIG-..."
        raise UsageError(f"--device {word}: not a device", hint=hint)


def _auto(
    machine: Machine, needs_device: bool, environment: Mapping[str, str], busy: Callable[[str], bool]
) -> DeviceChoice:
    if not machine.has_driver:
        if needs_device:
            return DeviceChoice(("emulator",), note="no NVIDIA driver here: kernels run on the emulated device")
        return DeviceChoice(("none",), note="no NVIDIA driver here: the program runs as it is")
    visible = _visible(machine, environment)
    gpu = next((gpu for gpu in visible if not busy(gpu.label)), visible[0])
    return DeviceChoice((gpu.label,), (gpu,), driver=machine.driver, visible=len(visible))


def _named(word: str, machine: Machine, environment: Mapping[str, str]) -> list[Gpu]:
    if not machine.has_driver:
        raise Undecided(
            f"--device {word}: no NVIDIA driver here", hint="--device emulator runs kernel cases on the CPU"
        )
    visible = _visible(machine, environment)
    if word == "cuda":
        return visible
    gpus = [_one(part.strip(), visible) for part in word.split(",")]
    if len({gpu.uuid for gpu in gpus}) != len(gpus):
        raise UsageError(f"--device {word}: a device is named twice")
    return gpus


def _one(word: str, visible: Sequence[Gpu]) -> Gpu:
    name = word.removeprefix("cuda:")
    if name.isdigit():
        if int(name) < len(visible):
            return visible[int(name)]
        numbers = {0: "no device is visible", 1: "only device 0 is visible"}
        several = f"only the devices 0 to {len(visible) - 1} are visible"
        raise Undecided(f"--device {word}: {numbers.get(len(visible), several)}")
    fitting = [gpu for gpu in visible if gpu.uuid.startswith(name)]
    if len(fitting) != 1:
        problem = "fits several devices" if fitting else "no such device is visible here"
        raise Undecided(f"--device {word}: {problem}", hint="`cudadiag doctor` lists them")
    return fitting[0]


def _visible(machine: Machine, environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs a program would see, in its order. Raises Undecided for a broken driver and where there are none."""
    if machine.problem is not None:
        raise Undecided(
            f"the NVIDIA driver is here but does not work: {machine.problem}",
            hint="`nvidia-smi` says more; --device emulator runs kernel cases on the CPU",
        )
    gpus = _filtered(machine.gpus, environment.get("CUDA_VISIBLE_DEVICES"))
    if not gpus:
        none = f"no GPU answers ({'; '.join(machine.broken)})" if machine.broken else "the NVIDIA driver lists no GPU"
        why = "CUDA_VISIBLE_DEVICES hides all GPUs" if machine.gpus else none
        raise Undecided(why, hint="--device emulator runs kernel cases on the CPU")
    return gpus


def _filtered(gpus: Sequence[Gpu], setting: str | None) -> list[Gpu]:
    """As CUDA does it: in the order given, up to the first entry that names no device."""
    if setting is None:
        return list(gpus)
    chosen: list[Gpu] = []
    for part in (part.strip() for part in setting.split(",")):
        fitting = [
            gpu for gpu in gpus if (part and gpu.uuid.startswith(part)) or (part.isdigit() and gpu.index == int(part))
        ]
        if len(fitting) != 1 or fitting[0] in chosen:
            break
        chosen.append(fitting[0])
    return chosen
