"""`cudadiag cases`: what can be run by name."""

from __future__ import annotations

from pathlib import Path

import click

from cudadiag.case import load
from cudadiag.case.locate import Found, all_cases, case_file
from cudadiag.cli.options import json_option
from cudadiag.errors import EXIT_CLEAN, EXIT_USAGE, CudadiagError, UsageError
from cudadiag.report.documents import DOCUMENT_VERSION, CaseRow, CasesDocument, to_text
from cudadiag.report.style import count_words, strong


@click.command("cases")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--check", is_flag=True, help="NAMEs are files: check those that are cases, print what is wrong.")
@json_option
def command(names: tuple[str, ...], check: bool, as_json: bool) -> int:
    """List the cases that can be run by name: those in ./cases, then the bundled ones.

    Each file is read and checked; ends with 2 if one is wrong. A case in ./cases hides a bundled one of its name.

    \b
    Examples:
      cudadiag cases
      cudadiag cases verify_attn --json
      cudadiag cases --check cases/*.yaml
    """
    rows = _checked(names) if check else [_row(found) for found in all_cases() if not names or found.name in names]
    missing = set() if check else set(names) - {row.name for row in rows}
    code = EXIT_USAGE if missing or any(row.problem for row in rows) else EXIT_CLEAN
    if as_json:
        click.echo(to_text(CasesDocument("cases", DOCUMENT_VERSION, code, rows)))
    else:
        _print([row for row in rows if row.problem] if check else rows, quiet=check)
    for name in sorted(missing):
        click.echo(f"cudadiag: no case {name!r}", err=True)
    return code


def _row(found: Found) -> CaseRow:
    try:
        case = load(found.path)
        shapes = len(case.sweep)
    except CudadiagError as problem:
        return CaseRow(found.name, "", str(found.path), found.origin, None, None, problem.message)
    return CaseRow(found.name, case.title, str(found.path), found.origin, case.target.kind, shapes)


def _checked(names: tuple[str, ...]) -> list[CaseRow]:
    """The cases among some files; other files (a hook is given any YAML) are none of ours."""
    paths = [Path(name) for name in names]
    if gone := [path for path in paths if not path.is_file()]:
        raise UsageError(f"no file {gone[0]}")
    return [_row(found) for path in paths if (found := case_file(path))]


def _print(rows: list[CaseRow], quiet: bool = False) -> None:
    if not rows:
        if not quiet:
            click.echo("no cases here", err=True)
        return
    width = max(len(row.name) for row in rows)
    for row in rows:
        if row.problem:
            click.echo(f"{row.name:<{width}}  {click.style('wrong', fg='red')}\n{row.problem}")
            continue
        shapes = count_words(row.shapes or 0, "shape")
        click.echo(f"{strong(f'{row.name:<{width}}')}  {row.target:<8} {shapes:>12}  {row.origin:<8} {row.title}")
