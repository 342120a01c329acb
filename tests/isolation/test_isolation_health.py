"""The health check against a library that answers like libcuda: which answers mean that a process is poisoned."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from isolation_runs import ROOT, run_pytest

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler for the library that answers like libcuda")


@pytest.fixture(scope="module")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    source = Path(__file__).with_name("fake_libcuda.c")
    command = [str(COMPILER), "-shared", "-fPIC", "-o", str(library), str(source), "-Wl,-soname,libcuda.so.1"]
    subprocess.run(command, check=True)
    return library


def ask(libcuda: Path, words: str) -> str:
    """Run `words` in a fresh process where `health` is the check, `load()` loads the library; what they print."""
    program = f"""
import ctypes, importlib, sys
sys.path.insert(0, {str(ROOT)!r})
child = importlib.import_module("harness.isolation.child.health")
canaries = importlib.import_module("harness.isolation.child.canaries")
synchronising = importlib.import_module("harness.child.cuda_sync")
def load():
    return ctypes.CDLL({str(libcuda)!r})
def put(library, name, value):
    ctypes.c_int.in_dll(library, name).value = value
def new(users=child.no_check, with_canaries=False):
    return child.Health(synchronising, users, canaries.Canaries() if with_canaries else None)
health = new()
{words}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_process_without_cuda_is_healthy_and_stays_without_it(libcuda: Path) -> None:
    words = "print(health.check(), 'libcuda' in open('/proc/self/maps').read())"
    assert ask(libcuda, words) == "None False"


def test_a_sound_context_is_synchronised_and_healthy(libcuda: Path) -> None:
    words = "l = load(); print(health.check(), ctypes.c_int.in_dll(l, 'syncs').value)"
    assert ask(libcuda, words) == "None 2"


def test_a_sticky_error_is_named(libcuda: Path) -> None:
    words = "l = load(); put(l, 'sticky', 700); f = health.check(); print(f['number'], f['name'], f['call'])"
    assert ask(libcuda, words) == "700 CUDA_ERROR_ILLEGAL_ADDRESS cuCtxSynchronize"


def test_an_error_that_goes_away_is_not_sticky(libcuda: Path) -> None:
    assert ask(libcuda, "l = load(); put(l, 'once', 700); print(health.check())") == "None"


@pytest.mark.parametrize("number", [900, 709, 100])
def test_codes_that_say_nothing_of_later_tests_are_passed_over(libcuda: Path, number: int) -> None:
    assert ask(libcuda, f"l = load(); put(l, 'sticky', {number}); print(health.check())") == "None"


def test_the_users_check_counts_with_what_it_returns_or_raises(libcuda: Path) -> None:
    words = "print(new(lambda: 'sick').check()['text'], new(lambda: 1 / 0).check()['text'], new(lambda: None).check())"
    assert ask(libcuda, words) == "sick ZeroDivisionError: division by zero None"


def test_a_stray_store_into_a_canary_is_seen(libcuda: Path) -> None:
    words = (
        "h = new(with_canaries=True); l = load(); print(h.check(), h.check()); l.stray_store(100); l.stray_store(103)\n"
        "print(h.check()['text'])"
    )
    first, second = ask(libcuda, words).splitlines()
    assert first == "None None"
    assert "2 of 4096 bytes" in second
    assert second.endswith("first at offset 100, last at 103")


def test_a_poisoned_driver_is_blamed_on_the_test_that_did_it(libcuda: Path, tmp_path: Path) -> None:
    (tmp_path / "test_driver.py").write_text(
        f"import ctypes\ndef load(): return ctypes.CDLL({str(libcuda)!r})\n"
        "def sticky(): return ctypes.c_int.in_dll(load(), 'sticky')\n"
        "def test_before(): assert sticky().value == 0\n"
        "def test_poisons(): sticky().value = 700\n"
        "def test_after(): assert sticky().value == 0\n"
        "def test_stray(): load().stray_store(0)\n"
        "def test_last(): load()\n"
    )
    run = run_pytest(tmp_path, "--cuda-canaries")
    assert run.named("passed") == {"test_before", "test_after", "test_last"}
    assert run.properties["test_poisons"]["cuda_fault"] == "illegal-address"
    assert "noticed    by cuCtxSynchronize" in run.details["test_poisons"]
    assert "stray store reached a memory canary" in run.details["test_stray"]
