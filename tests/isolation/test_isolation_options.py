"""pytest's own options, and other plugins, with isolation on."""

from __future__ import annotations

from pathlib import Path

import pytest
from isolation_runs import Run, run_pytest

SUITE = """
import os, pytest
@pytest.fixture(scope="session")
def pid():
    return os.getpid()
def test_a(pid): print("a speaks")
def test_b(pid): os.abort()
def test_c(pid): pass
def test_d(pid): assert 0
def test_e(pid): pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_small.py").write_text(SUITE)
    return tmp_path


def test_each_test_has_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_pids.py").write_text(
        "import os, pathlib, pytest\n"
        "@pytest.mark.parametrize('n', ['x', 'a::b[c]'])\n"
        "def test_pid(n): open(pathlib.Path(__file__).with_name('pids'), 'a').write(f'{os.getpid()}\\n')\n"
        "def test_dies_at_exit():\n    import atexit; atexit.register(os.abort)\n"
    )
    run = run_pytest(tmp_path, isolate="each")
    assert len(set((tmp_path / "pids").read_text().split())) == 2
    assert run.named("passed") == {"test_pid[x]", "test_pid[a::b[c]]"}
    assert run.outcomes["test_dies_at_exit"] == "error"
    assert run.properties["test_dies_at_exit"]["cuda_fault"] == "died-after-finish"


def test_x_stops_at_the_first_fault(folder: Path) -> None:
    run = run_pytest(folder, "-x")
    assert run.outcomes == {"test_a": "passed", "test_b": "failed"}
    assert "stopping after 1 failures" in run.text


def test_maxfail_counts_over_all_children(folder: Path) -> None:
    run = run_pytest(folder, "--maxfail=2")
    assert run.outcomes == {"test_a": "passed", "test_b": "failed", "test_c": "passed", "test_d": "failed"}


def test_last_failed_runs_just_the_failed_ones_again(folder: Path) -> None:
    run_pytest(folder)
    run = run_pytest(folder, "--lf")
    assert run.outcomes == {"test_b": "failed", "test_d": "failed"}


def test_selection_by_keyword_counts_what_it_leaves_out(folder: Path) -> None:
    run = run_pytest(folder, "-k", "test_a or test_b")
    assert set(run.outcomes) == {"test_a", "test_b"}
    assert "collected 5 items / 3 deselected / 2 selected" in run.text


def test_each_worker_of_xdist_has_a_child_of_its_own(folder: Path) -> None:
    run = run_pytest(folder, "-n", "2", "--dist=loadgroup")
    assert run.named("passed") == {"test_a", "test_c", "test_e"}
    assert run.named("failed") == {"test_b", "test_d"}
    assert run.properties["test_b"]["cuda_fault"] == "host-signal"


def test_without_capture_a_test_writes_where_pytest_writes(folder: Path) -> None:
    run = run_pytest(folder, "-s")
    assert run.named("passed") == {"test_a", "test_c", "test_e"}
    assert run.text.index("a speaks") < run.text.index("FAILURES")


@pytest.mark.parametrize("option", ["--pdb", "--trace", "--setup-show"])
def test_what_cannot_work_is_refused_with_the_reason(folder: Path, option: str) -> None:
    run = run_pytest(folder, option)
    assert run.exit_code == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {option} does not work with --cuda-isolate: " in run.text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "cuda_isolate=maybe"), "it must be auto, each or none"),
        (("-o", "cuda_isolate=auto", "--cuda-timeout=-1"), "it must be a number of seconds"),
        (("-o", "cuda_isolate=auto", "-o", "cuda_timeout=soon"), "it must be a number of seconds"),
        (("-o", "cuda_isolate=auto", "-o", "cuda_health=nothing"), "it must read `module:function`"),
        (("-o", "cuda_isolate=auto", "-o", "cuda_health=no_such_module:f"), "No module named 'no_such_module'"),
        (("--cuda-isolate=none", "--cuda-sanitize=memcheck"), "--cuda-sanitize needs processes of its own"),
        (("-o", "cuda_isolate=auto", "no_such_file.py"), "file or directory not found: no_such_file.py"),
    ],
)
def test_wrong_settings_are_usage_errors(folder: Path, words: tuple[str, ...], message: str) -> None:
    run = run_pytest(folder, *words, isolate=None)
    assert run.exit_code == pytest.ExitCode.USAGE_ERROR
    assert message in run.text
    assert "Traceback" not in run.text


def test_no_test_selected_ends_as_pytest_ends(folder: Path) -> None:
    assert run_pytest(folder, "-k", "nothing").exit_code == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_test_may_end_the_session(tmp_path: Path) -> None:
    (tmp_path / "test_exit.py").write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('enough', returncode=9)\ndef test_c(): pass\n"
    )
    run = run_pytest(tmp_path)
    assert run.exit_code == 9
    assert "enough" in run.text


def test_fixtures_of_a_module_live_through_tests_that_run_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "test_fixtures.py").write_text(
        "import pytest, pathlib\n"
        "def note(word): open(pathlib.Path(__file__).with_name('notes'), 'a').write(word + '\\n')\n"
        "@pytest.fixture(scope='module')\ndef table():\n    note('up')\n    yield\n    note('down')\n"
        "def test_a(table): note('a')\n"
        "@pytest.mark.cuda_isolate('each')\ndef test_b(): note('b')\n"
        "def test_c(table): note('c')\n"
    )
    run = run_pytest(tmp_path)
    assert run.named("passed") == {"test_a", "test_b", "test_c"}
    assert (tmp_path / "notes").read_text().split() == ["up", "a", "b", "c", "down"]


def test_a_marked_test_is_an_error_where_the_sanitizer_cannot_check_it(tmp_path: Path) -> None:
    (tmp_path / "test_marked.py").write_text(
        "import pytest\n@pytest.mark.cuda_sanitize\ndef test_marked(): pass\n"
        "@pytest.mark.cuda_sanitize('racecheck')\ndef test_other_tool(): pass\ndef test_plain(): pass\n"
    )
    run = run_pytest(tmp_path, "--cuda-sanitize=memcheck", isolate=None)
    assert run.outcomes == {"test_marked": "error", "test_other_tool": "passed", "test_plain": "passed"}
    assert "memcheck" in run.details["test_marked"] or "compute-sanitizer" in run.details["test_marked"]


def test_coverage_of_all_children_is_combined(folder: Path) -> None:
    pytest.importorskip("pytest_cov")
    run: Run = run_pytest(folder, "--cov=test_small", "--cov-report=term-missing", "--deselect=test_small.py::test_b")
    assert "test_small.py" in run.text
    assert run.text.split("TOTAL")[1].split()[2] == "100%"
