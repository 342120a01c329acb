"""`cudadiag init`: a commented starter case."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import click

from cudadiag.errors import UsageError
from cudadiag.store.atomic import OutputFile

KINDS = ("command", "kernel", "python")
COMPANIONS = {"kernel": ("starter.cu", "starter_reference.py"), "python": ("starter.py",), "command": ()}


@click.command("init")
@click.argument("name", metavar="NAME")
@click.option("--target", type=click.Choice(KINDS), default="kernel", show_default=True, help="What is to be run.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=Path("cases"), show_default=True)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def command(name: str, target: str, folder: Path, force: bool) -> int:
    """Write a commented starter case that runs as it is, and the source it needs.

    \b
    Examples:
      cudadiag init my_kernel                     # cases/my_kernel.yaml, .cu and _reference.py
      cudadiag init my_bench --target command
      cudadiag bisect my_kernel                   # then this works
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"{name!r} cannot be a case's name: letters, digits and _ only")
    templates = resources.files("cudadiag.data").joinpath("starter")
    wanted = {f"{name}.yaml": f"{target}.yaml"}
    wanted |= {companion.replace("starter", name): companion for companion in COMPANIONS[target]}
    present = [file for file in wanted if (folder / file).exists()]
    if present and not force:
        raise UsageError(f"{folder / present[0]} is there already", hint="--force replaces it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"cannot make the folder {folder}: {problem.strerror}") from problem
    for file, template in wanted.items():
        text = templates.joinpath(template).read_text(encoding="utf-8").replace("starter", name)
        with OutputFile(folder / file) as output:
            output.write(text.encode())
        click.echo(folder / file)
    click.echo(f"cudadiag: try it with `cudadiag sweep {name}`, then `cudadiag bisect {name}`", err=True)
    return 0
