"""`cudadiag history`: signatures over time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from cudadiag.cli.options import json_option, store_option
from cudadiag.cli.triage import judgements_of
from cudadiag.errors import EXIT_CLEAN, EXIT_USAGE
from cudadiag.report.documents import DOCUMENT_VERSION, to_text
from cudadiag.report.style import count_words, printable, strong
from cudadiag.triage.index import HistoryDocument, Past, entries, history


@click.command("history")
@click.argument("signature", required=False)
@click.option("--rebuild", is_flag=True, help="Make the index anew from the ledgers and the recorded logs.")
@store_option
@json_option
def command(signature: str | None, rebuild: bool, store: Path, as_json: bool) -> int:
    """Show failures over time: every signature with its count, first and last time, drivers and GPUs.

    SIGNATURE is a signature or a part of one, such as a kernel's name. Runs kept in the store are counted by
    themselves, logs after `cudadiag triage --record`.

    \b
    Examples:
      cudadiag history
      cudadiag history verify_attn
      cudadiag history v1/fault/memory-access/attn --json
    """
    found = history(entries(store, rebuild=rebuild), judgements_of(store), signature)
    code = EXIT_USAGE if signature and not found else EXIT_CLEAN
    if as_json:
        click.echo(to_text(HistoryDocument("history", DOCUMENT_VERSION, code, found)))
    elif not found:
        what = f"no failure with {signature!r}" if signature else "no failure is kept"
        click.echo(f"cudadiag: {what} in {store}", err=True)
    else:
        click.echo("\n".join(line for past in found for line in _lines(past, in_full=signature is not None)).rstrip())
    return code


def _lines(past: Past, *, in_full: bool) -> Iterator[str]:
    yield strong(f"{past.group}  {count_words(past.count, 'time')}")
    yield f"  {past.verdict}: {printable(past.summary)}"
    yield f"  first {past.first}, last {past.last}"
    if past.drivers or past.gpus:
        yield f"  driver {', '.join(past.drivers) or '-'}; GPU {', '.join(past.gpus) or '-'}"
    if in_full:
        yield from (f"  as   {fine}" for fine in past.fine)
        yield from (f"  in   {name}" for name in past.names[-20:])
    yield ""
