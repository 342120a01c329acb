"""`cudadiag schema`."""

from __future__ import annotations

import json
from importlib import resources

import click

DOCUMENTS = (
    "run", "sweep", "bisect", "sanitize", "diagnose", "doctor", "cases", "clean", "lookup", "gate", "triage", "history",
    "error",
)  # fmt: skip
NAMES = ("case", "ledger", *DOCUMENTS)


@click.command("schema")
@click.argument("name", type=click.Choice(NAMES), default="case")
def command(name: str) -> None:
    """Print the JSON Schema of case files, of a ledger's lines, or of what --json prints.

    \b
    Examples:
      cudadiag schema > case.schema.json      # for an editor's YAML support
      cudadiag schema ledger
      cudadiag schema bisect                  # of `cudadiag bisect --json`
      cudadiag schema error                   # of any command with --json that ends with 2 or 3 before its answer
    """
    if name == "ledger":
        text = resources.files("cudadiag.store").joinpath("ledger.schema.json").read_text(encoding="utf-8")
    elif name == "case":
        from cudadiag.case.schema import json_schema as case_schema

        text = json.dumps(case_schema(), indent=2)
    else:
        from cudadiag.report.schemas import json_schema

        text = json.dumps(json_schema(name), indent=2)
    click.echo(text.rstrip())
