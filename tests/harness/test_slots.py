"""Two runs never share a GPU: locks by UUID, across processes, gone when the holder is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.slots import FOLDER_VARIABLE, DeviceBusy, claim_devices, lock_folder

GPU = "cuda:GPU-11111111-2222-3333-4444-555555555555"
OTHER = "cuda:GPU-99999999-2222-3333-4444-555555555555"
HOLDER = """
import sys, time
from harness.slots import claim_devices
claim = claim_devices(sys.argv[1:])
print('held', flush=True)
time.sleep(60)
"""


WAITER = """
import sys
from harness.slots import claim_devices
claim = claim_devices(sys.argv[1:], wait_s=20)
print("got it")
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))
    return tmp_path / "locks"


def holder(*labels: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, *labels], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_device_held_by_another_run_is_refused_by_name() -> None:
    other = holder(GPU)
    try:
        with pytest.raises(DeviceBusy, match=f"{GPU} is used by another run of cudadiag \\(pid {other.pid}: "):
            claim_devices([OTHER, GPU])
        claim_devices([OTHER]).release()  # and what was locked before the refusal is free again
    finally:
        other.kill()
        other.wait()


def test_a_killed_holder_frees_its_device() -> None:
    other = holder(GPU)
    other.kill()
    other.wait()
    claim_devices([GPU]).release()


def test_waiting_takes_the_device_when_it_comes_free() -> None:
    with claim_devices([GPU]):
        waiting = subprocess.Popen([sys.executable, "-c", WAITER, GPU], stdout=subprocess.PIPE)
        time.sleep(0.5)
        assert waiting.poll() is None
    out, _ = waiting.communicate(timeout=20)
    assert out == b"got it\n"


def test_the_same_process_cannot_claim_twice_either() -> None:
    with claim_devices([GPU]), pytest.raises(DeviceBusy):
        claim_devices([GPU])
    claim_devices([GPU]).release()


def test_what_is_no_gpu_needs_no_lock(own_folder: Path) -> None:
    with claim_devices(["none", "emulator"]), claim_devices(["none", "emulator"]):
        assert not own_folder.exists()


def test_locks_are_open_to_other_users(own_folder: Path) -> None:
    old = os.umask(0o077)
    try:
        claim_devices([GPU]).release()
    finally:
        os.umask(old)
    assert lock_folder().stat().st_mode & 0o7777 == 0o1777
    assert [path.stat().st_mode & 0o777 for path in own_folder.iterdir()] == [0o666]


def test_a_link_in_place_of_a_lock_is_not_followed(own_folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock_folder()
    (own_folder / f"{GPU.partition(':')[2]}.lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        claim_devices([GPU])
    assert victim.read_text() == "precious"
