"""`cudadiag init`: a commented starter case."""

from __future__ import annotations

from pathlib import Path

import click

from cudadiag.errors import UsageError
from cudadiag.store.atomic import OutputFile

KINDS = ("kernel", "python", "command")


@click.command("init")
@click.argument("name", metavar="NAME")
@click.option("--target", type=click.Choice(KINDS), default="kernel", show_default=True, help="What is to be run.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("cases"),
    show_default=True,
    help="Where it is written.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def command(name: str, target: str, folder: Path, force: bool) -> int:
    """Write a commented starter case that runs as it is, and the source it needs.

    \b
    Examples:
      cudadiag init my_kernel                     # cases/my_kernel.yaml, .cu and _reference.py
      cudadiag init my_bench --target command
      cudadiag bisect my_kernel                   # then this works
    """
    from cudadiag.case.startercase import starter_files

    files = starter_files(target, name)
    present = [file for file in files if (folder / file).exists()]
    if present and not force:
        raise UsageError(f"{folder / present[0]} is there already", hint="--force replaces it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"cannot make the folder {folder}: {problem.strerror}") from problem
    for file, text in files.items():
        with OutputFile(folder / file) as output:
            output.write(text.encode())
        click.echo(folder / file)
    click.echo(f"cudadiag: try it with `cudadiag sweep {name}`, then `cudadiag bisect {name}`", err=True)
    return 0
