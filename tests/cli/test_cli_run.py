"""`cudadiag run`: one real child process that crashes, exits, hangs or passes, and what is said about it."""

from __future__ import annotations

import signal

import jsonschema
import pytest
from conftest import Cli

from cudadiag.report.schemas import json_schema

DEADLY = ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGKILL", "SIGTERM", "SIGINT", "SIGPIPE", "SIGXCPU"]


@pytest.mark.parametrize("name", DEADLY)
def test_a_crash_by_any_signal_is_named(cli: Cli, name: str) -> None:
    done = cli("run", "--json", "--", "sh", "-c", f"kill -{signal.Signals[name].value} $$", expect=1)
    (probe,) = done.document["probes"]
    assert probe["outcome"] == "fault"
    assert probe["signal"] == signal.Signals[name].value
    assert probe["fault"]["kind"] == "host-signal"


@pytest.mark.parametrize("status", [1, 2, 42, 255])
def test_an_exit_status_is_a_fault_with_its_number(cli: Cli, status: int) -> None:
    done = cli("run", "--", "sh", "-c", f"exit {status}", expect=1)
    assert f"exit status {status}" in done.out
    assert done.out.startswith("fault")


def test_a_process_left_running_is_told(cli: Cli) -> None:
    done = cli("run", "--", "sh", "-c", "sleep 301 >/dev/null 2>&1 & exit 0", expect=0)
    assert "still ran when the program ended, and was ended by cudadiag: sleep (" in done.out
    assert "still ran" not in cli("run", "--", "true", expect=0).out


def test_a_command_has_no_steps_to_tell(cli: Cli) -> None:
    assert "last step" not in cli("run", "--", "true", expect=0).out


def test_a_pass_says_what_it_rests_on(cli: Cli) -> None:
    done = cli("run", "--", "true", expect=0)
    assert done.out.startswith("pass")
    assert "exit status 0" in done.out.splitlines()[1]


def test_a_hang_is_stopped_at_its_limit(cli: Cli) -> None:
    done = cli("run", "--timeout", "0.3", "--", "sleep", "300", expect=1)
    assert done.out.startswith("hang")
    assert "time limit" in done.out


def test_a_program_that_is_not_there_is_wrong_use(cli: Cli) -> None:
    done = cli("run", "--", "./no_such_program", expect=2)
    assert done.out == ""
    assert "no program ./no_such_program" in done.err


def test_streams_are_kept_apart(cli: Cli) -> None:
    done = cli("run", "--", "sh", "-c", "echo row; echo complaint >&2; echo row2", expect=0)
    out, err = done.out.split("stderr (")
    assert "  row\n  row2" in out
    assert "complaint" not in out.split("stdout (")[1]
    assert "  complaint" in err


def test_the_time_line_shows_the_true_order(cli: Cli) -> None:
    script = "echo first; sleep 0.15; echo second >&2; sleep 0.15; echo third"
    done = cli("run", "--time-line", "--", "sh", "-c", script, expect=0)
    rows = [line.split("|", 1) for line in done.out.splitlines() if "|" in line]
    assert [(head.split()[-1], text.strip()) for head, text in rows] == [
        ("stdout", "first"),
        ("stderr", "second"),
        ("stdout", "third"),
    ]


def test_control_characters_of_a_program_do_not_reach_the_terminal(cli: Cli) -> None:
    done = cli("run", "--", "printf", r"\033[2J\000\377boo\n", expect=0)
    assert "\x1b" not in done.out
    assert "\x00" not in done.out
    assert r"\x1b[2J" in done.out


def test_repeats_are_fresh_processes_and_one_failure_counts(cli: Cli) -> None:
    script = "test -e seen && exit 5; touch seen"
    done = cli("run", "--repeat", "3", "--json", "--", "sh", "-c", script, expect=1)
    assert [probe["outcome"] for probe in done.document["probes"]] == ["pass", "fault", "fault"]
    assert [probe["repeat"] for probe in done.document["probes"]] == [0, 1, 2]


def test_json_obeys_its_schema_and_names_real_files(cli: Cli) -> None:
    done = cli("run", "--json", "--time-line", "-P", "n=3", "--", "sh", "-c", "echo {n}; exit {n}", expect=1)
    jsonschema.Draft202012Validator(json_schema("run")).validate(done.document)
    (probe,) = done.document["probes"]
    assert probe["shape"] == {"n": 3}
    with open(probe["stdout"]) as file:
        assert file.read() == "3\n"
    assert [row["text"] for row in done.document["timeline"]] == ["3"]


def test_stdout_is_data_and_stderr_is_for_people(cli: Cli) -> None:
    done = cli("run", "--json", "--", "true", expect=0)
    assert done.document["document"] == "run"
    assert "no NVIDIA driver" in done.err or "cuda" in done.err.lower()


def test_several_values_are_refused_with_the_option_to_give(cli: Cli) -> None:
    done = cli("run", "-P", "n=1,2", "--", "echo", "{n}", expect=2)
    assert "-P n=1" in done.err
    assert not done.out


def test_git_bisect_skips_what_could_not_be_decided_and_stops_at_wrong_use(cli: Cli) -> None:
    cli("run", "--git-bisect", "--", "./no_such_program", expect=125)
    cli("run", "--git-bisect", "--", "false", expect=1)
    cli("run", "--git-bisect", "no_such_case", expect=128)


def test_the_first_dashes_split_and_later_ones_belong_to_the_program(cli: Cli) -> None:
    done = cli("run", "--json", "--", "echo", "--", "--json", expect=0)
    with open(done.document["probes"][0]["stdout"]) as file:
        assert file.read() == "-- --json\n"


def test_the_shell_completes_cases_and_runs(cli: Cli) -> None:
    def completed(words: str, at: int) -> str:
        return cli(_CUDADIAG_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(at)).out

    assert "verify_attn" in completed("cudadiag bisect ver", 2)
    cli("run", "--", "true", expect=0)
    assert "last" in completed("cudadiag run --resume ", 3)
    assert "-true-" in completed("cudadiag explain ", 2)
