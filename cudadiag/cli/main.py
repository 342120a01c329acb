"""The entry point: splits off the program after `--`, runs the command, and turns every end into one exit code."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Sequence

import click

from cudadiag import __version__
from cudadiag.cli.group import Invocation, LazyGroup
from cudadiag.errors import EXIT_BUG, EXIT_CLEAN, EXIT_SIGINT, EXIT_UNDECIDED, EXIT_USAGE, CudadiagError

EXIT_PIPE = 141  # the reader of our output is gone: what a shell shows for SIGPIPE

EXIT_CODES = """\b
Exit codes, the same in every command:
  0    nothing wrong found
  1    something wrong found (fault, hang, wrong, skipped)
  2    wrong use, or a wrong case file
  3    could not decide (no device, a tool missing, nothing found but not all was run)
  70   a bug of cudadiag's own
  130  interrupted (143: told to end)
"""


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=EXIT_CODES,
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="cudadiag")
def cli() -> None:
    """Find out why a CUDA program crashes: which shape fails first, by what rule, and where it is caused.

    \b
    Start with one of these:
      cudadiag doctor
      cudadiag bisect verify_attn
      cudadiag bisect -P q=9,17,33 -P prefix=256..8192:x2 -- ./bench --q {q} --prefix {prefix}
    """


def split_program(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """cudadiag's own arguments, and the program after the first `--` (None without one)."""
    words = list(argv)
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])


GIT_BISECT = {EXIT_UNDECIDED: 125, EXIT_USAGE: 128, EXIT_BUG: 128}
"""125 skips a commit; above 127 ends the bisection: a wrong command line must not look like a bad commit."""


def run_cli(argv: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    own, program = split_program(argv)
    return _final(own, _guarded(own, Invocation(program=program, command_line=("cudadiag", *argv))))


def _final(own: Sequence[str], code: int) -> int:
    return GIT_BISECT.get(code, code) if "--git-bisect" in own else code


def _print_error(own: Sequence[str], message: str, hint: str | None, code: int) -> None:
    """With --json who reads stdout gets a document whatever happens; the same words are on stderr for people."""
    if "--json" not in own:
        return
    from cudadiag.report.documents import error_document, to_text

    try:
        click.echo(to_text(error_document(message, hint, _final(own, code))))
        sys.stdout.flush()
    except OSError:
        _forget_stdout()


def _guarded(own: list[str], invocation: Invocation) -> int:
    """Every end of a command becomes an exit code here and nowhere else."""
    if os.environ.get("NO_COLOR"):
        color: bool | None = False
    else:
        color = None
    try:
        result = cli.main(own, prog_name="cudadiag", standalone_mode=False, obj=invocation, color=color)
        sys.stdout.flush()
        return result if isinstance(result, int) else EXIT_CLEAN
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as wrong:
        wrong.show()
        _print_error(own, wrong.format_message(), None, EXIT_USAGE)
        return EXIT_USAGE
    except CudadiagError as problem:
        placed = hasattr(problem, "problems")  # file:line:column at the left margin, where editors look for it
        click.echo(problem.message if placed else f"cudadiag: {problem.message}", err=True)
        if problem.hint:
            click.echo(f"  {problem.hint}", err=True)
        # git bisect goes through commits: one without the program is skipped, a wrong command line ends it
        skipped = "--git-bisect" in own and problem.skips_commit
        code = EXIT_UNDECIDED if skipped else problem.exit_code
        _print_error(own, problem.message, problem.hint, code)
        return code
    except (KeyboardInterrupt, click.Abort):
        click.echo("cudadiag: interrupted", err=True)
        return EXIT_SIGINT
    except (BrokenPipeError, SystemExit):  # click itself exits where the reader of our output is gone
        _forget_stdout()
        return EXIT_PIPE
    except OSError as problem:
        if not _stdout_is_broken():
            return _own_bug(problem)
        _forget_stdout()
        click.echo(f"cudadiag: cannot write the output: {problem.strerror}", err=True)
        return EXIT_UNDECIDED
    except Exception as bug:  # noqa: BLE001 - the one place where our own bugs end
        return _own_bug(bug)


def _stdout_is_broken() -> bool:
    """Whether what is still to be written cannot be: then the failure was the output's, not ours."""
    try:
        sys.stdout.write("")
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _forget_stdout() -> None:
    """Nothing more can be said there; without this the interpreter complains at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _own_bug(bug: BaseException) -> int:
    lines = [
        f"cudadiag: a bug of cudadiag's own: {type(bug).__name__}: {bug}",
        "Please report it with the command line and everything below; what was probed so far is kept.",
        f"  cudadiag {__version__}, Python {platform.python_version()}, {platform.platform()}",
        "".join(traceback.format_exception(bug)).rstrip(),
    ]
    click.echo("\n".join(lines), err=True)
    return EXIT_BUG


def _open_closed_streams() -> None:
    """A stream that the caller closed (`>&-`) is None in Python: what is written to it goes nowhere instead."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the end


def main() -> None:
    """Console script."""
    _open_closed_streams()
    sys.exit(run_cli(sys.argv[1:]))


if __name__ == "__main__":
    main()
