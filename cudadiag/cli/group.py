"""The group that imports a command only when it is called."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from cudadiag.cli.table import COMMANDS, Entry

_ENTRIES = {entry.name: entry for entry in COMMANDS}


@dataclass(frozen=True)
class Invocation:
    """What came with the command line besides options: the program after the first `--`, and the whole line."""

    program: tuple[str, ...] | None = None
    command_line: tuple[str, ...] = ()


class LazyGroup(click.Group):
    """Lists commands from the table; loads the one called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [entry.name for entry in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _ENTRIES.get(cmd_name)
        if entry is None:
            return None
        return load(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _ENTRIES and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], _ENTRIES, n=1)
            advice = f": did you mean {near[0]!r}?" if near else "; `cudadiag --help` lists them"
            raise click.UsageError(f"No such command {args[0]!r}{advice}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        entry = _ENTRIES.get(name or "")
        invocation = ctx.find_object(Invocation)
        if entry and not entry.program and invocation and invocation.program is not None:
            raise click.UsageError(f"`cudadiag {entry.name}` takes no program after --", ctx)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = dict.fromkeys(entry.section for entry in COMMANDS)
        for section in sections:
            with formatter.section(section):
                formatter.write_dl([(e.name, e.help) for e in COMMANDS if e.section == section])


def load(entry: Entry) -> click.Command:
    """Import a command from the table."""
    module, _, attribute = entry.target.partition(":")
    with _one_thread():
        command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command), entry
    return command


@contextmanager
def _one_thread() -> Iterator[None]:
    """numpy's matrix products take one thread where the command imports numpy: those of the search are small, and two
    threads cost 60 % more CPU and 40 % more time. Read while numpy is imported, then put back: probes do not inherit
    it."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]
