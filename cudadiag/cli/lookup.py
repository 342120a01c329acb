"""`cudadiag lookup`: a CUDA error or an Xid in words."""

from __future__ import annotations

import re

import click

from cudadiag.cli.options import json_option
from cudadiag.errors import EXIT_CLEAN, EXIT_USAGE
from cudadiag.evidence.codes import CudaCode, Xid, codes_by_name, codes_by_text, lookup
from cudadiag.report.documents import DOCUMENT_VERSION, LookupDocument, LookupRow, to_text
from cudadiag.report.style import strong

SUCCESS = CudaCode(0, "cudaSuccess", "CUDA_SUCCESS", "no error", None, "status", "no", "the call succeeded: no error")
"""Not in the table of errors, which readers of logs use: there it would be found in every healthy line."""
STICKY_WORDS = {
    "yes": "sticky: the context is dead, every later call returns it",
    "no": "not sticky: later calls work",
    "treat as yes": "may leave the context unusable: treat it as sticky",
}


@click.command("lookup")
@click.argument("words", nargs=-1, required=True)
@json_option
def command(words: tuple[str, ...], as_json: bool) -> int:
    """Explain a CUDA error (by number, name or text) or an Xid of the kernel log.

    \b
    Examples:
      cudadiag lookup 700
      cudadiag lookup Xid 31
      cudadiag lookup cudaErrorIllegalAddress
      cudadiag lookup misaligned address
      cudadiag lookup "NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=bench"
    """
    query = " ".join(words)
    found = (SUCCESS,) if _is_success(query) else lookup(query) or _in_a_line(query)
    code = EXIT_CLEAN if found else EXIT_USAGE
    if as_json:
        rows = [_row(entry) for entry in found]
        click.echo(to_text(LookupDocument("lookup", DOCUMENT_VERSION, code, query, rows)))
    elif not found:
        click.echo(f"cudadiag: no CUDA error and no Xid fits {query!r}", err=True)
        click.echo(
            "  a number, a name, words of CUDA's text, or an Xid: 700, cudaErrorAssert, misaligned, Xid 31", err=True
        )
    else:
        click.echo("\n\n".join("\n".join(_lines(entry)) for entry in found))
    return code


def _is_success(query: str) -> bool:
    number = re.fullmatch(r"(?i)(?:cuda\s*)?(?:error|code)?[\s:=#]*0+", query.strip())
    return number is not None or query.strip().lower() in {"cudasuccess", "cuda_success", "no error"}


def _in_a_line(line: str) -> tuple[CudaCode | Xid, ...]:
    """The Xid or the CUDA error inside a pasted line of a log; of several names or texts the longest."""
    logged = re.search(r"(?i)\bXid\s*\([^)]*\):\s*(\d{1,6})", line)
    if logged:
        return lookup(f"Xid {logged[1]}")
    known = {text.lower(): entry for table in (codes_by_name(), codes_by_text()) for text, entry in table.items()}
    held = [text for text in known if len(text) > 12 and text in line.lower()]
    return (known[max(held, key=len)],) if held else ()


def _row(entry: CudaCode | Xid) -> LookupRow:
    if isinstance(entry, Xid):
        kind = entry.kind.value if entry.kind else None
        return LookupRow("xid", entry.number, f"Xid {entry.number}", kind, entry.meaning, (entry.read, entry.action))
    kind = entry.kind.value if entry.kind else None
    return LookupRow("cuda", entry.number, entry.name, kind, entry.meaning, entry.causes)


def _lines(entry: CudaCode | Xid) -> list[str]:
    if isinstance(entry, Xid):
        return [
            strong(f"Xid {entry.number}: {entry.meaning}"),
            f"  blame   {entry.blame}",
            f"  read    {entry.read}",
            f"  do      {entry.action}",
            *_kind_line(entry),
        ]
    old = f", {entry.old} before CUDA 10.1" if entry.old is not None else ""
    lines = [strong(f"{entry.number}: {entry.runtime or '-'} / {entry.driver or '-'}{old}")]
    if entry.text:
        lines.append(f'  text    "{entry.text}"')
    lines.append(f"  means   {entry.meaning}")
    if entry is not SUCCESS:
        lines += [f"  {STICKY_WORDS.get(entry.sticky, entry.sticky)}", *_kind_line(entry)]
    if entry.causes:
        lines.append("  usual causes")
        lines += [f"    - {cause}" for cause in entry.causes]
    return lines


def _kind_line(entry: CudaCode | Xid) -> list[str]:
    return [f"  kind    {entry.kind.value}"] if entry.kind else ["  kind    none: not a fault by itself"]
