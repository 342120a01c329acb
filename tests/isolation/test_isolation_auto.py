"""One run in `auto` over tests of every kind: what pytest makes of each must be what it is."""

from __future__ import annotations

import pytest
from isolation_runs import FAKE_DEVICE, Run, run_pytest

SUITE = """
import os, sys, time, unittest, warnings
import fake_device, pytest

@pytest.fixture(scope="session")
def session_pid():
    yield os.getpid()

@pytest.fixture(scope="module")
def place():
    print("module fixture up")
    yield os.getpid()

def test_runs_elsewhere(session_pid, request, worker_id, tmp_path):
    assert os.getpid() == session_pid
    assert hasattr(request.config, "workerinput") and worker_id == "master"

def test_warns():
    warnings.warn("a warning of the test", DeprecationWarning)

def test_property(record_property, tmp_path):
    (tmp_path / "x").write_text("x")
    record_property("speed", 7)

@pytest.mark.parametrize("word", ["a/b", "c::d", "e[f]"])
def test_odd_names(word): pass

class TestUnit(unittest.TestCase):
    def test_method(self): self.assertTrue(True)

@pytest.mark.skip(reason="not today")
def test_skipped(): pass

def test_skips_itself(): pytest.skip("not here")

@pytest.mark.xfail(reason="known")
def test_xfails(): assert 0

@pytest.mark.xfail(reason="dies, known")
def test_dies_as_known():
    os.abort()

def test_fails():
    print("words of a failing test")
    assert 1 == 2

def test_leaves():
    print("last words")
    os._exit(7)

def test_segfaults():
    import ctypes
    ctypes.string_at(0)

def test_after_it(session_pid, place):
    assert os.getpid() == session_pid == place

@pytest.fixture
def dies_in_setup(): os.abort()

@pytest.fixture
def dies_in_teardown():
    yield
    os.abort()

@pytest.fixture
def poisons_in_setup():
    fake_device.break_it()

@pytest.fixture
def poisons_in_teardown():
    yield
    fake_device.break_it()

@pytest.fixture
def ends_badly_once_poisoned():
    yield
    fake_device.launch()

def test_setup_dies(dies_in_setup): pass
def test_teardown_dies(dies_in_teardown): pass
def test_setup_poisons(poisons_in_setup): pass
def test_teardown_poisons(poisons_in_teardown): pass
def test_fault_is_told_once(ends_badly_once_poisoned):
    fake_device.break_it()
def test_raises_and_poisons():
    fake_device.break_it()
    raise RuntimeError("CUDA error: device-side assert triggered")
def test_skips_too_late():
    fake_device.break_it()
    pytest.skip("too late")
@pytest.mark.cuda_isolate(poisons=True)
def test_may_poison():
    fake_device.break_it()
@pytest.mark.cuda_isolate("none")
def test_unchecked():
    fake_device.break_it()
    fake_device.SICK.clear()
def test_forks():
    pid = os.fork()
    if pid == 0:
        return
    os.waitpid(pid, 0)
@pytest.mark.cuda_isolate(timeout=1)
def test_hangs_by_its_own_limit(place):
    time.sleep(3600)
@pytest.mark.cuda_isolate("each")
def test_alone(session_pid):
    assert os.getpid() == session_pid
def test_last(place, session_pid): assert place == session_pid == os.getpid()
"""


CONFTEST = """
import sys
def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"imported here: {sorted({'test_zoo', 'fake_device'} & set(sys.modules))}")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("auto")
    (folder / "fake_device.py").write_text(FAKE_DEVICE)
    (folder / "pytest.ini").write_text("[pytest]\ncuda_health = fake_device:health\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_zoo.py").write_text(SUITE)
    (folder / "test_bad_import.py").write_text("import os\nos.abort()\n")
    (folder / "test_poisoned_import.py").write_text("import fake_device\nfake_device.break_it()\ndef test_x(): pass\n")
    return run_pytest(folder, "--cuda-timeout=60", "--continue-on-collection-errors", "-rA")


PASSED = {
    "test_runs_elsewhere", "test_warns", "test_property", "test_odd_names[a/b]", "test_odd_names[c::d]",
    "test_odd_names[e[f]]", "test_method", "test_after_it", "test_may_poison", "test_unchecked", "test_forks",
    "test_alone", "test_last",
}  # fmt: skip
SKIPPED = {"test_skipped", "test_skips_itself", "test_xfails", "test_dies_as_known"}
FAULTS = {
    "test_leaves": ("failed", "host-exit"),
    "test_segfaults": ("failed", "host-signal"),
    "test_setup_dies": ("error", "host-signal"),
    "test_teardown_dies": ("error", "host-signal"),
    "test_setup_poisons": ("error", "poisoned-context"),
    "test_teardown_poisons": ("error", "poisoned-context"),
    "test_fault_is_told_once": ("failed", "poisoned-context"),
    "test_raises_and_poisons": ("failed", "device-assert"),
    "test_skips_too_late": ("failed", "poisoned-context"),
    "test_hangs_by_its_own_limit": ("failed", "hang"),
}


def test_sound_tests_pass_whatever_ran_before_them(run: Run) -> None:
    assert run.named("passed") == PASSED


def test_the_parent_imports_no_test_module(run: Run) -> None:
    assert "imported here: []" in run.text


def test_skips_and_expected_failures_are_skips(run: Run) -> None:
    assert run.named("skipped") == SKIPPED


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_of_its_own_phase_and_kind(run: Run, name: str) -> None:
    assert (run.outcomes[name], run.properties[name].get("cuda_fault")) == FAULTS[name]


def test_an_ordinary_failure_keeps_its_own_words_and_no_fault(run: Run) -> None:
    assert run.outcomes["test_fails"] == "failed"
    assert "assert 1 == 2" in run.details["test_fails"]
    assert "cuda_fault" not in run.properties["test_fails"]


def test_nothing_else_failed(run: Run) -> None:
    imports = {"test_bad_import", "test_poisoned_import"}
    assert run.named("failed") | run.named("error") == {*FAULTS, "test_fails", *imports}


def test_files_that_kill_or_poison_at_import_are_errors_of_their_own(run: Run) -> None:
    assert "importing it ended the test process" in run.details["test_bad_import"]
    assert "importing it poisoned the test process" in run.details["test_poisoned_import"]
    assert "test_x" not in run.outcomes


def test_last_words_of_a_dying_test_are_kept(run: Run) -> None:
    assert "last words" in run.text
    assert "words of a failing test" in run.text
    assert "Fatal Python error: Segmentation fault" in run.text


def test_a_fault_is_one_failure_though_its_teardown_failed_too(run: Run) -> None:
    assert "ERROR test_zoo.py::test_fault_is_told_once" not in run.text
    assert "fake device error" not in run.details["test_fault_is_told_once"].splitlines()[0]


def test_the_exception_of_a_poisoning_test_stays_beside_the_fault(run: Run) -> None:
    details = run.details["test_raises_and_poisons"]
    assert "RuntimeError: CUDA error: device-side assert triggered" in details
    assert "signature  v1/fault/device-assert" in details


def test_warnings_and_properties_arrive(run: Run) -> None:
    assert "a warning of the test" in run.text
    assert run.properties["test_property"] == {"speed": "7"}


def test_the_hang_says_where(run: Run) -> None:
    assert "in test_hangs_by_its_own_limit" in run.details["test_hangs_by_its_own_limit"]
    assert "/_pytest/" not in run.details["test_hangs_by_its_own_limit"]
