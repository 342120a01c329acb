"""The options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from cudadiag.cli.group import Invocation

F = TypeVar("F", bound=Callable[..., Any])


def complete_case(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of cases, and files, for the shell."""
    from cudadiag.case.locate import all_cases

    names = [CompletionItem(case.name) for case in all_cases() if case.name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`last` and the names of runs in the store, the newest first, for the shell."""
    from cudadiag.store.folders import Store

    runs = Store(ctx.params.get("store") or Path(".cudadiag")).runs()
    return [CompletionItem(n) for n in ("last", *(r.run_id for r in reversed(runs))) if n.startswith(incomplete)]


LONGEST_S = 1e9  # thirty years; a time limit beyond it is a slip, and no clock waits for it


class Seconds(click.ParamType[float]):
    """A finite number of seconds; `zero` allows 0."""

    name = "seconds"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        if not (0 <= seconds <= LONGEST_S) or (seconds == 0 and not self.zero):
            self.fail(f"{value} is not in the range {'0' if self.zero else 'above 0'} to {LONGEST_S:.0e}", param, ctx)
        return seconds


OBSERVERS = ("plain", "blocking", "memcheck", "racecheck", "initcheck", "synccheck", "coredump")


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """One decorator for several options, in the order in which the help lists them."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
store_option = click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".cudadiag"),
    show_default=True,
    envvar="CUDADIAG_STORE",
    metavar="DIR",
    help="Where runs are kept.",
)
memory_option = click.option(
    "--memory",
    type=click.Choice(("exact", "hardware")),
    default="exact",
    show_default=True,
    help="Memory of the emulated device: every byte checked, or only pages as on a GPU.",
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(),
    metavar="SECONDS",
    help="Time limit of one probe. Default: the case's, else 30.",
)
no_check_option = click.option("--no-check", is_flag=True, help="Do not compare outputs with the reference.")
leaks_option = click.option(
    "--leaks",
    is_flag=True,
    help="Device memory that is never freed is a fault, too. Seen by memcheck and by the emulated device.",
)
wait_option = click.option(
    "--wait",
    "wait_s",
    type=Seconds(zero=True),
    default=0.0,
    metavar="SECONDS",
    help="Wait so long for a GPU that another run holds.",
)

target_options = together(
    click.argument("case", required=False, metavar="[CASE]", shell_complete=complete_case),
    click.option(
        "-P",
        "--param",
        "params",
        multiple=True,
        metavar="NAME=VALUES",
        help="Values of a parameter: 9,17,33 or 256..8192:x2 or 1..64:+3. Replaces the case's. Repeatable.",
    ),
    click.option("--where", multiple=True, metavar="CONDITION", help="Only shapes for which it holds: m * n <= 4096."),
    click.option(
        "--derive",
        multiple=True,
        metavar="NAME=EXPRESSION",
        help="For a program after --: a quantity that rules may use.",
    ),
    click.option(
        "--success",
        metavar="PATTERN",
        help="For a program after --: a pass needs this in its output (a regular expression).",
    ),
    click.option(
        "--observer", type=click.Choice(OBSERVERS), help="Who watches each probe. Default: the case's, else blocking."
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="WHICH",
        help="auto, none, emulator, cuda (all GPUs), cuda:N, or a UUID of a GPU or MIG instance; several with commas.",
    ),
    memory_option,
    timeout_option,
    no_check_option,
)
"""What is run, and how each probe is run."""

run_options = together(
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        metavar="N",
        help="Probes side by side on each device. Default: 1, so that times can be trusted.",
    ),
    wait_option,
    click.option("--git-bisect", is_flag=True, help="Exit codes for `git bisect run`: 125 where it could not decide."),
    click.option(
        "--resume",
        metavar="RUN",
        shell_complete=complete_run,
        help="Go on with a run: its name, its folder, `last`, or a case's name.",
    ),
    store_option,
    json_option,
)
"""How many at once, where the run is kept, what is printed."""


def invocation() -> Invocation:
    """The program after `--` and the whole command line."""
    found = click.get_current_context().find_object(Invocation)
    return found if found is not None else Invocation()
