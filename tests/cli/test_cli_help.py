"""Help, completion, colours, and what is imported when."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest
from conftest import COMMAND, Cli, environment

from cudadiag.cli.group import load
from cudadiag.cli.table import COMMANDS

HEAVY = ("numpy", "pydantic", "rich", "yaml", "cuda", "llvmlite", "pynvml", "jinja2", "elftools", "psutil")


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_of_the_table_loads_and_has_examples_and_its_name(entry: object) -> None:
    command = load(entry)  # type: ignore[arg-type]
    assert command.name == entry.name  # type: ignore[attr-defined]
    assert command.help is not None
    assert "Examples:" in command.help
    for line in command.help.split("Examples:")[1].splitlines():
        if line.strip() and not line.strip().startswith("#"):
            assert "cudadiag " in line, line


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_option_has_a_help_text(entry: object) -> None:
    for parameter in load(entry).params:  # type: ignore[arg-type]
        if parameter.param_type_name == "option":
            assert getattr(parameter, "help", None), parameter.name


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom cudadiag.cli.main import run_cli\nrun_cli(['--help'])\n"
        f"found = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.stderr.write(','.join(found))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "bisect" in done.stdout


def test_run_of_a_program_needs_no_numpy_and_no_pydantic(cli: Cli) -> None:
    script = (
        "import sys\nfrom cudadiag.cli.main import run_cli\nrun_cli(['run', '--json', '--', 'true'])\n"
        "sys.exit(','.join(name for name in ('numpy', 'pydantic', 'rich') if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd="/tmp")
    assert done.stderr.splitlines()[-1:] in ([], [""]) or "numpy" not in done.stderr
    assert "pydantic" not in done.stderr


@pytest.mark.parametrize("name", ["case", "ledger", "run", "sweep", "bisect", "doctor", "cases", "clean", "lookup"])
def test_every_schema_is_a_json_schema(cli: Cli, name: str) -> None:
    import jsonschema

    schema = json.loads(cli("schema", name, expect=0).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"]


@pytest.mark.parametrize("words", [("doctor",), ("cases",), ("clean",), ("lookup", "700")])
def test_json_of_the_small_commands_obeys_its_schema(cli: Cli, words: tuple[str, ...]) -> None:
    import jsonschema

    schema = json.loads(cli("schema", words[0], expect=0).out)
    done = cli(*words, "--json")
    jsonschema.Draft202012Validator(schema).validate(done.document)
    assert done.document["exit_code"] == done.code


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(cli: Cli, shell: str) -> None:
    assert "_CUDADIAG_COMPLETE" in cli("completion", shell, expect=0).out


def test_completion_completes_commands_and_options(cli: Cli) -> None:
    done = cli(_CUDADIAG_COMPLETE="bash_complete", COMP_WORDS="cudadiag bi", COMP_CWORD="1")
    assert done.out.split() == ["plain,bisect"]
    done = cli(_CUDADIAG_COMPLETE="bash_complete", COMP_WORDS="cudadiag run --obs", COMP_CWORD="2")
    assert done.out.split() == ["plain,--observer"]


def test_no_colour_in_a_pipe(cli: Cli) -> None:
    done = cli("sweep", "-P", "n=1,2", "--", "test", "{n}", "=", "1", expect=1)
    assert "\x1b" not in done.out
    assert "\x1b" not in done.err


def on_a_terminal(*words: str, **more: str) -> str:
    """What cudadiag prints when both its outputs are a terminal."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env=environment(**more),
        cwd="/tmp",
    ) as process:
        os.close(terminal)
        data = b""
        while True:
            try:
                block = os.read(controller, 65536)
            except OSError:
                break
            if not block:
                break
            data += block
        process.wait(timeout=30)
    os.close(controller)
    return data.decode()


def test_a_terminal_gets_colours_and_no_color_takes_them_away(tmp_path: object) -> None:
    words = ("sweep", "--store", f"{tmp_path}/s", "-P", "n=1,2", "--", "test", "{n}", "=", "1")
    coloured = on_a_terminal(*words, TERM="xterm-256color")
    assert "\x1b[31m" in coloured or "\x1b[1;31m" in coloured or "\x1b[31m\x1b[1m" in coloured
    assert coloured.count("pass") >= 1
    plain = on_a_terminal(*words, TERM="xterm-256color", NO_COLOR="1")
    for code in ("\x1b[31m", "\x1b[32m", "\x1b[1;31m", "\x1b[33m"):
        assert code not in plain


def test_rows_of_a_sweep_stay_whole_beside_the_live_view(tmp_path: object) -> None:
    words = ("sweep", "--store", f"{tmp_path}/s", "-P", "n=1..4", "--", "sleep", "0.1")
    text = on_a_terminal(*words, TERM="xterm-256color", NO_COLOR="1")
    import re

    rows = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").split("\n") if line]
    for n in range(1, 5):
        assert any(re.fullmatch(rf"{n}\s+\d+\.\d{{3}}\s+pass\s*", row) for row in rows), rows
